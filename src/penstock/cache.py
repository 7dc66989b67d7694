"""Keep values in memory for a while, and not too many of them."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

RECENT_SECONDS: Final = 1.0


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


class Recent(Generic[Key, Value]):
    """Values by key, none of them older than a second: what many calls need at the same time is read once.

    All of them are forgotten together, so that old ones do not stay in memory.
    """

    __slots__ = ("_monotonic", "_until", "_values")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until = 0.0
        self._values: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        return self._values.get(key) if self._monotonic() < self._until else None

    def put(self, key: Key, value: Value) -> None:
        now = self._monotonic()
        if now >= self._until:
            self._values.clear()
            self._until = now + RECENT_SECONDS
        self._values[key] = value
