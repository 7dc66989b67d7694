"""A request and its response: run the ASGI application for it, and send what it responds as HTTP/1.1."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.errors import Problem
from penstock.http_server.flow import Flow
from penstock.http_server.request_head import ARRIVED
from penstock.http_server.response_transport import ResponseTransport

_STATUS_LINES = {int(status): f"HTTP/1.1 {status} {status.phrase}".encode() for status in HTTPStatus}
_BODILESS = (204, 304)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FAILED = ((b"content-length", b"0"), (b"connection", b"close"))  # headers of the response if the application fails

Header = tuple[bytes, bytes]
Message = MutableMapping[str, Any]
App = Callable[..., Coroutine[Any, Any, object]]


class ResponseCycle:
    """A request and its response.

    The application gives names of headers in lower case, and each only once. A response without a length has chunks;
    in HTTP/1.0, which has none, it ends with the connection.
    """

    __slots__ = (
        "_arrival",
        "_bytes_left",
        "_default_headers",
        "_end_response",
        "_expects_continue",
        "_flow",
        "_has_chunks",
        "_may_receive",
        "_tasks",
        "_transport",
        "body",
        "disconnected",
        "keep_alive",
        "more_body",
        "response_complete",
        "response_started",
        "scope",
    )  # fmt: skip

    def __init__(
        self,
        scope: dict[str, Any],
        transport: ResponseTransport,
        flow: Flow,
        default_headers: Sequence[Header],
        end_response: Callable[[], None],
        *,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        self.scope = scope
        self._transport = transport
        self._flow = flow
        self._default_headers = default_headers
        self._end_response = end_response  # called after the last bytes
        self.keep_alive = keep_alive
        self._expects_continue = expects_continue
        self.body = bytearray()  # what has arrived and was not received by the application
        self.more_body = True
        self._may_receive = False  # `receive` need not wait
        self._arrival: asyncio.Event | None = None  # set when it need not wait any longer, if it has waited
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self._has_chunks = False
        self._bytes_left: int | None = None  # of a response whose length was stated

    # ------------------------------------------------------------------------------------------------------- the task

    def begin(self, app: App, tasks: set[asyncio.Task[Any]]) -> None:
        """Run the application in a task, which is among the `tasks` until it ends."""
        task = asyncio.get_running_loop().create_task(app(self.scope, self.receive, self.send))
        tasks.add(task)
        self._tasks = tasks
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        """End a response that the application did not complete; it logs itself what it knows of its failures."""
        self._tasks.discard(task)
        self.scope.pop(ARRIVED, None)  # it refers to this cycle, and would leave it to the garbage collector
        if not task.cancelled():
            task.exception()  # or Python would print it
        if self.response_complete or self.disconnected:
            return
        if self.response_started:
            self._transport.close()
        else:
            self._send_head(500, _FAILED)
            self._send_body(b"", more_body=False)

    # -------------------------------------------------------------------------------------------------------- request

    def add_body(self, body: bytes) -> None:
        """Take the next bytes of the body."""
        self.body += body
        self._tell()

    def end_body(self) -> None:
        """Note that the body is complete; an application that has not begun to receive it can take it as a whole."""
        self.more_body = False
        self.scope[ARRIVED] = self.take_body
        self._tell()

    def take_body(self) -> bytes | None:
        """Return the body; None if the client has disconnected."""
        self._flow.resume_reading()
        self._may_receive = False
        body = bytes(self.body)
        self.body = bytearray()
        return None if self.disconnected else body

    def disconnect(self) -> None:
        """Note that the client has disconnected, or that no more can be received from it."""
        self.disconnected = self.disconnected or not self.response_complete
        self._tell()

    def _tell(self) -> None:
        self._may_receive = True
        if self._arrival is not None:
            self._arrival.set()

    async def receive(self) -> Message:
        """Return what has arrived of the body, or wait for it; afterwards, wait for the end of the connection or of the
        response.
        """
        if self._expects_continue and not self._transport.is_closing():
            self._transport.write(_CONTINUE)
            self._expects_continue = False
        if not self.disconnected and not self.response_complete:
            self._flow.resume_reading()
            if not self._may_receive:
                self._arrival = self._arrival or asyncio.Event()
                self._arrival.clear()
                await self._arrival.wait()
            self._may_receive = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body = bytes(self.body)
        self.body = bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    # ------------------------------------------------------------------------------------------------------- response

    async def send(self, message: Message) -> None:
        """Send the head of the response, or the next bytes of its body, unless the client has disconnected."""
        if self._flow.write_paused and not self.disconnected:
            await self._flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.response_started:
            self._send_head(message["status"], message["headers"])
        elif message["type"] == "http.response.body" and self.response_started and not self.response_complete:
            self._send_body(message.get("body", b""), message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} cannot be sent in this state of the response")

    def _send_head(self, status: int, headers: Iterable[Header]) -> None:
        self.response_started = True
        self._expects_continue = False
        values = dict(headers)
        if b"connection" in values:  # the application only ever closes it
            self.keep_alive = False
        elif not self.keep_alive:
            values[b"connection"] = b"close"
        length = values.get(b"content-length")
        if length is not None:
            self._bytes_left = int(length)
        elif self.scope["http_version"] != "1.0" and self.scope["method"] != "HEAD" and status not in _BODILESS:
            self._has_chunks = True
            values[b"transfer-encoding"] = b"chunked"
        pieces = [_STATUS_LINES[status]]
        lines = (*self._default_headers, *values.items())
        for name, value in lines:
            pieces += (b"\r\n", name, b": ", value)
        pieces.append(b"\r\n\r\n")
        head = b"".join(pieces)
        if not head.count(b"\r") == head.count(b"\n") == len(lines) + 2 or b"\0" in head:
            raise RuntimeError("a header contains a line break or a NUL")
        self._transport.write_head(head)

    def _send_body(self, body: bytes, more_body: bool) -> None:
        if self.scope["method"] == "HEAD":
            self._bytes_left = None
        elif self._has_chunks:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._transport.write(chunk if more_body else chunk + b"0\r\n\r\n")
        else:
            if self._bytes_left is not None:
                self._bytes_left -= len(body)
                if self._bytes_left < 0 or (self._bytes_left and not more_body):
                    raise RuntimeError("the body has another length than its Content-Length")
            self._transport.write(body)
        if not more_body:
            self.response_complete = True
            self._tell()
            if not self.keep_alive:
                self._transport.close()
            self._end_response()


def response_bytes(problem: Problem, request_id: str) -> bytes:
    """Return a whole response for a request that no application gets to see."""
    body = msgspec.json.encode(problem.body())
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-request-id": request_id,
        "x-service-request-id": request_id,
        "connection": "close",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        **problem.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return _STATUS_LINES[problem.status] + b"\r\n" + lines.encode("latin-1") + b"\r\n" + body
