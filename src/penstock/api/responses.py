"""Answers to ASGI messages: JSON, bytes, or a stream that ends when its reader leaves."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import msgspec

from penstock.api.body import Receive, discard
from penstock.api.problems import close
from penstock.schema import Response

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

_encode = msgspec.json.Encoder(decimal_format="number").encode
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS = (204, 304)
NO_STORE = {"cache-control": "no-store"}  # headers of a response that contains a secret
_LINGER_SECONDS = 5.0
_LINGER_BYTES = 64 * 1024**2
_STALL_SECONDS = 60.0


async def deliver(
    request_id: str, answer: Response, body: bytes, *, is_head: bool, unread: bool, receive: Receive, send: Send
) -> None:
    """Send an answer. `unread` says that the caller may still be sending; then the connection ends with the answer."""
    headers = _headers(request_id, answer)
    if answer.chunks is None and answer.status not in _BODILESS:
        headers.append((b"content-length", b"%d" % len(body)))
    if unread:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.chunks is not None:
        if await _stream(answer.chunks, receive, send, is_head=is_head):
            await send({"type": "http.response.body", "body": b""})
    elif unread:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await discard(receive, _LINGER_SECONDS, _LINGER_BYTES)
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "http.response.body", "body": body})


def encode(answer: Response) -> bytes:
    """The body of an answer that is not a stream."""
    if answer.body is not None:
        return answer.body
    return b"" if answer.json is None else _encode(answer.json)


def _headers(request_id: str, answer: Response) -> list[tuple[bytes, bytes]]:
    own = request_id.encode()
    if not answer.headers:
        found = [(b"x-request-id", own), (b"x-service-request-id", own)]
        if answer.status not in _BODILESS:
            found.append((b"content-type", answer.media_type.encode()))
        return found
    named = {b"x-request-id": own, b"x-service-request-id": own}
    if answer.status not in _BODILESS:
        named[b"content-type"] = answer.media_type.encode()
    for name, value in answer.headers.items():
        # Values may quote what others sent; a line break among them must not become a header of its own.
        named[name.lower().encode("latin-1")] = _CONTROLS.sub(b"", value.encode("latin-1", "replace"))
    return list(named.items())


# ------------------------------------------------------------------------------------------------------------- streams


async def _stream(chunks: AsyncIterator[bytes], receive: Receive, send: Send, *, is_head: bool) -> bool:
    """Pass chunks on as they come and no faster than they are read; True when all were sent.

    Sending tells nothing about a reader who has left while we wait for the next chunk, so a second task listens for
    that. Either way the iterator is closed here, and what it holds is let go.
    """
    if is_head:
        await close(chunks)
        return True
    tasks: list[asyncio.Future[None]] = []
    try:
        # The first piece is there already, so it goes out with the head, before anything else is set up.
        if first := await anext(chunks, b""):
            await send({"type": "http.response.body", "body": first, "more_body": True})
        pump = asyncio.ensure_future(_pump(chunks, send))
        tasks = [pump, asyncio.ensure_future(_until_gone(receive))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not pump.done():
            return False
        await pump
        return True
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        await close(chunks)


async def _pump(chunks: AsyncIterator[bytes], send: Send) -> None:
    async for chunk in chunks:
        if chunk:
            async with asyncio.timeout(_STALL_SECONDS):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
