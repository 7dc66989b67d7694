"""Count the bodies that are being received in a process, so that together they cannot fill its memory."""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from penstock.api.body import Receive
from penstock.errors import Unavailable
from penstock.schema import Caller
from penstock.settings import Settings


class BodyBudget:
    """How many bytes of bodies may be in memory before their calls begin, in all, per organization and per key.

    An organization may have half of them, a key a quarter, and each at least one body of the largest size.
    """

    def __init__(self, settings: Settings) -> None:
        largest = max(settings.json_bytes, settings.form_bytes)
        self._largest = largest
        self._total = settings.receiving_bytes
        self._per_org = max(self._total // 2, largest)
        self._per_key = max(self._total // 4, largest)
        self._used: dict[str, int] = {}  # by organization and by key; "all" for everybody

    @property
    def used(self) -> int:
        return self._used.get("all", 0)

    @contextmanager
    def receiving(self, caller: Caller, headers: Mapping[str, str], receive: Receive) -> Iterator[Receive]:
        """Give a `receive` that counts, and raises Unavailable when the body would not fit; give it all back after."""
        limits = {
            "all": self._total,
            caller.org_id or "without a key": self._per_org,
            caller.key_id or "anonymous": self._per_key,
        }
        counted = 0
        announced = headers.get("content-length", "")

        async def receive_counted() -> MutableMapping[str, Any]:
            nonlocal counted, announced
            if announced:  # better refused now than in the middle
                self._check(limits, int(announced) if announced.isdecimal() else 0, counted)
                announced = ""
            message = await receive()
            size = len(message.get("body", b""))
            self._check(limits, size, counted)
            counted += size
            for name in limits:
                self._used[name] = self._used.get(name, 0) + size
            return message

        try:
            yield receive_counted
        finally:
            self._give_back(limits, counted)

    def _check(self, limits: Mapping[str, int], size: int, counted: int) -> None:
        """Raise Unavailable if `size` more bytes of a body, of which `counted` are here, do not fit."""
        if counted + size > self._largest:
            return  # too large by itself: its size limit refuses it
        if any(self._used.get(name, 0) + size > limit for name, limit in limits.items()):
            raise Unavailable("Too many large bodies are being received; send it again in a moment.")

    def _give_back(self, names: Mapping[str, int], size: int) -> None:
        for name in names:
            left = self._used.get(name, 0) - size
            if left > 0:
                self._used[name] = left
            else:
                self._used.pop(name, None)
