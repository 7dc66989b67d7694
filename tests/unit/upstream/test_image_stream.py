"""Streams of images: unfinished images are shown, and the rest adds up to a whole response."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.event_loop import LoopTurns
from penstock.net.errors import MaybeSent, ResponseTooLarge
from penstock.providers.spec import Reply
from penstock.upstream.image_stream import ImageEventBuffer, send_streamed
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


def event(fields: Any, end: bytes = b"\n") -> bytes:
    return b"event: x" + end + b"data: " + json.dumps(fields).encode() + end + end


async def streamed(
    *pieces: bytes, content_type: str = "text/event-stream", status: int = 200, is_cut: bool = False
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
        return await send_streamed(client, post_request(server), 30, LoopTurns(), shown.append), shown


def test_events_are_found_however_the_bytes_are_cut() -> None:
    for end in (b"\n", b"\r\n"):
        stream = b": waiting" + end + end + event(PARTIAL, end) + event(DONE, end)
        for size in (1, 2, 3, 7, len(stream)):
            buffer = ImageEventBuffer()
            pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
            found = [json.loads(data) for piece in pieces for data in buffer.feed(piece)]
            assert found == [PARTIAL, DONE], (end, size)


def test_a_stream_that_is_too_long_is_refused() -> None:
    buffer = ImageEventBuffer(max_bytes=10)
    assert list(buffer.feed(b"12345")) == []
    with pytest.raises(ResponseTooLarge):
        list(buffer.feed(b"678901"))


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
