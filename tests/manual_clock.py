"""A clock that moves only when a test moves it, and one that is ahead of others."""

import asyncio
import heapq
from itertools import count

from penstock.clock import Clock


class ManualClock(Clock):
    """A clock that moves only when told. Sleepers wake in the order of their times."""

    def __init__(self, at_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = float(at_ms)
        self._steady_ms = float(at_ms)
        self._seconds = 1000.0
        self.steps = 0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return round(self._wall_ms)

    def steady_ms(self) -> int:
        return round(self._steady_ms)

    def follow(self, earliest_ms: int, latest_ms: int) -> None:
        """Stay: the clock of a real database goes on by itself."""

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


class SetClock(Clock):
    """The clock of a machine that is ahead of others."""

    def __init__(self, ahead_seconds: float) -> None:
        super().__init__()
        self.ahead_ms = int(ahead_seconds * 1000)
        self._start_ms += self.ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms
