"""Limit how many bytes of files an organization may have stored."""

import msgspec

from penstock.clock import Clock
from penstock.errors import StorageQuotaExceeded
from penstock.store.base import Store
from penstock.values import OrgId

_CACHE_SECONDS = 30.0
_MAX_CACHED = 10_000


class StorageQuota:
    """Refuses new files of organizations that have stored as much as they may: as many bytes as are set for the
    organization itself, else as the setting `storage_bytes_per_org` says.

    The bytes are added up from the rows of files at most once in thirty seconds per organization, and what this process
    stored meanwhile is added. So an organization may exceed the quota a little, and room becomes free with a delay.
    """

    def __init__(self, store: Store, clock: Clock, max_bytes: int) -> None:
        self._store = store
        self._clock = clock
        self._max_bytes = max_bytes  # of organizations without a limit of their own; 0: no limit
        self._known: dict[str, _Usage] = {}

    async def check(self, org_id: OrgId, more_bytes: int = 0) -> None:
        """Raise StorageQuotaExceeded unless there is room for `more_bytes`; without them, for anything at all."""
        usage = self._known.get(org_id)
        if usage is None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            usage = self._known[org_id] = _Usage()
        if self._clock.monotonic() >= usage.until:
            # Set at once: calls that come meanwhile use the old sum instead of adding up, too.
            usage.until = self._clock.monotonic() + _CACHE_SECONDS
            await self._read(org_id, usage)
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

    async def _read(self, org_id: OrgId, usage: "_Usage") -> None:
        row = await self._store.one("get_stored_bytes", org_id=org_id)
        assert row is not None, "sums are always returned"
        usage.used = int(row["bytes"])
        usage.max_bytes = self._max_bytes if row["max_bytes"] is None else int(row["max_bytes"])


class _Usage(msgspec.Struct):
    """What an organization has stored, and how much it may store."""

    until: float = 0.0  # when to read it again
    used: int = 0
    max_bytes: int = 0  # 0: no limit
