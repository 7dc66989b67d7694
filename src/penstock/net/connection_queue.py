"""Requests that wait for a connection to one server, until another request gives one back or it is time to open one."""

import asyncio
from collections import deque
from collections.abc import Callable

from penstock.net.connection import Connection

_LOOK_SECONDS = 0.25

_Waiter = asyncio.Future[Connection | None]


class ConnectionQueue:
    """Hands connections to the requests that wait, in the order in which they came.

    Every quarter of a second, a request that waits compares how many wait with how many got a connection in that time.
    If more wait, it opens another one. So a server that responds slowly gets as many connections as there are requests,
    and a fast one does not get many at once only because this process is busy.
    """

    def __init__(self) -> None:
        self._waiters: deque[_Waiter] = deque()
        self._passed_on = 0

    def __len__(self) -> int:
        return len(self._waiters)

    async def wait(self, seconds: float, hand_over: Callable[[Connection], None]) -> Connection | None:
        """Wait for a connection; None when it is time to open one. `hand_over` gets the one of a cancelled request."""
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        self._waiters.append(waiter)
        deadline = loop.time() + seconds
        timer = self._look_later(waiter, deadline)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and (connection := waiter.result()):
                hand_over(connection)
            raise
        finally:
            timer.cancel()
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def pass_on(self, connection: Connection | None) -> bool:
        """Give a connection, or None to have one opened, to the request that waits longest; False if none waits."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                self._passed_on += 1
                return True
        return False

    def _look_later(self, waiter: _Waiter, deadline: float) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        seconds = max(0.0, min(_LOOK_SECONDS, deadline - loop.time()))
        return loop.call_later(seconds, self._look, waiter, deadline, self._passed_on)

    def _look(self, waiter: _Waiter, deadline: float, passed_on_before: int) -> None:
        """End the wait when its time is over, or when more requests wait than got a connection since the last look."""
        if waiter.done():
            return
        is_over = asyncio.get_running_loop().time() >= deadline
        if is_over or len(self._waiters) > self._passed_on - passed_on_before:
            self._waiters.remove(waiter)
            waiter.set_result(None)
        else:
            self._look_later(waiter, deadline)
