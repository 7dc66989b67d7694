"""Wall time, monotonic time and sleep, replaceable in tests."""

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

_CANCEL_AGAIN_SECONDS = 0.2
# Where the system has it, a clock that goes on while the machine is suspended.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended; their exceptions are ignored.

    Python 3.11 may lose a cancellation that coincides with the end of `asyncio.wait_for`, so tasks are cancelled
    repeatedly until they end.
    """
    everyone = set(tasks)
    left = everyone
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN_SECONDS)
    await asyncio.gather(*everyone, return_exceptions=True)


class Clock:
    """Real time. All code takes the time from a clock that it is given, and waits with it.

    `monotonic` returns the seconds since an arbitrary moment, for measuring durations.
    """

    monotonic: Callable[[], float]

    def __init__(self) -> None:
        self.monotonic = time.monotonic  # the function itself: a call asks a dozen times
        self._start_ms = time.time_ns() // 1_000_000 - time.clock_gettime_ns(_STEADY) // 1_000_000

    def now_ms(self) -> int:
        """Wall time, for values that people and other machines read. It may jump."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Wall time at the start of the process plus the time since then, so it never jumps.

        For stored times that are waited for, such as the ends of leases: setting the wall clock forward must not make
        all of them due at once, and setting it back must not stop them.
        """
        return self._start_ms + time.clock_gettime_ns(_STEADY) // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until the event is set or the time is over. Either way the event is set afterwards."""
        timer = asyncio.get_running_loop().call_later(seconds, event.set)  # far cheaper than asyncio.wait_for
        try:
            await event.wait()
        finally:
            timer.cancel()


class ManualClock(Clock):
    """A clock for tests, which moves only when told. Sleepers wake in the order of their times."""

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
        def set_event(timer: asyncio.Future[None]) -> None:
            if not timer.cancelled():  # the event may have been cleared since and must stay so
                event.set()

        timer = asyncio.get_running_loop().create_future()
        timer.add_done_callback(set_event)
        heapq.heappush(self._sleepers, (self._seconds + seconds, next(self._order), timer))
        try:
            await event.wait()
        finally:
            timer.cancel()

    @property
    def sleeping(self) -> int:
        """Number of sleepers that wait for this clock to move."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, seconds: float) -> None:
        """Let time pass. Sleepers whose time has come run when the caller next awaits."""
        self._wall_ms += seconds * 1000
        self._steady_ms += seconds * 1000
        self._seconds += seconds
        # A nanosecond of tolerance, because sums of floats are not exact.
        while self._sleepers and self._sleepers[0][0] <= self._seconds + 1e-9:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():  # a sleeper may have been cancelled
                woken.set_result(None)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or a time server does. No time passes."""
        self._wall_ms += seconds * 1000
