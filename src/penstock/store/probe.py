"""Find out whether the database can be written."""

import asyncio

from penstock.clock import Clock
from penstock.errors import StorageUnavailable
from penstock.store.base import Store

_FRESH_SECONDS = 2.0
_WAIT_SECONDS = 3.0


class WriteProbe:
    """Writes one small row when asked, at most every two seconds."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = asyncio.Lock()
        self._checked_at = float("-inf")
        self._succeeded = False

    async def succeeds(self) -> bool:
        """Whether a write succeeds within three seconds; what was found is returned for two seconds."""
        async with self._lock:
            if self._clock.monotonic() - self._checked_at >= _FRESH_SECONDS:
                self._succeeded = await self._write()
                self._checked_at = self._clock.monotonic()
            return self._succeeded

    async def _write(self) -> bool:
        value = str(self._clock.now_ms())
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._store.write(lambda tx: tx.run("set_fact", name="last_write", value=value))
        except (StorageUnavailable, TimeoutError):
            return False
        return True
