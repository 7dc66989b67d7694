"""One HTTP/1.1 connection: uvicorn's protocol with the gaps of its parser closed, and no patience for slow heads."""

import asyncio
import re
from typing import Any

import httptools
import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from penstock.api.body import HEADER_BYTES, HEADER_LINES, WHOLE
from penstock.clock import Clock
from penstock.errors import HeadersTooLarge, InvalidRequest, Problem, RequestTimeout, Unavailable
from penstock.values import new_id

_LINE_BYTES = 8 * 1024
_FAREWELL_SECONDS = 1.0
_OTHER_TARGETS = re.compile(rb"https?://[^/]+/|\*$")
_FRAMING = (b"content-length", b"transfer-encoding")
_FINAL_HEADS = tuple(b"HTTP/1.1 %d" % kind for kind in (2, 3, 4, 5))  # others only announce what is to come


class Doorkeeper:
    """Knows the connections that wait: for the rest of a request's head, or for the next request.

    Slow heads go when their time is up, and when there is no room for somebody new, whoever has waited longest.
    """

    def __init__(self, most: int, head_seconds: float, clock: Clock) -> None:
        self.most = most
        self.clock = clock
        self._head_seconds = head_seconds
        self._heads: dict[Connection, float] = {}  # and when their time is up, earliest first
        self._idle: dict[Connection, None] = {}  # longest first
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def begin_head(self, connection: "Connection") -> None:
        self._idle.pop(connection, None)
        self._heads.setdefault(connection, self._loop.time() + self._head_seconds)
        if self._timer is None:
            self._timer = self._loop.call_later(self._head_seconds, self._sweep)

    def rest(self, connection: "Connection") -> None:
        self._idle[connection] = None

    def forget(self, connection: "Connection") -> None:
        self._heads.pop(connection, None)
        self._idle.pop(connection, None)

    def make_room(self) -> bool:
        longest = next(iter(self._idle), None) or next(iter(self._heads), None)
        if longest is None:
            return False
        self.forget(longest)
        longest.give_up()
        return True

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        """One timer serves all connections, since they come due in the order they began."""
        self._timer = None
        now = self._loop.time()
        while self._heads:
            connection, due = next(iter(self._heads.items()))
            if due > now:
                self._timer = self._loop.call_at(due, self._sweep)
                return
            self.forget(connection)
            connection.give_up()


