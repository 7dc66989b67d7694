"""The event loop shares its time: long work takes turns, and helping threads do not break in."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LONG_BYTES = 256 * 1024  # less than that is done in no time


class Turns:
    """Whoever has long work to do asks first; of all who ask, one is answered each time the loop goes round."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, size_bytes: int) -> None:
        if size_bytes > _LONG_BYTES:
            async with self._lock:
                await asyncio.sleep(0)


@contextmanager
def unobtrusive() -> Iterator[None]:
    """Where there is one processor, threads that are begun in here run when the event loop pauses.

    By default Linux lets a thread that wakes push aside whoever runs. Where loop and thread share a processor, that is
    two changes of context for each call to a provider, and a fifth of what the call costs. With several processors the
    thread finds another one. Threads inherit how they are scheduled.
    """
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) > 1 or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield  # also where somebody chose another way: they know why
        return
    with suppress(OSError):  # a sandbox may not allow it, and nothing depends on it
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
