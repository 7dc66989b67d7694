"""Wall time, monotonic time and sleep; tests put a clock of their own in its place."""

import asyncio
import time
from collections.abc import Callable

# Where the system has it, a clock that goes on while the machine is suspended.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


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
