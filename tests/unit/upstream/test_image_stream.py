"""Streams of images: unfinished images are shown, and the rest adds up to a whole response."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.event_loop import LoopTurns
from penstock.net.errors import MaybeSent, ResponseTooLarge
from penstock.net.event_stream import named_event
from penstock.providers.spec import Reply
from penstock.upstream.image_stream import send_streamed
from tests.http_client import client_and_server, post_request
from tests.tcp_server import Connection, chunk, response_head

PARTIAL = {"type": "image_generation.partial_image", "b64_json": "QQ==", "partial_image_index": 0}
DONE = {
    "type": "image_generation.completed",
    "b64_json": "Qg==",
    "usage": {"output_tokens": 300},
    "output_format": "webp",
    "created_at": 1,
}


def event(fields: Any) -> bytes:
    return named_event("x", json.dumps(fields).encode())


async def streamed(
    *pieces: bytes,
    content_type: str = "text/event-stream",
    status: int = 200,
    is_cut: bool = False,
    max_bytes: int = 1024,
) -> tuple[Reply, list[Mapping[str, Any]]]:
    """What `send_streamed` makes of a response in these pieces, and what it shows."""

    async def script(connection: Connection) -> None:
        await connection.read_request()
        head = (f"Content-Type: {content_type}", "Transfer-Encoding: chunked")
        await connection.send(response_head(*head, status=status))
        for piece in pieces:
            await connection.send(chunk(piece))
        if not is_cut:
            await connection.send(chunk(b""))

    shown: list[Mapping[str, Any]] = []
    async with client_and_server(script) as (client, server):
        return await send_streamed(client, post_request(server), 30, LoopTurns(), shown.append, max_bytes), shown


async def test_a_stream_that_is_too_long_is_refused() -> None:
    pieces = (event(PARTIAL), event(PARTIAL), event(DONE))
    size_bytes = sum(map(len, pieces))
    reply, _ = await streamed(*pieces, max_bytes=size_bytes)
    assert reply.status == 200
    with pytest.raises(ResponseTooLarge):
        await streamed(*pieces, max_bytes=size_bytes - 1)


async def test_unfinished_images_are_shown_and_the_rest_is_a_response() -> None:
    reply, shown = await streamed(event(PARTIAL), event(DONE))
    assert shown == [PARTIAL]
    expected = {"data": [{"b64_json": "Qg=="}], "usage": {"output_tokens": 300}, "output_format": "webp"}
    assert (reply.status, reply.json) == (200, expected)


async def test_a_response_that_is_no_stream_stays_as_it_is() -> None:
    reply, shown = await streamed(b'{"data":[]}', content_type="application/json")
    assert (reply.status, reply.body, shown) == (200, b'{"data":[]}', [])
    reply, _ = await streamed(b'{"error":{}}', content_type="application/json", status=429)
    assert (reply.status, reply.body) == (429, b'{"error":{}}')


async def test_an_error_becomes_a_status() -> None:
    refusal = {"code": "moderation_blocked", "type": "image_generation_user_error", "message": "No."}
    reply, shown = await streamed(event(PARTIAL), event({"type": "error", "error": refusal}))
    assert (reply.status, reply.json, len(shown)) == (400, {"error": refusal}, 1)
    reply, _ = await streamed(event({"type": "error", "code": "x", "message": "Broken."}))
    assert (reply.status, reply.json["error"]["message"]) == (500, "Broken.")


async def test_a_stream_that_breaks_off_has_an_unknown_outcome() -> None:
    with pytest.raises(MaybeSent, match="before the image was complete"):
        await streamed(event(PARTIAL))
    with pytest.raises(MaybeSent, match="malformed event"):
        await streamed(b"data: {\n\n")
    with pytest.raises(MaybeSent):
        await streamed(event(PARTIAL), is_cut=True)
