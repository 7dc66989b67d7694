"""Count the bodies of calls that are not accepted yet, so that together they cannot fill the memory of a process."""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from penstock.api.body import Receive
from penstock.errors import Unavailable
from penstock.schema import Caller
from penstock.settings import Settings


class BodyShare:
    """The bytes of one body, which count from when they arrive until its call is accepted or has ended."""

    def __init__(self, budget: "BodyBudget", limits: Mapping[str, int], headers: Mapping[str, str], receive: Receive):
        self._budget = budget
        self._limits = limits
        self._receive = receive
        self._announced = headers.get("content-length", "")
        self._counted = 0

    async def receive(self) -> MutableMapping[str, Any]:
        """Receive the next part of the body; raise Unavailable when the body does not fit."""
        if self._announced:  # better refused now than in the middle
            size = int(self._announced) if self._announced.isdecimal() else 0
            self._budget.check(self._limits, size, self._counted)
            self._announced = ""
        message = await self._receive()
        size = len(message.get("body", b""))
        self._budget.check(self._limits, size, self._counted)
        self._counted += size
        self._budget.count(self._limits, size)
        return message

    def release(self) -> None:
        """Give all of it back."""
        counted, self._counted = self._counted, 0
        self._budget.count(self._limits, -counted)


class BodyBudget:
    """How many bytes of bodies may be in memory before their calls are accepted, in all, per organization and per key.

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
    def share(self, caller: Caller, headers: Mapping[str, str], receive: Receive) -> Iterator[BodyShare]:
        """Count the body of a call until its share is released, at the latest after this."""
        limits = {
            "all": self._total,
            caller.org_id or "without a key": self._per_org,
            caller.key_id or "anonymous": self._per_key,
        }
        share = BodyShare(self, limits, headers, receive)
        try:
            yield share
        finally:
            share.release()

    def check(self, limits: Mapping[str, int], size: int, counted: int) -> None:
        """Raise Unavailable if `size` more bytes of a body, of which `counted` are here, do not fit."""
        if counted + size > self._largest:
            return  # too large by itself: its size limit refuses it
        if any(self._used.get(name, 0) + size > limit for name, limit in limits.items()):
            raise Unavailable("Too many large bodies are being received or wait; send it again in a moment.")

    def count(self, names: Mapping[str, int], size: int) -> None:
        """Count more bytes, or fewer."""
        for name in names:
            left = self._used.get(name, 0) + size
            if left > 0:
                self._used[name] = left
            else:
                self._used.pop(name, None)
