"""One HTTP/1.1 connection of a client: answers its requests in turn, and ends it if the client is too slow.

`uvicorn.Server` makes a `CallerConnection` for each client that connects, as for any class that is its option `http`.
"""

import asyncio
import socket
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import uvicorn

from penstock.errors import InvalidRequest, Problem, RateLimited, RequestTimeout, Unavailable
from penstock.http_server.addresses import Proxies, address_group, host_and_port
from penstock.http_server.flow import Flow
from penstock.http_server.open_connections import OpenConnections
from penstock.http_server.request_head import HEALTH_PATHS, LINE, PLACES
from penstock.http_server.request_parser import RequestParser
from penstock.http_server.response_cycle import ResponseCycle, response_bytes
from penstock.http_server.response_transport import ResponseTransport
from penstock.http_server.transfer_speed import Transferred, TransferSpeed
from penstock.interrupts import CallerLine
from penstock.values import new_id

_ABORT_SECONDS = 1.0
_BODY_BYTES = 64 * 1024  # of a body that the application has not taken yet; then reading is paused
_HEAD_END = b"\r\n\r\n"
# So many bytes of further requests may wait unparsed while the first one is being answered.
_WAITING_BYTES = 64 * 1024
_MAX_PIPELINED = 8  # requests that arrive in one piece with the end of a body, and so are parsed together with it
# The kernel keeps at most so many bytes that it has not sent, so that what it takes shows how quickly a client reads.
_UNSENT_BYTES = 128 * 1024

_TOO_MANY_CONNECTIONS = RateLimited(
    "Too many connections from this address.", headers={"retry-after": "1"}, should_retry=True
)
_TOO_MANY_BYTES = InvalidRequest(
    f"At most {_WAITING_BYTES} bytes may be sent before the response to the first request."
)
_TOO_MANY_REQUESTS = InvalidRequest(f"At most {_MAX_PIPELINED} requests may be sent before the response to the first.")


class ServerState(Protocol):
    """What the connections of a server share."""

    connections: set[Any]
    tasks: set[asyncio.Task[None]]
    default_headers: list[tuple[bytes, bytes]]


