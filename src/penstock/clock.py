"""Wall time, monotonic time and sleep; tests put a clock of their own in its place."""

import asyncio
import time
from collections.abc import Callable

# Where the system has it, a clock that goes on while the machine is suspended.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_STEP_MS = 1000


class Clock:
    """Real time. All code takes the time from a clock that it is given, and waits with it.

    `monotonic` returns the seconds since an arbitrary moment, for measuring durations.
    """

    monotonic: Callable[[], float]

    def __init__(self) -> None:
        self.monotonic = time.monotonic  # the function itself: a call asks a dozen times
        self._start_ms = time.time_ns() // 1_000_000 - time.clock_gettime_ns(_STEADY) // 1_000_000
        self.steps = 0  # how often `follow` moved `steady_ms` by more than a second

    def now_ms(self) -> int:
        """Wall time, for values that people and other machines read. It may jump."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """The time of the database, if several machines share it; otherwise wall time at the start of the process. Plus
        the time since then, so setting the wall clock moves nothing.

        For stored times that are waited for, such as the ends of leases: setting the wall clock forward must not make
        all of them due at once, setting it back must not stop them, and all processes must agree on them.
        """
        return self._start_ms + time.clock_gettime_ns(_STEADY) // 1_000_000

    def follow(self, earliest_ms: int, latest_ms: int) -> None:
        """Move `steady_ms` into these bounds, as little as possible: a clock that others follow too is between them."""
        now_ms = self.steady_ms()
        moved_ms = min(max(now_ms, earliest_ms), latest_ms) - now_ms
        self._start_ms += moved_ms
        if abs(moved_ms) > _STEP_MS:
            self.steps += 1

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until the event is set or the time is over. Either way the event is set afterwards."""
        timer = asyncio.get_running_loop().call_later(seconds, event.set)  # far cheaper than asyncio.wait_for
        try:
            await event.wait()
        finally:
            timer.cancel()
