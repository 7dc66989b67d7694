"""Parse the requests of one connection strictly, with limits for their heads, trailers and chunks."""

from typing import Any, NoReturn, Protocol

import httptools

from penstock.errors import HeadersTooLarge, InvalidRequest, Problem
from penstock.http_server.request_head import (
    HEAD_TOO_LARGE,
    HEADER_BYTES,
    HEADER_LINES,
    LINE_BYTES,
    framing_head,
    head_problem,
    request_scope,
)
from penstock.long_bodies.arrivals import STEP_BYTES, Arrivals

_LEAST_CHUNK_BYTES = 64  # on average
_SMALL_CHUNKS = InvalidRequest(f"The chunks of a body must have {_LEAST_CHUNK_BYTES} bytes or more on average.")
_LONG_TRAILER = HeadersTooLarge(f"The trailer of a body may have {HEADER_BYTES} bytes at most.")
_INVALID = InvalidRequest("The request is not valid HTTP/1.1.")


class Listener(Protocol):
    """Is told what was parsed."""

    def begin_request(self, scope: dict[str, Any], *, keep_alive: bool, expects_continue: bool) -> None:
        """A head has arrived; raise a Problem to refuse it."""

    def add_body(self, body: bytes) -> None:
        """The next bytes of the body have arrived."""

    def end_request(self) -> None:
        """The body is complete."""

    def end_after_response(self) -> None:
        """The request that was begun last is the last one of its connection."""


class RequestParser:
    """Parses requests. Nothing more can be parsed after `feed` has raised a Problem."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.in_head = True  # a head is being read, or waited for
        self.head_bytes = 0
        self._trailer_bytes = 0  # since the last bytes of a body: of its trailer, or of what separates its chunks
        self._arrivals = Arrivals(_LEAST_CHUNK_BYTES)
        self.on_body = self._arrivals.add  # called by the parser of the library, like the methods below
        self._parser = httptools.HttpRequestParser(self)
        # More requests may follow one that asks to close the connection; they are not answered.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._problem: Problem | None = None
        # These three are about the head that is being read.
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._expects_continue = False

    def feed(self, data: bytes) -> None:
        """Parse what has arrived; raise a Problem if it is not valid or exceeds a limit."""
        if len(data) <= STEP_BYTES:
            self._parse(data)
            return
        for start in range(0, len(data), STEP_BYTES):
            self._parse(data[start : start + STEP_BYTES])

    def close(self) -> None:
        """Forget the parser of the library, which refers to this one."""
        self._parser = None  # type: ignore[assignment]

    def _parse(self, data: bytes) -> None:
        if self.in_head:
            self.head_bytes += len(data)
        else:
            self._trailer_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            raise (self._problem or _INVALID) from None
        self._take_body()
        if self._arrivals.are_too_small:
            raise _SMALL_CHUNKS
        if self.in_head and self.head_bytes > LINE_BYTES + HEADER_BYTES:
            raise HEAD_TOO_LARGE
        if not self.in_head and self._trailer_bytes > HEADER_BYTES:
            raise _LONG_TRAILER

    def _decline_upgrade(self, rest: bytes) -> None:
        """Go on in HTTP/1.1, as a server may that does not support the offered protocol.

        Some clients offer HTTP/2 with every request. The parser stops at such an offer and would drop the body. So a
        second parser reads the body, after a made-up head that contains only the framing headers of the real one, and
        that no other request may follow. The connection is closed after the response.
        """
        self._listener.end_after_response()
        self._parser = httptools.HttpRequestParser(_BodyCallbacks(self))
        self._parse(framing_head(self._headers) + rest)

    def _take_body(self) -> None:
        """Pass on what was parsed of a body."""
        if self._arrivals.pieces:
            self._trailer_bytes = 0
            self._listener.add_body(self._arrivals.take())

    def _fail(self, problem: Problem) -> NoReturn:
        self._problem = problem
        raise ValueError(problem.message)  # `_parse` gets it as an error of the parser

    # ---------------------------------------------------------------------------------- called by the library's parser

    def on_message_begin(self) -> None:
        # The first bytes of a head may come with the last ones of the request before it; so they count as one.
        self.head_bytes = self.head_bytes or 1
        self._url = b""
        self._headers = []
        self._expects_continue = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:  # it is a trailer, which must not be taken for a header that a proxy has checked
            return
        if len(self._headers) == HEADER_LINES:
            self._fail(HEAD_TOO_LARGE)
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.in_head = False
        self.head_bytes = 0
        self._trailer_bytes = 0
        self._arrivals.restart()
        version = self._parser.get_http_version()
        problem = head_problem(self._url, self._headers, version)
        if problem is not None:
            self._fail(problem)
        scope = request_scope(self._url, self._parser.get_method(), version, self._headers)
        try:
            self._listener.begin_request(
                scope,
                keep_alive=version != "1.0" and self._parser.should_keep_alive(),
                expects_continue=version != "1.0" and self._expects_continue,
            )
        except Problem as refusal:
            self._fail(refusal)

    def on_message_complete(self) -> None:
        self._take_body()
        if self._parser.should_upgrade():
            return  # the parser stops here, but `_decline_upgrade` goes on reading the body
        self.in_head = True
        self._listener.end_request()


class _BodyCallbacks:
    """Passes only the body on from a parser; its heads are ignored."""

    def __init__(self, parser: RequestParser) -> None:
        self.on_body = parser.on_body
        self.on_message_complete = parser.on_message_complete
