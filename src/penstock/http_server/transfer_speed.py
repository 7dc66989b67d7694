"""Measure how quickly a client sends its request and takes its response."""

from typing import NamedTuple

# A response must be read: in each window of time so many bytes, or it is too slow after so many windows.
_WINDOW_BYTES = 10 * 1024
_SLOW_WINDOWS = 3


class Transferred(NamedTuple):
    """How many bytes a client had sent, how many it had taken, and how many were written for it, at a moment."""

    at: float
    received: int = 0
    taken: int = 0
    written: int = 0


class TransferSpeed:
    """The speed of one client, measured since the window of time before the running one began."""

    __slots__ = ("_last", "_since", "_slow_windows")

    def __init__(self, now: Transferred) -> None:
        self.restart(now)
        self._slow_windows = 0

    def restart(self, now: Transferred) -> None:
        """Measure from now on: before, nothing was expected of the client."""
        self._since = self._last = now

    def end_window(self, now: Transferred) -> None:
        last = self._last
        is_slow = now.taken < last.written and now.taken - last.taken < _WINDOW_BYTES
        self._slow_windows = self._slow_windows + 1 if is_slow else 0
        self._since, self._last = last, now

    @property
    def is_too_slow(self) -> bool:
        """Whether the client has left its response unread for several windows."""
        return self._slow_windows >= _SLOW_WINDOWS

    def seconds(self, now: float) -> float:
        """For how long the client has been measured."""
        return now - self._since.at

    def received_per_second(self, now: Transferred) -> float:
        return (now.received - self._since.received) / (self.seconds(now.at) or 1.0)

    def taken_per_second(self, now: Transferred) -> float:
        return (now.taken - self._since.taken) / (self.seconds(now.at) or 1.0)
