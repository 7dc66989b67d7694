"""Count what happens in a window of time, in this process."""

from penstock.clock import Clock

_MAX_NAMES = 10_000  # with so many a new window begins, so that they do not fill the memory


class WindowCounts:
    """How often each name occurred in the running window, which is the same for all names."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._ends_at = 0.0
        self._counts: dict[str, int] = {}

    @property
    def seconds_left(self) -> int:
        """Until the next window; at least one."""
        return max(1, round(self._ends_at - self._clock.monotonic()))

    def add(self, name: str) -> int:
        """Count a name; return how often it has occurred in this window."""
        now = self._clock.monotonic()
        if now >= self._ends_at or len(self._counts) >= _MAX_NAMES:
            self._counts = {}
            self._ends_at = now + self._seconds
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return count
