"""A connection of HTTP/1.1 to a server, over which one request at a time is sent and its response received."""

import asyncio
import select
import socket
from collections import deque
from contextlib import aclosing
from functools import lru_cache
from math import inf
from typing import cast

import httptools

from penstock.long_bodies.arrivals import STEP_BYTES, Arrivals
from penstock.long_bodies.long_body import LongBody, StreamedBody
from penstock.net.errors import MaybeSent
from penstock.net.response import Headers

_MAX_HEAD_BYTES = 64 * 2**10
_READ_AHEAD_BYTES = 256 * 2**10
_MAX_HEADER_LINES = 256
_LEAST_CHUNK_BYTES = 16  # on average; a stream may have small events
PIECE_BYTES = 256 * 2**10  # of a request that are written at once
_BODILESS = (204, 304)
_TIMER_SECONDS = 0.001  # how precise timers are


class Connection(asyncio.Protocol):
    """A connection to a server, and the response that is being received over it."""

    def __init__(self, connections: "set[Connection]", sock: socket.socket) -> None:
        self._connections = connections
        self._arrivals = select.poll()  # shows bytes and the end also before the event loop has seen them
        self._arrivals.register(sock, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self._parsed = Arrivals(_LEAST_CHUNK_BYTES)  # of the body, since it was last taken
        self.on_body = self._parsed.add  # called by the parser
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._wait_ends_at = 0.0
        self._timer: asyncio.TimerHandle | None = None  # one for all waits, which hardly ever last until their end
        self._timer_at = inf
        self._is_lost = False
        self._can_write = True
        self._is_idle = True
        self.idle_until = 0.0

    # ------------------------------------------------------------------------------------------------------- requests

    def begin(self, deadline: float, read_seconds: float, *, is_head: bool = False) -> None:
        """Expect a response; to a HEAD request it has no body, whatever its head says."""
        self._is_head = is_head
        self._deadline = deadline
        self._read_seconds = read_seconds
        self._head_bytes = 0  # since the last bytes of a body, so those of its trailer, too
        self._header_lines = 0
        self._parsed.restart()
        self._chunks: deque[bytes] = deque()
        self._buffered_bytes = 0
        self._is_reading = True
        self.has_head = False
        self._is_complete = False
        self._is_whole_request_sent = False
        self._keeps_alive = False
        self._failure = ""  # why nothing more can be read
        self._is_idle = False
        self.status = 0
        self.headers = Headers()

    def write(self, request: bytes) -> None:
        """Send a whole request that is short."""
        self._transport.write(request)
        self._is_whole_request_sent = True

    async def write_long(self, head: bytes, body: bytes | LongBody | StreamedBody) -> None:
        """Send a request, or as much of it as the server takes before it responds.

        Raises MaybeSent for a body that has another length than it says, and whatever reading it raises.
        """
        self._transport.write(head)
        if isinstance(body, StreamedBody):
            await self._write_streamed(body)
            return
        for piece in body if isinstance(body, LongBody) else LongBody([body]):
            if await self._write_piece(piece):
                return
        self._is_whole_request_sent = True

    async def _write_streamed(self, body: StreamedBody) -> None:
        left = len(body)
        async with aclosing(body.chunks):
            async for piece in body.chunks:
                left -= len(piece)
                if left < 0:
                    break
                if await self._write_piece(piece):
                    return
        if left:
            raise MaybeSent("the file has another length than it had")
        self._is_whole_request_sent = True

    async def _write_piece(self, piece: bytes) -> bool:
        """Send a piece of a body; return whether the server has responded already."""
        self._transport.write(piece)
        await asyncio.sleep(0)  # one piece takes little time, all of them may take long
        while not self._can_write and not self._has_response:
            await self._next_event(self._deadline)
        return self._has_response

    @property
    def _has_response(self) -> bool:
        return self.has_head or self._is_lost or bool(self._failure)

    def take_whole_body(self) -> bytes | None:
        """Return the body if all of it has arrived, as one piece; otherwise None, and `read_chunk` reads it."""
        if not self._is_complete or len(self._chunks) != 1 or not self._is_reading:
            return None
        self._buffered_bytes = 0
        return self._chunks.popleft()

    async def read_chunk(self) -> bytes | None:
        """Return the next bytes of the body; None at its end. Raises MaybeSent."""
        while not self._chunks:
            if self._is_complete:
                return None
            await self.next_data()
        chunk = self._chunks.popleft()
        self._buffered_bytes -= len(chunk)
        if not self._chunks and not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()
        return chunk

    def next_data(self) -> asyncio.Future[None]:
        """What ends when something arrives; raise MaybeSent if nothing will."""
        if self._failure:
            raise MaybeSent(self._failure)
        if self._is_lost:
            raise MaybeSent("the connection was closed before the end of the response")
        return self._next_event(min(self._loop.time() + self._read_seconds, self._deadline))

    def _next_event(self, until: float) -> asyncio.Future[None]:
        """What ends when something happens on this connection; it raises MaybeSent if nothing does in time, and so does
        this if the time is over.
        """
        if until <= self._loop.time():
            raise _timed_out()
        self._wait_ends_at = until
        if until < self._timer_at:
            self._set_timer(until)
        self._waiter = self._loop.create_future()
        return self._waiter

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._end_wait)
        self._timer_at = at

    def _end_wait(self) -> None:
        """End the wait whose time is over; the timer goes on for one that began later."""
        self._timer = None
        self._timer_at = inf
        if self._waiter is None or self._waiter.done():
            return
        if self._wait_ends_at - self._loop.time() > _TIMER_SECONDS:
            self._set_timer(self._wait_ends_at)
        else:
            self._waiter.set_exception(_timed_out())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ---------------------------------------------------------------------------------------------------------- reuse

    def release(self) -> bool:
        """End the exchange. Returns whether the next request can be sent over this connection."""
        is_clean = self._is_complete and self._is_whole_request_sent and self._keeps_alive and not self._chunks
        self._is_idle = is_clean and not self._failure and not self._is_lost
        return self._is_idle

    def is_fresh(self) -> bool:
        """Whether the server has neither closed the idle connection nor sent anything."""
        if self._is_lost or self._transport.is_closing() or self.idle_until <= self._loop.time():
            return False
        return not self._arrivals.poll(0)

    def abort(self) -> None:
        """Close the connection at once, without waiting for what is not sent yet."""
        self._transport.abort()
        self._chunks.clear()  # nobody reads them; a connection may wait for the garbage collector

    # ---------------------------------------------------------------------------------------- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)
        self._transport.set_write_buffer_limits(high=PIECE_BYTES)

    def connection_lost(self, _: Exception | None) -> None:
        self._is_lost = True
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_idle and self.has_head and self._ends_with_connection:
            self._is_complete = True
        self._wake()

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._wake()

    def data_received(self, data: bytes) -> None:
        if self._is_idle or self._is_complete:
            self.abort()  # nothing was asked for, so nothing may be taken for the next response
            return
        if len(data) <= STEP_BYTES:
            self._parse(data)
        else:
            for start in range(0, len(data), STEP_BYTES):
                self._parse(data[start : start + STEP_BYTES])
                if self._failure:
                    break
        self._take_body()
        if self._buffered_bytes > _READ_AHEAD_BYTES and self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()
        self._wake()

    def _parse(self, data: bytes) -> None:
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._keeps_alive = False
            if not self._is_complete:
                self._failure = self._failure or "the response is malformed"
        if self._is_complete:
            return
        if self._parsed.pieces:
            self._head_bytes = 0
        if self._head_bytes > _MAX_HEAD_BYTES:
            self._failure = "the headers of the response are too long"
        elif self._parsed.are_too_small:
            self._failure = "the chunks of the response are too small"

    def _take_body(self) -> None:
        """Keep what was parsed of the body until it is read."""
        if not self._parsed.pieces:
            return
        chunks = self._parsed.take_few()
        if self.has_head and not self._is_complete:
            self._chunks.extend(chunks)
            self._buffered_bytes += sum(map(len, chunks))

    # ------------------------------------------------------------------------------------------- called by the parser

    def on_message_begin(self) -> None:
        if self._is_complete:
            self._keeps_alive = False  # a second response that nobody asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_lines += 1
        if self._header_lines > _MAX_HEADER_LINES:
            self._failure = "the response has too many headers"
            raise ValueError(self._failure)  # ends the parser
        if self.has_head:  # it is a trailer
            return
        lower = _lower_name(name)
        if value.isascii():
            self.headers.setdefault(lower, value.decode())
        elif lower == "content-encoding":  # other values that are not text are left out; this one must not be
            self.headers.setdefault(lower, "unreadable")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._is_complete:
            return
        announces_length = "content-length" in self.headers
        announces_chunks = "transfer-encoding" in self.headers
        if status < 200:
            if announces_length or announces_chunks:
                self._failure = "an interim response announces a body"
                raise ValueError(self._failure)  # ends the parser
            return
        self.status = status
        self.has_head = True
        self._is_complete = self._is_head
        self._head_bytes = 0
        self._ends_with_connection = not (announces_length or announces_chunks)
        has_body = announces_chunks or self.headers.get("content-length", "0") != "0"
        # What such a server sends next may be the body of this response.
        self._is_contradictory = (status in _BODILESS and has_body) or (announces_length and announces_chunks)

    def on_message_complete(self) -> None:
        self._take_body()
        if not self.has_head:  # of a response with a status below 200, which another follows
            self.headers = Headers()
            return
        if not self._is_complete:
            self._keeps_alive = self._parser.should_keep_alive() and not self._is_contradictory
            self._is_complete = True


@lru_cache(256)
def _lower_name(name: bytes) -> str:
    return name.decode("ascii", "replace").lower()


def _timed_out() -> MaybeSent:
    return MaybeSent("timed out", timeout=True)
