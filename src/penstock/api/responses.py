"""Send responses as ASGI messages: JSON, bytes, or a stream that ends when the caller disconnects."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import msgspec

from penstock.api.body import Receive, discard
from penstock.api.problems import close_stream
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
_JSON_HEADERS = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}
NO_STORE = {"cache-control": "no-store"}  # headers of a response that contains a secret
_DISCARD_SECONDS = 5.0
_DISCARD_BYTES = 64 * 1024**2
_STALL_SECONDS = 60.0


async def send_response(
    request_id: str,
    response: Response,
    body: bytes | LongBody,
    *,
    is_head: bool,
    unread: bool,
    receive: Receive,
    send: Send,
    overhead_ms: float | None = None,
) -> None:
    """Send a response; if `unread`, the caller may still be sending, and the connection is closed afterwards.

    `overhead_ms` is what the gateway itself took until now; it is sent in a header.
    """
    headers = _headers(request_id, response)
    if overhead_ms is not None:
        headers.append((b"x-service-overhead-ms", b"%.2f" % overhead_ms))
    if response.chunks is None and response.status not in _BODILESS:
        headers.append((b"content-length", b"%d" % len(body)))
    if unread:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.chunks is not None:
        if await _stream(response.chunks, receive, send, is_head=is_head):
            await send({"type": "http.response.body", "body": b""})
        return
    if isinstance(body, LongBody):
        for chunk in body:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        body = b""
    if unread:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await discard(receive, _DISCARD_SECONDS, _DISCARD_BYTES)
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
    if not response.headers:
        found = [(b"x-request-id", own), (b"x-service-request-id", own)]
        if response.status not in _BODILESS:
            found.append((b"content-type", response.media_type.encode()))
            if response.media_type == _JSON:
                found.extend(_JSON_HEADERS.items())
        return found
    named = {b"x-request-id": own, b"x-service-request-id": own}
    if response.status not in _BODILESS:
        named[b"content-type"] = response.media_type.encode()
        if response.media_type == _JSON:
            named.update(_JSON_HEADERS)
    for name, value in response.headers.items():
        # Values may contain what others sent; a line break in one must not start another header.
        named[name.lower().encode("latin-1")] = _CONTROLS.sub(b"", value.encode("latin-1", "replace"))
    return list(named.items())


# ------------------------------------------------------------------------------------------------------------- streams


async def _stream(chunks: AsyncIterator[bytes], receive: Receive, send: Send, *, is_head: bool) -> bool:
    """Send chunks as they come, no faster than the caller reads; return True when all were sent.

    While no chunk comes, sending does not tell that the caller has disconnected, so a second task listens for that. The
    iterator is closed in any case, which releases its resources.
    """
    if is_head:
        await close_stream(chunks)
        return True
    tasks: list[asyncio.Future[None]] = []
    try:
        # Both from the start: the first chunk may take long, too, and the server sends the head together with it.
        current = _CurrentSend()
        sending = asyncio.ensure_future(_send_chunks(chunks, send, current))
        tasks = [sending, asyncio.ensure_future(_wait_for_disconnect(receive))]
        while not (await asyncio.wait(tasks, timeout=current.seconds_left(), return_when=asyncio.FIRST_COMPLETED))[0]:
            if current.seconds_left() <= 0:
                raise TimeoutError("the caller does not read its response")
        if not sending.done() or sending.cancelled():  # cancelled if this process stops and the caller does not read
            return False
        await sending
        return True
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        await close_stream(chunks)


class _CurrentSend:
    """The chunk that is being sent. One timer looks after all chunks of a stream, instead of one after each."""

    def __init__(self) -> None:
        self._now = asyncio.get_running_loop().time
        self._since: float | None = None

    def begin(self) -> None:
        self._since = self._now()

    def end(self) -> None:
        self._since = None

    def seconds_left(self) -> float:
        """How long the caller may still take to read; if nothing is being sent, when to ask again."""
        return _STALL_SECONDS if self._since is None else self._since + _STALL_SECONDS - self._now()


async def _send_chunks(chunks: AsyncIterator[bytes], send: Send, current: _CurrentSend) -> None:
    async for chunk in chunks:
        if chunk:
            current.begin()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            current.end()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
