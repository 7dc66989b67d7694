"""Calls of speech through a gateway."""

from typing import Any

from penstock.schema import Response
from penstock.speech.endpoint import create_speech
from tests.gateway import RunningGateway

TEXT = "The quick brown fox jumps over the lazy dog."
SAY = {"model": "lab/voice", "input": TEXT, "voice": "alloy"}


async def speak(running: RunningGateway, *, query: Any = None, headers: Any = None, **body: Any) -> Response:
    fields = {name: value for name, value in {**SAY, **body}.items() if value is not None}
    call = running.call(fields, endpoint="/compat/v1/audio/speech", query=query, headers=headers)
    return await create_speech(running.gateway, call)


async def sound_of(response: Response) -> bytes:
    assert response.chunks is not None
    return b"".join([chunk async for chunk in response.chunks])
