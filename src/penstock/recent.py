"""Keep values for up to a second, so that what many pieces of work need at the same time is read once."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

SECONDS: Final = 1.0


class Recent(Generic[Key, Value]):
    """Values by key, none of them older than a second. All of them are forgotten together."""

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
            self._until = now + SECONDS
        self._values[key] = value
