"""The stream of an image call: comments while it waits, and an event when the images are late."""

import asyncio
import json
from typing import Any

import pytest

from penstock.generations import endpoints, stream
from penstock.generations.stream import event_bytes
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only


def test_an_event_has_its_name_twice() -> None:
    expected = b'event: error\ndata: {"type":"error","error":{"code":"X"}}\n\n'
    assert event_bytes("error", {"error": {"code": "X"}}) == expected


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
