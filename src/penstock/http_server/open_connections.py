"""The open connections of a server: how many there may be, and which of them are ended."""

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from penstock.clock import Clock

WINDOW_SECONDS = 10.0
_IDLE_SECONDS = 75.0  # longer than load balancers keep an idle connection, so that they close it first
_ADDRESS_CONNECTIONS = 200
_SLOW_BYTES_PER_SECOND = 10 * 1024
_GRACE_SECONDS = 1.0  # after which a transfer may be called slow
_CROWD = 100  # connections of one address, whose calls are started a few at a time
_STARTED_AT_ONCE = 4
_RESERVED = 16  # connections beyond the limits, which can only ask for the health


class ServedConnection(Protocol):
    """What is asked of a connection."""

    address: str

    def end(self) -> None:
        """End a connection whose head took too long, or whose place another connection needs."""

    def end_window(self) -> None:
        """Note what was transferred in this window of time; end a connection that takes its response too slowly."""

    def bytes_per_second(self, now: float, grace_seconds: float) -> float | None:
        """How quickly the client sends its body or takes its response; None if it does neither, or just began."""


class _StartsInTurn:
    """Starts calls that arrive together: in each round of the event loop only a few, so that others need not wait for
    all of them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._starts: dict[ServedConnection, Callable[[], None]] = {}  # in the order of their arrival
        self._is_starting = False

    def __contains__(self, connection: ServedConnection) -> bool:
        return connection in self._starts

    def add(self, connection: ServedConnection, start: Callable[[], None]) -> None:
        self._starts[connection] = start
        if not self._is_starting:
            self._is_starting = True
            self._loop.call_soon(self._start_some)

    def discard(self, connection: ServedConnection) -> None:
        self._starts.pop(connection, None)

    def _start_some(self) -> None:
        for connection in list(islice(self._starts, _STARTED_AT_ONCE)):
            self._starts.pop(connection)()
        self._is_starting = bool(self._starts)
        if self._is_starting:
            self._loop.call_soon(self._start_some)


class OpenConnections:
    """The open connections of a server.

    Most of them wait for their client: for a head, a body, or that it reads a response. A head that takes longer than
    `head_seconds` is ended, and so is a response that nobody reads. A connection without requests is closed after
    `idle_seconds`, or up to a window of time later. When there are more than `limit` connections, one is ended; see
    `_make_room`. When one address has more than `address_limit`, it is one of its own. A connection that gets no place
    may still ask whether the process is healthy; see `reserve`.
    """

    def __init__(
        self,
        limit: int,
        head_seconds: float,
        clock: Clock,
        *,
        address_limit: int = _ADDRESS_CONNECTIONS,
        window_seconds: float = WINDOW_SECONDS,
        idle_seconds: float = _IDLE_SECONDS,
        grace_seconds: float = _GRACE_SECONDS,
    ) -> None:
        self.limit = limit
        self.clock = clock
        self.grace_seconds = grace_seconds
        self._address_limit = address_limit
        self._head_seconds = head_seconds
        self._window_seconds = window_seconds
        self._idle_seconds = idle_seconds
        self._everyone: set[ServedConnection] = set()
        self._addresses: dict[str, int] = {}
        self._heads: dict[ServedConnection, float] = {}  # and their deadlines, earliest first
        self._idle: dict[ServedConnection, float] = {}  # and since when; the longest idle first
        self._reserved: dict[ServedConnection, float] = {}  # and since when; the oldest first
        self._slow: list[ServedConnection] = []  # the slowest last
        self._slow_at = 0.0  # when they were found
        self._loop = asyncio.get_running_loop()
        self._starts = _StartsInTurn(self._loop)
        self._head_timer: asyncio.TimerHandle | None = None
        self._window_timer: asyncio.TimerHandle | None = None

    # -------------------------------------------------------------------------------------------------------- places

    def add(self, connection: ServedConnection) -> bool:
        """Add a new connection; return False if there are too many and none of them can be ended."""
        if self._window_timer is None:
            self._window_timer = self._loop.call_later(self._window_seconds, self._end_window)
        self._everyone.add(connection)
        return len(self._everyone) - len(self._reserved) <= self.limit or self._make_room(connection)

    def reserve(self, connection: ServedConnection) -> None:
        """Let a connection for which there is no place send a head, with which it may ask for the health. There are few
        such connections: a new one ends the one that has waited longest for its head.
        """
        if len(self._reserved) >= _RESERVED:
            self._end_reserved(next(iter(self._reserved)))
        self._everyone.add(connection)
        self._reserved[connection] = self._loop.time()

    def _end_reserved(self, connection: ServedConnection) -> None:
        del self._reserved[connection]
        connection.end()

    def discard(self, connection: ServedConnection) -> None:
        """Forget a connection that was closed."""
        self.stop_waiting(connection)
        self.leave_address(connection)
        self._starts.discard(connection)
        self._reserved.pop(connection, None)
        self._everyone.discard(connection)

    def enter_address(self, connection: ServedConnection) -> bool:
        """Count a connection for its address; return False if the address has too many that cannot be ended."""
        if not connection.address:
            return True
        count = self._addresses.get(connection.address, 0)
        if count >= self._address_limit and not self._end_one_of(connection.address):
            return False
        self._addresses[connection.address] = count + 1
        return True

    def leave_address(self, connection: ServedConnection) -> None:
        """Stop counting a connection for its address."""
        count = self._addresses.get(connection.address, 0)
        if count > 1:
            self._addresses[connection.address] = count - 1
        else:
            self._addresses.pop(connection.address, None)
        connection.address = ""

    def _make_room(self, new: ServedConnection) -> bool:
        """End the connection that is idle for longest, else one of an address that has more than its share or the
        slowest transfer, else the head that takes longest; False for none.

        An address that has more than its share ends no head of another: a call would fail there, for the sake of one
        that has enough connections.
        """
        ended = next(iter(self._idle), None) or self._choose_busy(new)
        if ended is None:
            return False
        self.stop_waiting(ended)
        self._starts.discard(ended)
        ended.end()
        return True

    def _choose_busy(self, new: ServedConnection) -> ServedConnection | None:
        share = self.limit / (len(self._addresses) or 1)
        crowded = {address for address, count in self._addresses.items() if count > share}
        head = next((head for head in self._heads if head.address in crowded), None) if crowded else None
        ended = head or self._slowest()
        if ended is not None or new.address in crowded:
            return ended
        return self._transfer_of(crowded) or next(iter(self._heads), None)

    def _transfer_of(self, crowded: set[str]) -> ServedConnection | None:
        """Return a transfer, or a connection whose call has not been started, of one of these addresses: a few clients
        may not take all places, not even for the second in which none is called slow.
        """
        if not crowded:
            return None
        now = self._loop.time()
        for connection in self._everyone:
            is_crowded = connection.address in crowded
            if is_crowded and (connection in self._starts or connection.bytes_per_second(now, 0.0) is not None):
                return connection
        return None

    def _end_one_of(self, address: str) -> bool:
        """End the connection of an address that has waited longest for a request."""
        for group in (self._idle, self._heads):
            for connection in group:
                if connection.address == address:
                    self.stop_waiting(connection)
                    connection.end()
                    return True
        return False

    def _slowest(self) -> ServedConnection | None:
        """Return the slowest transfer that is slow; they are looked for at most once a second."""
        now = self._loop.time()
        if not self._slow and now - self._slow_at >= self.grace_seconds:
            self._slow_at = now
            grace = self.grace_seconds
            speeds = [(connection.bytes_per_second(now, grace), connection) for connection in self._everyone]
            slow = [(speed, connection) for speed, connection in speeds if speed is not None]
            self._slow = [connection for _, connection in sorted(slow, key=lambda pair: pair[0], reverse=True)]
        while self._slow:
            connection = self._slow.pop()
            speed = connection.bytes_per_second(now, self.grace_seconds)
            if speed is not None and speed < _SLOW_BYTES_PER_SECOND:
                return connection
        return None

    # -------------------------------------------------------------------------------------------------------- starts

    def is_in_crowd(self, connection: ServedConnection) -> bool:
        """Whether the address of a connection has so many that their calls are started a few at a time."""
        return self._addresses.get(connection.address, 0) > _CROWD

    def start_in_turn(self, connection: ServedConnection, start: Callable[[], None]) -> None:
        """Start the call of a connection in a crowd; it is not started if the connection is closed before."""
        self._starts.add(connection, start)

    # ----------------------------------------------------------------------------------------------------- transfers

    def _end_window(self) -> None:
        """One timer for all connections, so that a response costs no timer of its own."""
        self._window_timer = None
        for connection in tuple(self._everyone):
            connection.end_window()
        last = self._loop.time() - self._idle_seconds
        for connection in [connection for connection, since in self._idle.items() if since <= last]:
            self.stop_waiting(connection)
            connection.end()
        last = self._loop.time() - self._head_seconds
        for connection in [connection for connection, since in self._reserved.items() if since <= last]:
            self._end_reserved(connection)
        if self._everyone:
            self._window_timer = self._loop.call_later(self._window_seconds, self._end_window)

    # --------------------------------------------------------------------------------------------------------- heads

    def start_head(self, connection: ServedConnection) -> None:
        """Start the time of a head; does nothing if it runs already."""
        if connection in self._reserved:
            return
        self._idle.pop(connection, None)
        self._heads.setdefault(connection, self._loop.time() + self._head_seconds)
        if self._head_timer is None:
            self._head_timer = self._loop.call_later(self._head_seconds, self._end_slow_heads)

    def set_idle(self, connection: ServedConnection) -> None:
        """Note that a connection waits for its next request."""
        self._idle[connection] = self._loop.time()

    def stop_waiting(self, connection: ServedConnection) -> None:
        """Note that a connection waits neither for a head nor for its next request."""
        self._heads.pop(connection, None)
        self._idle.pop(connection, None)

    def close(self) -> None:
        for timer in (self._head_timer, self._window_timer):
            if timer is not None:
                timer.cancel()

    def _end_slow_heads(self) -> None:
        """End the heads whose deadline has passed; one timer is enough, since deadlines are in the order of arrival."""
        self._head_timer = None
        now = self._loop.time()
        while self._heads:
            connection, deadline = next(iter(self._heads.items()))
            if deadline > now:
                self._head_timer = self._loop.call_at(deadline, self._end_slow_heads)
                return
            self.stop_waiting(connection)
            connection.end()
