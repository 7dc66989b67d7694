"""Limit how many bytes of files an organization may have stored."""

import asyncio
from contextvars import Context

import msgspec
import structlog

from penstock.clock import Clock
from penstock.errors import StorageQuotaExceeded, StorageUnavailable
from penstock.store.base import Store
from penstock.values import OrgId

log = structlog.get_logger()
_CACHE_SECONDS = 30.0
_FRESH_SECONDS = 15.0  # an older sum is renewed in the background, so that the calls of busy organizations do not wait
_MAX_CACHED = 10_000


class StorageQuota:
    """Refuses new files of organizations that have stored as much as they may: as many bytes as are set for the
    organization itself, else as the setting `storage_bytes_per_org` says.

    The bytes are added up from the rows of files, of which there may be a million, at most twice in thirty seconds per
    organization, and what this process stored meanwhile is added. So an organization may exceed the quota a little, and
    room becomes free with a delay.
    """

    def __init__(self, store: Store, clock: Clock, max_bytes: int) -> None:
        self._store = store
        self._clock = clock
        self._max_bytes = max_bytes  # of organizations without a limit of their own; 0: no limit
        self._known: dict[str, _Usage] = {}
        self._reading: dict[str, asyncio.Task[_Usage]] = {}

    async def check(self, org_id: OrgId, more_bytes: int = 0) -> None:
        """Raise StorageQuotaExceeded unless there is room for `more_bytes`; without them, for anything at all."""
        usage = self._known.get(org_id)
        age = _CACHE_SECONDS if usage is None else self._clock.monotonic() - usage.read_at
        if usage is None or age >= _CACHE_SECONDS:
            usage = await asyncio.shield(self._start_reading(org_id))
        elif age >= _FRESH_SECONDS:
            self._start_reading(org_id)
        if usage.max_bytes and usage.used + max(1, more_bytes) > usage.max_bytes:
            raise StorageQuotaExceeded(
                f"Your organization has stored {usage.used} bytes of its {usage.max_bytes}. Delete recordings, purge "
                "requests, or wait until files expire.",
                should_retry=False,
            )
        usage.used += more_bytes

    def count(self, org_id: OrgId, stored_bytes: int) -> None:
        """Add what was stored for an organization since its bytes were added up."""
        if usage := self._known.get(org_id):
            usage.used += stored_bytes

    def _start_reading(self, org_id: OrgId) -> "asyncio.Task[_Usage]":
        """Add the bytes up, once for all calls that come meanwhile."""
        task = self._reading.get(org_id)
        if task is None:
            # An empty context, because the task serves many calls and not only the one that starts it.
            task = asyncio.get_running_loop().create_task(self._read(org_id), context=Context())
            self._reading[org_id] = task
            task.add_done_callback(lambda done: self._end_reading(org_id, done))
        return task

    def _end_reading(self, org_id: OrgId, done: "asyncio.Task[_Usage]") -> None:
        del self._reading[org_id]
        if not done.cancelled() and isinstance(done.exception(), StorageUnavailable):
            log.warning("stored bytes not added up: storage unavailable", org_id=org_id)

    async def _read(self, org_id: OrgId) -> "_Usage":
        (row,) = await self._store.slow("get_stored_bytes", org_id=org_id)
        max_bytes = self._max_bytes if row["max_bytes"] is None else int(row["max_bytes"])
        if len(self._known) >= _MAX_CACHED:
            self._known.clear()
        usage = self._known[org_id] = _Usage(self._clock.monotonic(), int(row["bytes"]), max_bytes)
        return usage


class _Usage(msgspec.Struct):
    """What an organization has stored, and how much it may store."""

    read_at: float  # monotonic
    used: int
    max_bytes: int  # 0: no limit
