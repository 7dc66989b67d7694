"""Keep values in memory for a while, and not too many of them."""

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Values by key, each of them for as long as was said when it was put in.

    When there are too many, the one that was put in first is dropped.
    """

    def __init__(self, monotonic: Callable[[], float], most: int) -> None:
        self._monotonic = monotonic
        self._most = most
        self._entries: dict[Key, tuple[float, Value]] = {}  # with the time at which each expires

    def get(self, key: Key) -> Value | None:
        """The value; None if there is none, or its time is over."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and self._monotonic() < entry[0] else None

    def put(self, key: Key, value: Value, seconds: float) -> None:
        """Keep a value for so many seconds, in place of the one that the key has."""
        self._entries.pop(key, None)
        if len(self._entries) >= self._most:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (self._monotonic() + seconds, value)

    def discard(self, key: Key) -> None:
        """Forget the value of a key, if it has one."""
        self._entries.pop(key, None)
