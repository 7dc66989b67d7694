"""Long work on the event loop takes turns, so that nobody else waits for all of it."""

import asyncio

_LONG_BYTES = 256 * 1024  # less than that is done in no time


class Turns:
    """Whoever has long work to do asks first; of all who ask, one is answered each time the loop goes round."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, size_bytes: int) -> None:
        if size_bytes > _LONG_BYTES:
            async with self._lock:
                await asyncio.sleep(0)
