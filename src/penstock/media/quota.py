"""Limit how many bytes of files an organization may have stored."""

from penstock.clock import Clock
from penstock.errors import StorageQuotaExceeded
from penstock.store.base import Store

_CACHE_SECONDS = 30.0
_MAX_CACHED = 10_000


class StorageQuota:
    """Refuses new files of organizations that have stored as much as the setting `storage_bytes_per_org` allows.

    The bytes are added up from the rows of files at most once in thirty seconds per organization, and what was accepted
    meanwhile is added. So an organization may exceed the quota a little, and room becomes free with a delay.
    """

    def __init__(self, store: Store, clock: Clock, max_bytes: int) -> None:
        self._store = store
        self._clock = clock
        self._max_bytes = max_bytes  # 0: no limit
        self._used: dict[str, tuple[float, int]] = {}  # until when a sum may be used, and the sum

    async def check(self, org_id: str, more_bytes: int = 0) -> None:
        """Raise StorageQuotaExceeded unless there is room for `more_bytes`; without them, for anything at all."""
        if not self._max_bytes:
            return
        until, used = self._used.get(org_id, (0.0, 0))
        if self._clock.monotonic() >= until:
            until = self._clock.monotonic() + _CACHE_SECONDS
            self._used[org_id] = (until, used)  # calls that come meanwhile use the old sum instead of adding up, too
            used = await self._sum(org_id)
            self._used[org_id] = (until, used)
        if used + max(1, more_bytes) > self._max_bytes:
            raise StorageQuotaExceeded(
                f"Your organization has stored {used} bytes of its {self._max_bytes}. Delete recordings, purge "
                "requests, or wait until files expire.",
                should_retry=False,
            )
        if len(self._used) >= _MAX_CACHED:
            self._used.clear()
        self._used[org_id] = (until, used + more_bytes)

    async def _sum(self, org_id: str) -> int:
        row = await self._store.one("get_stored_bytes", org_id=org_id)
        return int(row["bytes"]) if row else 0
