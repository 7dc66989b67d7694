"""The stream of an image call: comments while it waits, and an event when the images are late."""

import asyncio
import base64
import io
import json
import random
from typing import Any

import pytest
from PIL import Image

from penstock.api.responses import encode_body
from penstock.chat.responses import create_response
from penstock.generations import endpoints, stream
from penstock.long_bodies.long_body import pieces_of
from penstock.schema import Response
from tests.fake_providers import faults
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, sqlite_only

PIECE = 300_000  # bytes, of which an image of NOISE has more, also as a file
NOISE = Image.frombytes("RGB", (400, 400), random.Random(1).randbytes(3 * 400 * 400))
ECHO = "atelier/echo"


def noisy_image() -> Act:
    """A provider's response with a large image."""
    file = io.BytesIO()
    NOISE.save(file, "PNG", compress_level=1)
    image = {"b64_json": base64.b64encode(file.getvalue()).decode()}
    return faults.raw(json.dumps({"created": 1, "data": [image]}).encode())


async def chunks_of(response: Response) -> list[bytes]:
    assert response.chunks is not None
    return [chunk async for chunk in response.chunks]


@sqlite_only
async def test_a_large_image_is_encoded_in_pieces(open_gateway: OpenGateway) -> None:
    """In one piece it would stop other calls, for longer the larger it is."""
    async with open_gateway(disabled_providers=()) as running:
        running.lab.images.always(noisy_image())
        body = {"model": "image-1", "prompt": "a pear", "size": "64x64", "stream": True}
        path = "/compat/v1/images/generations"
        chunks = await chunks_of(await endpoints.make_images(running.gateway, running.call(body, endpoint=path)))
        assert max(map(len, chunks)) < PIECE
        comment, event, end = b"".join(chunks).split(b"\n\n")
        assert (comment[:1], end) == (b":", b"")
        name, data = event.split(b"\n")
        fields = json.loads(data.removeprefix(b"data: "))
        assert name == b"event: image_generation.completed"
        assert fields["type"] == "image_generation.completed"
        assert fields["usage"]["total_tokens"] == 0, "OpenAI's type has it"
        assert Image.open(io.BytesIO(base64.b64decode(fields["b64_json"]))).tobytes() == NOISE.tobytes()

        tool = {"type": "image_generation", "model": "image-1", "partial_images": 1}
        asked = {"model": ECHO, "input": "x", "tools": [tool], "tool_choice": {"type": "image_generation"}}
        for streamed in (False, True):
            call = running.call({**asked, "stream": streamed}, endpoint="/compat/v1/responses")
            response = await create_response(running.gateway, call)
            body_pieces = await chunks_of(response) if streamed else [*pieces_of(encode_body(response))]
            assert max(map(len, body_pieces)) < PIECE
            assert b"".join(body_pieces).count(fields["b64_json"].encode()) == 1 + streamed, "also in the last event"


@sqlite_only
async def test_a_stream_whose_images_are_late_says_where_they_will_be(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_COMMENT_SECONDS", 0.01)  # of real time
    async with open_gateway(image_wait_seconds=40.0) as running:
        gate = faults.Gate()
        running.lab.images.next(gate)
        body = {"model": "image-1", "prompt": "x", "size": "64x64", "stream": True}
        call = running.call(body, endpoint="/compat/v1/images/generations")
        response = await endpoints.make_images(running.gateway, call)
        assert response.chunks is not None
        chunks: list[bytes] = []

        async def read() -> None:
            assert response.chunks is not None
            async for chunk in response.chunks:
                chunks.append(chunk)

        reading = asyncio.create_task(read())

        async def met() -> bool:
            return reading.done()

        await running.wait_until(met)
        await reading
        assert all(chunk.startswith(b":") for chunk in chunks[:-1])
        assert len(chunks) >= 2
        error: Any = json.loads(chunks[-1].partition(b"data: ")[2])["error"]
        assert (error["code"], call.id in error["message"]) == ("UPSTREAM_TIMEOUT", True)
        gate.open()
        await running.wait_for_request(call.id)
