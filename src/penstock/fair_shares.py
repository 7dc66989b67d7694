"""Share places for work among organizations, so that none waits behind all the work of another."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from penstock.values import OrgId


class _Share(msgspec.Struct):
    """The work of one organization."""

    running: int = 0
    last_turn: int = 0
    waiting: deque["_Waiter"] = msgspec.field(default_factory=deque)

    @property
    def rank(self) -> tuple[int, int]:
        return self.running, self.last_turn


class _Waiter(msgspec.Struct, eq=False):
    long: bool
    granted: asyncio.Future[None]


class SharedPlaces:
    """A number of places for work, of which long work leaves one free.

    A free place goes to the organization with the fewest places; among equals, to the one whose last turn is longest
    ago. So an organization may have every place while no other wants one, and work of another waits at most until one
    place is free. Work of one organization starts in the order in which it came, except that short work may pass long
    work that has to leave the last place free.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._long_free = places - 1
        self._shares: dict[OrgId, _Share] = {}
        self._turn = 0

    @asynccontextmanager
    async def place(self, for_org: OrgId, *, long: bool = False) -> AsyncIterator[None]:
        """Wait for a place, and hold it inside the context."""
        share = self._shares.setdefault(for_org, _Share())
        waiter = _Waiter(long, asyncio.get_running_loop().create_future())
        share.waiting.append(waiter)
        self._grant()
        try:
            await waiter.granted
            yield
        finally:
            if waiter in share.waiting:  # cancelled before its turn
                share.waiting.remove(waiter)
            else:
                self._release(share, long=long)
            if not share.running and not share.waiting:
                self._shares.pop(for_org, None)

    def _grant(self) -> None:
        """Give free places to those who wait."""
        while self._free and (found := self._next_waiter()):
            share, waiter = found
            share.waiting.remove(waiter)
            share.running += 1
            self._turn += 1
            share.last_turn = self._turn
            self._free -= 1
            self._long_free -= waiter.long
            if not waiter.granted.done():
                waiter.granted.set_result(None)

    def _next_waiter(self) -> tuple[_Share, _Waiter] | None:
        for share in sorted(self._shares.values(), key=lambda share: share.rank):
            for waiter in share.waiting:
                if not waiter.long or self._long_free:
                    return share, waiter
        return None

    def _release(self, share: _Share, *, long: bool) -> None:
        share.running -= 1
        self._free += 1
        self._long_free += long
        self._grant()
