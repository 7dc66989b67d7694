"""The clock: wall time, monotonic time and sleep, replaceable in tests."""

import asyncio
import heapq
import time
from collections.abc import Iterable
from itertools import count
from typing import Any

_AGAIN_SECONDS = 0.2
# Counts on while a machine is suspended, where the system has such a clock; two processes then agree afterwards.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended. A cancel that meets the end of a timed wait may get lost in Python
    3.11, so it is said again and again.
    """
    left = everyone = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_SECONDS)
    await asyncio.gather(*everyone, return_exceptions=True)


class Clock:
    """Real time. Everything that asks what time it is, or waits, asks one of these."""

    def __init__(self) -> None:
        self._start_ms = time.time_ns() // 1_000_000 - time.clock_gettime_ns(_STEADY) // 1_000_000

    def now_ms(self) -> int:
        """Wall time, for what people and other machines read; it may jump."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Wall time as it was when the process began, carried on without jumps.

        For moments that are stored and waited for, such as leases and retries: setting the wall clock forward must
        not make them all due at once, and setting it back must not stop them.
        """
        return self._start_ms + time.clock_gettime_ns(_STEADY) // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some moment, for measuring how long things take."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event is set or the time is over, whichever comes first; the event is set afterwards."""
        timer = asyncio.get_running_loop().call_later(seconds, event.set)  # far cheaper than a task that races
        try:
            await event.wait()
        finally:
            timer.cancel()


class ManualClock(Clock):
    """A clock that stands still until it is moved, for tests; sleepers wake in the order of their moments."""

    def __init__(self, at_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = float(at_ms)
        self._steady_ms = float(at_ms)
        self._seconds = 1000.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return round(self._wall_ms)

    def steady_ms(self) -> int:
        return round(self._steady_ms)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._seconds + seconds, next(self._order), woken))
        await woken

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        def ring(timer: asyncio.Future[None]) -> None:
            if not timer.cancelled():  # whoever has cleared the event since must not find it set again
                event.set()

        timer = asyncio.get_running_loop().create_future()
        timer.add_done_callback(ring)
        heapq.heappush(self._sleepers, (self._seconds + seconds, next(self._order), timer))
        try:
            await event.wait()
        finally:
            timer.cancel()

    @property
    def sleeping(self) -> int:
        """How many wait for this clock to move."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, seconds: float) -> None:
        """Let time pass. Whoever is woken runs when the caller next awaits."""
        self._wall_ms += seconds * 1000
        self._steady_ms += seconds * 1000
        self._seconds += seconds
        # A nanosecond of grace: sums of floats that should meet must not miss each other.
        while self._sleepers and self._sleepers[0][0] <= self._seconds + 1e-9:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():  # a sleeper may have been cancelled
                woken.set_result(None)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or a time server may; no time passes."""
        self._wall_ms += seconds * 1000
