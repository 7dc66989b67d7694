"""Send responses as ASGI messages: JSON, bytes, or a stream that ends when the caller disconnects."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

import msgspec

from penstock.api.body import Receive, discard
from penstock.api.problems import close_stream
from penstock.errors import without_frames
from penstock.interrupts import CallerGone, CallerLine, Interrupts
from penstock.long_bodies.json_encoding import encode_with_files
from penstock.long_bodies.long_body import LongBody
from penstock.schema import Response

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

encode = msgspec.json.Encoder(decimal_format="number").encode
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS = (204, 304)
_JSON = "application/json"
# No cache may keep what belongs to a caller, and no browser may take it for a page. A response may say otherwise.
_JSON_HEADERS = [
    (b"content-type", _JSON.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
NO_STORE = {"cache-control": "no-store"}  # headers of a response that contains a secret
_DISCARD_SECONDS = 5.0
_DISCARD_BYTES = 64 * 1024**2
_STRANGERS_DISCARD_BYTES = 1024**2
_BY_CALLERS = Interrupts()  # of streams; when the process stops, endpoints themselves end them


async def send_response(
    request_id: str,
    response: Response,
    body: bytes | LongBody,
    *,
    is_head: bool,
    unread: bool,
    has_key: bool,
    receive: Receive,
    send: Send,
    line: CallerLine,
    overhead_ms: float | None = None,
) -> None:
    """Send a response; if `unread`, the caller may still be sending, and the connection is closed afterwards.
    What is still sent is read and dropped, less of it if the caller showed no valid key (`has_key`).

    `overhead_ms` is what the gateway itself took until now; it is sent in a header.
    """
    headers = _headers(request_id, response)
    if overhead_ms is not None:
        headers.append((b"x-service-overhead-ms", b"%.2f" % overhead_ms))
    if response.chunks is None and response.status not in _BODILESS:
        headers.append((b"content-length", b"%d" % len(body)))
    if unread:
        headers.append((b"connection", b"close"))
    head: Message = {"type": "http.response.start", "status": response.status, "headers": headers}
    if response.chunks is not None:
        if await _stream(head, response.chunks, line, send, is_head=is_head):
            await send({"type": "http.response.body", "body": b""})
        return
    await send(head)
    if isinstance(body, LongBody):
        for chunk in body:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        body = b""
    if unread:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await discard(receive, _DISCARD_SECONDS, _DISCARD_BYTES if has_key else _STRANGERS_DISCARD_BYTES)
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "http.response.body", "body": body})


def encode_body(response: Response) -> bytes | LongBody:
    """Return the body of a response that is not a stream."""
    if response.body is not None:
        return response.body
    if response.json is None:
        return b""
    try:
        return encode(response.json)
    except TypeError:  # what it contains that is not JSON is a file
        return encode_with_files(response.json, decimal_format="number")


def _headers(request_id: str, response: Response) -> list[tuple[bytes, bytes]]:
    own = request_id.encode()
    found = [(b"x-request-id", own), (b"x-service-request-id", own)]
    if response.status not in _BODILESS:
        found += _JSON_HEADERS if response.media_type == _JSON else [(b"content-type", response.media_type.encode())]
    if not response.headers:
        return found
    return list(dict(found + [_encode(*header) for header in response.headers.items()]).items())


def _encode(name: str, value: str) -> tuple[bytes, bytes]:
    """A header as it is sent. Cookies are secret, so they are not kept in memory."""
    return _encoded_header.__wrapped__(name, value) if name == "set-cookie" else _encoded_header(name, value)


@lru_cache(256)  # most are the same in many responses
def _encoded_header(name: str, value: str) -> tuple[bytes, bytes]:
    """A header as it is sent. Its value may contain what others sent; a line break must not start another header."""
    encoded = value.encode("latin-1", "replace")
    return name.lower().encode("latin-1"), encoded if value.isprintable() else _CONTROLS.sub(b"", encoded)


# ------------------------------------------------------------------------------------------------------------- streams


async def _stream(head: Message, chunks: AsyncIterator[bytes], line: CallerLine, send: Send, *, is_head: bool) -> bool:
    """Send the head and then chunks as they come, no faster than the caller reads; return True when all were sent.

    While no chunk comes, sending does not tell that the caller has disconnected, so its connection interrupts this. A
    caller who does not read is disconnected by the server. The iterator is closed in any case, which releases its
    resources.
    """
    try:
        await send(head)
        with _BY_CALLERS.allowed(line):
            if not is_head:
                async for chunk in chunks:
                    if chunk:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        return True
    except CallerGone as gone:
        without_frames(gone)
        return False
    finally:
        await close_stream(chunks)
