"""Send the response to a request as HTTP/1.1: uvicorn's cycle, with far fewer steps for each header."""

from collections.abc import Iterable

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

_BODILESS = (204, 304)


class ResponseCycle(RequestResponseCycle):
    """A request and its response.

    The application gives names of headers in lower case, and each only once. A response without a length has chunks;
    in HTTP/1.0, which has none, it ends with the connection.
    """

    _bytes_left: int | None = None  # of a body whose length was stated

    async def send(self, message: ASGISendEvent) -> None:
        """Send the head of the response, or the next bytes of its body, unless the client has disconnected."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.response_started:
            self._send_head(message["status"], message["headers"])
        elif message["type"] == "http.response.body" and self.response_started and not self.response_complete:
            self._send_body(message.get("body", b""), message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} cannot be sent in this state of the response")

    def _send_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        values = dict(headers)
        if b"connection" in values:  # the application only ever closes it
            self.keep_alive = False
        elif not self.keep_alive:
            values[b"connection"] = b"close"
        length = values.get(b"content-length")
        self.chunked_encoding = False
        if length is not None:
            self._bytes_left = int(length)
        elif self.scope["http_version"] != "1.0" and self.scope["method"] != "HEAD" and status not in _BODILESS:
            self.chunked_encoding = True
            values[b"transfer-encoding"] = b"chunked"
        lines = [b"%b: %b\r\n" % header for header in (*self.default_headers, *values.items())]
        head = b"".join((STATUS_LINE[status], *lines, b"\r\n"))
        if not head.count(b"\r") == head.count(b"\n") == len(lines) + 2 or b"\0" in head:
            raise RuntimeError("a header contains a line break or a NUL")
        self.transport.write_head(head)  # type: ignore[attr-defined]

    def _send_body(self, body: bytes, more_body: bool) -> None:
        if self.scope["method"] == "HEAD":
            self._bytes_left = None
        elif self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self.transport.write(chunk if more_body else chunk + b"0\r\n\r\n")
        else:
            if self._bytes_left is not None:
                self._bytes_left -= len(body)
                if self._bytes_left < 0 or (self._bytes_left and not more_body):
                    raise RuntimeError("the body has another length than its Content-Length")
            self.transport.write(body)
        if not more_body:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()
