"""Look up host names in a limited number of places, of which each organization has a share."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable

from penstock.net.errors import LookupBusy, NotSent

PLACES = 32  # each is a thread while a name is looked up by the system, and a name server that hangs occupies it
_SHARE = 8  # places of one organization

Resolver = Callable[[str, int], Awaitable[list[str]]]


class NameLookups:
    """Looks up names with a resolver, at most PLACES at a time.

    A lookup that has begun occupies its place until the resolver returns, also if nobody waits for it any more: the
    system offers no way to stop it. Lookups of the same name at the same time are one.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._under_way: dict[tuple[str, int], asyncio.Task[list[str]]] = {}
        self._occupied: Counter[str] = Counter()  # places by share
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def look_up(self, host: str, port: int, *, share: str, seconds: float) -> list[str]:
        """Return the IP addresses of a host.

        Raises LookupBusy if no place was free in time, NotSent if the name was not found or not in time.
        """
        task = self._under_way.get((host, port))
        try:
            async with asyncio.timeout(seconds):
                if task is None:
                    await self._wait_for_place(share)
                    task = self._under_way.get((host, port))
                    if task is None:
                        task = self._start(host, port, share)
                    else:
                        self._release(share)  # another has begun while this waited
                return await asyncio.shield(task)
        except (OSError, UnicodeError) as error:  # a TimeoutError, or a name that is none
            if task is None and isinstance(error, TimeoutError):
                raise LookupBusy from None
            raise NotSent("the host name could not be looked up") from None

    async def close(self) -> None:
        """Stop waiting for lookups that are under way."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    def _start(self, host: str, port: int, share: str) -> asyncio.Task[list[str]]:
        async def resolve() -> list[str]:
            return await self._resolver(host, port)

        def end(task: asyncio.Task[list[str]]) -> None:
            if self._under_way.get((host, port)) is task:
                del self._under_way[host, port]
            self._release(share)
            if not task.cancelled():
                task.exception()  # is raised for those who wait; there may be none

        task = asyncio.create_task(resolve())
        self._under_way[host, port] = task
        task.add_done_callback(end)
        return task

    # --------------------------------------------------------------------------------------------------------- places

    async def _wait_for_place(self, share: str) -> None:
        if self._has_place(share) and share not in self._waiting:
            self._occupied[share] += 1
            return
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(share, deque()).append(admitted)
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self._release(share)  # it was admitted in the same moment
            raise

    def _has_place(self, share: str) -> bool:
        return self._occupied.total() < PLACES and self._occupied[share] < _SHARE

    def _release(self, share: str) -> None:
        self._occupied[share] -= 1
        if not self._occupied[share]:
            del self._occupied[share]
        for other in [name for name in self._waiting if name != share] + [share]:  # others first
            self._admit(other)

    def _admit(self, share: str) -> None:
        queue = self._waiting.get(share)
        while queue and self._has_place(share):
            admitted = queue.popleft()
            if not admitted.done():
                self._occupied[share] += 1
                admitted.set_result(None)
        if queue is not None and not queue:
            del self._waiting[share]