class CallerConnection(asyncio.Protocol):
    """Serves valid HTTP/1.1; answers anything else with an error and closes the connection."""

    # Both are set by the subclass that each server makes.
    open_connections: OpenConnections
    proxies: Proxies

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None
    ) -> None:
        self.loop = _loop or asyncio.get_running_loop()
        self._app = config.loaded_app
        self._asgi = {"version": config.asgi_version, "spec_version": "2.3"}
        self._server_state = server_state
        self._parser = RequestParser(self)
        self.unanswered: deque[ResponseCycle] = deque()  # the first is being answered, the last may still be read
        self._unparsed = b""  # the requests after the one that is being answered
        self._ignores_input = False  # after a refusal
        self._last_refusal: Problem | None = None  # of the last request, after the responses to those before it
        self._abort_timer: asyncio.TimerHandle | None = None
        self.address = ""  # for which the connection is counted
        self._is_proxied = False
        self._no_place: Problem | None = None  # why this connection may only ask for the health
        self._is_response_unread = False  # the client must read a whole response before its next request counts
        self._received = 0
        self._line = CallerLine()
        self._speed = TransferSpeed(Transferred(self.loop.time()))

    # --------------------------------------------------------------------------------------------------- connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._server_state.connections.add(self)
        self.transport = ResponseTransport(transport)
        self.flow = Flow(transport)
        client = host_and_port(transport.get_extra_info("peername"))
        # What ASGI tells the application about all requests of this connection.
        self._scope = {
            "type": "http",
            "asgi": self._asgi,
            "server": host_and_port(transport.get_extra_info("sockname")),
            "client": client,
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "root_path": "",
            LINE: self._line,
            PLACES: self.open_connections.limit,
        }
        with suppress(OSError, AttributeError):  # not every system has it
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        host = client[0] if client else ""
        self._is_proxied = self._line.is_proxied = self.proxies.trust(host)
        if not self._take_place("" if self._is_proxied else host):
            self._no_place = _TOO_MANY_CONNECTIONS
        elif not self.open_connections.add(self):
            self._no_place = Unavailable("Too many connections.")
        if self._no_place is not None:
            self.open_connections.reserve(self)
        else:
            self.open_connections.start_head(self)

    def _take_place(self, host: str) -> bool:
        """Count the connection for an address; return False if the address has too many."""
        self.address = address_group(host)
        if self.open_connections.enter_address(self):
            return True
        self.address = ""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_connections.discard(self)
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        self._server_state.connections.discard(self)
        while self.unanswered:
            self.unanswered.pop().disconnect()
        self.flow.resume_writing()
        self._parser.close()
        self._line.close()

    def shutdown(self) -> None:
        """Close the connection, after the responses to the requests that were read; the server stops."""
        if self.unanswered:
            self.unanswered[-1].keep_alive = False
        else:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if not self._ignores_input:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Parse what belongs to one request; what follows waits until that was answered.

        To parse many requests that a client sends at once takes long, and their parts stay in memory, while the client
        may not even read the first response.
        """
        if not self._must_wait:
            end = data.find(_HEAD_END) + len(_HEAD_END) if self._parser.in_head else 0
            if not len(_HEAD_END) <= end < len(data) or data.find(_HEAD_END, end) < 0:
                self._parse(data)
                return
            self._parse(data[:end])  # another head may follow
            data = data[end:]
            if self._ignores_input:
                return
            if not self._must_wait:
                self._parse(data)
                return
        self._unparsed += data
        self.flow.pause_reading()
        if len(self._unparsed) > _WAITING_BYTES:
            self.refuse(_TOO_MANY_BYTES)

    @property
    def _must_wait(self) -> bool:
        """Whether the next request waits for the response to one that has arrived."""
        return self._is_response_unread or bool(self._unparsed) or (self._parser.in_head and bool(self.unanswered))

    def _parse(self, data: bytes) -> None:
        parser = self._parser
        was_in_head = parser.in_head
        if was_in_head and not self.unanswered:
            self.open_connections.start_head(self)
        try:
            parser.feed(data)
        except Problem as problem:
            self.refuse(problem)
        else:
            if was_in_head and not parser.in_head:
                self._speed.restart(self._transferred())  # the client has to send something from now on

    def _end_response(self) -> None:
        """Go on after the last bytes of a response were sent."""
        self.unanswered.popleft()
        self.transport.flush()
        if self._is_proxied:
            self.open_connections.leave_address(self)
        if self.flow.write_paused and not self.transport.is_closing():
            self._is_response_unread = True
            self.flow.pause_reading()
            return
        self._next_request()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        if self._is_response_unread and not self.transport.is_closing():
            self._is_response_unread = False
            self._next_request()

    def _next_request(self) -> None:
        """Start the next request that was received, or wait for one."""
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._last_refusal is not None and len(self.unanswered) == 1:
            self._send_refusal(self._last_refusal)
            return
        if self.unanswered:
            self._start_call(self.unanswered[0])
        elif self._unparsed:
            unparsed, self._unparsed = self._unparsed, b""
            self._read(unparsed)
        if self.transport.is_closing() or self.unanswered or not self._parser.in_head:
            return
        if self._parser.head_bytes:
            self.open_connections.start_head(self)
        else:
            self.open_connections.set_idle(self)

    def end(self) -> None:
        """End a connection whose head took too long, or whose place another connection needs."""
        if self._no_place is not None:
            self.refuse(self._no_place)
        elif self.transport.get_write_buffer_size():
            self.transport.close()
            self._abort_timer = self.loop.call_later(_ABORT_SECONDS, self.transport.abort)
        elif self._parser.head_bytes:
            self.refuse(RequestTimeout("The head of the request took too long to arrive."))
        elif not self._parser.in_head:
            self.refuse(RequestTimeout("The body arrived too slowly, and others need the connection."))
        else:
            self.transport.close()

    def refuse(self, problem: Problem) -> None:
        """Send an error and close, after the responses to earlier calls; only close if the last of them was whole."""
        self._ignores_input = True
        self._unparsed = b""
        self.open_connections.stop_waiting(self)
        if self.transport.is_closing():
            return
        if self.unanswered:
            last = self.unanswered[-1]
            last.keep_alive = False
            if not last.more_body:
                return
            # The malformed bytes belong to the body of this call, so its body will never be complete.
            last.disconnect()
            if len(self.unanswered) > 1:
                self._last_refusal = problem
                return
            if last.response_started:
                self.transport.close()
                return
        self._send_refusal(problem)

    def _send_refusal(self, problem: Problem) -> None:
        self.transport.write(response_bytes(problem, new_id("req", self.open_connections.clock.now_ms())))
        if isinstance(problem, Unavailable) or not self.transport.can_write_eof():
            self.transport.close()
            return
        # If the client is still sending, closing now would reset the connection, and the response could be lost.
        self.transport.write_eof()
        self._abort_timer = self.loop.call_later(_ABORT_SECONDS, self.transport.abort)

    # --------------------------------------------------------------------------------------------------------- speed

    def _transferred(self) -> Transferred:
        written = self.transport.written
        taken = written - self.transport.get_write_buffer_size()
        return Transferred(self.loop.time(), self._received, taken, written)

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._speed.restart(self._transferred())  # the client has to take something from now on

    def end_window(self) -> None:
        """Note what was transferred in this window of time; end a connection that takes its response too slowly."""
        self._speed.end_window(self._transferred())
        if self._speed.is_too_slow:
            self.transport.abort()  # closing would wait until the client has read everything

    def bytes_per_second(self, now: float, grace_seconds: float) -> float | None:
        """How quickly the client sends its body or takes its response; None if it does neither, or just began."""
        if self._speed.seconds(now) < grace_seconds or self.transport.is_closing() or self._ignores_input:
            return None
        if self.flow.write_paused:
            return self._speed.taken_per_second(self._transferred())
        if not self._parser.in_head and not self.flow.read_paused:
            return self._speed.received_per_second(self._transferred())
        return None

    # ------------------------------------------------------------------------------------------- called by the parser

    def begin_request(self, scope: dict[str, Any], *, keep_alive: bool, expects_continue: bool) -> None:
        """Answer a request whose head has arrived, when those before it were answered; raise what is wrong with it."""
        self.open_connections.stop_waiting(self)
        if self._no_place is not None:
            if scope["path"] not in HEALTH_PATHS or self.unanswered:
                raise self._no_place
            keep_alive = False
        if len(self.unanswered) > _MAX_PIPELINED:
            raise _TOO_MANY_REQUESTS
        if self._is_proxied:
            self._count_for_client(scope["headers"])
        cycle = ResponseCycle(
            {**self._scope, **scope},
            self.transport,
            self.flow,
            self._server_state.default_headers,
            self._end_response,
            keep_alive=keep_alive,
            expects_continue=expects_continue,
        )
        self.unanswered.append(cycle)
        if len(self.unanswered) == 1:
            self._start_call(cycle)
        else:
            self.flow.pause_reading()

    def add_body(self, body: bytes) -> None:
        """Keep the next bytes of a body until the application takes them."""
        if self.unanswered:  # otherwise this request was answered before its end
            cycle = self.unanswered[-1]
            cycle.add_body(body)
            if len(cycle.body) > _BODY_BYTES:
                self.flow.pause_reading()

    def end_request(self) -> None:
        """Note that a body is complete."""
        if self.unanswered:
            self.unanswered[-1].end_body()

    def end_after_response(self) -> None:
        """Close the connection after the response to the request that was begun last."""
        self.unanswered[-1].keep_alive = False

    def _start_call(self, cycle: ResponseCycle) -> None:
        """Have the application answer a request, in a task of its own."""
        start = partial(cycle.begin, self._app, self._server_state.tasks)
        if self.open_connections.is_in_crowd(self):
            self.open_connections.start_in_turn(self, start)
        else:
            start()

    def _count_for_client(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Count a connection of a proxy for the client that the request comes from; raise what is wrong if that client
        has too many.
        """
        self.open_connections.leave_address(self)
        forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        if forwarded and not self._take_place(self.proxies.client(forwarded.decode("latin-1"))):
            raise _TOO_MANY_CONNECTIONS