class Envelope:
    """A transport on which the head of an answer waits for the first of its body: every write is a call of the system,
    and wakes the reader. Where no body follows, whoever ends the answer flushes.
    """

    __slots__ = ("_head", "_transport", "_write", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._write, self.is_closing = transport.write, transport.is_closing  # asked for with every answer
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._head:
            self._transport.writelines((self._head, data))
            self._head = b""
        elif data.startswith(_FINAL_HEADS):
            self._head = data
        else:
            self._write(data)

    def flush(self) -> None:
        if self._head:
            self.write(b"")

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """Answers whatever is not clean HTTP/1.1 with a problem, and closes."""

    doorkeeper: Doorkeeper  # set by the subclass that one server makes

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._in_head = True  # the next thing to complete is a head
        self._head_bytes = 0
        self._deaf = False  # whatever comes now belongs to nothing that we will answer
        self._problem: Problem | None = None
        self._farewell: asyncio.TimerHandle | None = None

    @property
    def _is_busy(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete  # there is none before the first request

    # --------------------------------------------------------------------------------------------------- connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = Envelope(transport)  # type: ignore[assignment]
        if len(self.connections) > self.doorkeeper.most and not self.doorkeeper.make_room():
            self.refuse(Unavailable("Too many connections."))
        else:
            self.doorkeeper.begin_head(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.doorkeeper.forget(self)
        if self._farewell is not None:
            self._farewell.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._deaf:
            return
        if self._in_head:
            self._head_bytes += len(data)
            if not self._is_busy:
                self.doorkeeper.begin_head(self)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.refuse(self._problem or InvalidRequest("The request is not valid HTTP/1.1."))
        else:
            if self._in_head and self._head_bytes > _LINE_BYTES + HEADER_BYTES:
                self.refuse(_TOO_LARGE)

    def on_response_complete(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()
        if self.transport.is_closing() or self._is_busy or not self._in_head:
            return
        if self._head_bytes:
            self.doorkeeper.begin_head(self)
        else:
            self.doorkeeper.rest(self)

    def give_up(self) -> None:
        """The head took too long, or somebody else needs the place."""
        if self._head_bytes:
            self.refuse(RequestTimeout("The request took too long to arrive."))
        else:
            self.transport.close()

    def refuse(self, problem: Problem) -> None:
        """Answer and close; but first let a call that came before on this connection have its own answer."""
        self._deaf = True
        self.doorkeeper.forget(self)
        if self.transport.is_closing():
            return
        if self._is_busy:
            self.cycle.keep_alive = False
            if not self.cycle.more_body:
                return
            # It is this call's own body that is broken, so it will never be complete.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.close()
                return
        self.transport.write(_rendered(problem, new_id("req", self.doorkeeper.clock.now_ms())))
        if isinstance(problem, Unavailable) or not self.transport.can_write_eof():
            self.transport.close()
            return
        # Closing on somebody who is still sending would reset the connection, and take the answer with it.
        self.transport.write_eof()
        self._farewell = self.loop.call_later(_FAREWELL_SECONDS, self.transport.abort)

    # --------------------------------------------------------------------------------------------------------- heads

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self.doorkeeper.forget(self)
        self._problem = self._fault()
        if self._problem is not None:
            raise ValueError(self._problem.message)  # reaches data_received as an error of the parser
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # so says the parser; we go on reading
        self._in_head = True
        self.scope["extensions"] = WHOLE
        super().on_message_complete()

    def _fault(self) -> Problem | None:
        """What the parser lets through although two readers could understand it differently."""
        url, version = self.url, self.parser.get_http_version()
        hosts, codings = 0, []
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding":
                codings.append(value.lower())
        if len(url) > _LINE_BYTES or len(self.headers) > HEADER_LINES:
            return _TOO_LARGE
        if version not in ("1.1", "1.0") or (codings and version == "1.0"):
            return InvalidRequest("Only HTTP/1.1 is spoken here.")
        if b"#" in url or not (url.startswith(b"/") or _OTHER_TARGETS.match(url)):
            return InvalidRequest("The request target must be a path.")
        if hosts != 1:
            return InvalidRequest("There must be exactly one Host header.")
        if codings and codings != [b"chunked"]:
            return InvalidRequest("Transfer-Encoding must be chunked or absent.")
        return None

    def _decline_upgrade(self, rest: bytes) -> None:
        """Carry on in HTTP/1.1, as the specification lets a server do that wants no other protocol.

        Some clients offer HTTP/2 with every request. The parser stops at such an offer and drops the body, so another
        one reads it, behind a head of our own that says only how it is framed. The connection ends with the answer.
        """
        self.cycle.keep_alive = False
        framing = [name + b": " + value + b"\r\n" for name, value in self.headers if name in _FRAMING]
        self.parser = httptools.HttpRequestParser(_BodyAlone(self))
        self.data_received(b"".join([b"POST / HTTP/1.1\r\n", *(framing or [b"content-length: 0\r\n"]), b"\r\n", rest]))


class _BodyAlone:
    """What is left for a parser to tell a connection that knows the head already; the next head is of no interest."""

    def __init__(self, connection: Connection) -> None:
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete


_TOO_LARGE = HeadersTooLarge(
    f"The request line may have {_LINE_BYTES} bytes at most, the headers {HEADER_LINES} lines and {HEADER_BYTES} bytes."
)


def _rendered(problem: Problem, request_id: str) -> bytes:
    body = msgspec.json.encode(problem.body())
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-request-id": request_id,
        "x-service-request-id": request_id,
        "connection": "close",
        **problem.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[problem.status] + lines.encode("latin-1") + b"\r\n" + body
