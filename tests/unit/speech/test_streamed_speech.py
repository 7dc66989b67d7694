"""Sound is passed on while it arrives, in both forms, and each end of it is settled."""

import asyncio
import base64
import json
from typing import Any

import pytest

from penstock.errors import UpstreamError
from tests import sounds
from tests.fake_providers import faults
from tests.fake_providers.server import FakeCall
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.speech.speech_calls import TEXT, sound_of, speak


def events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.removeprefix(b"data: ")) for event in body.split(b"\n\n") if event]


@sqlite_only
@pytest.mark.parametrize("output_format", ["mp3", "pcm", "flac"])
async def test_events_add_up_to_the_same_bytes(open_gateway: OpenGateway, output_format: str) -> None:
    async with open_gateway() as running:
        plain = await sound_of(await speak(running, response_format=output_format))
        response = await speak(running, response_format=output_format, stream_format="sse")
        assert response.media_type == "text/event-stream"
        *deltas, done = events(await sound_of(response))
        assert {event["type"] for event in deltas} == {"speech.audio.delta"}
        assert b"".join(base64.b64decode(event["audio"]) for event in deltas) == plain
        assert done["type"] == "speech.audio.done"
        assert done["usage"] == {"input_tokens": len(TEXT), "output_tokens": 0, "total_tokens": len(TEXT)}
        assert done["metadata"]["cost"] == pytest.approx(len(TEXT) / 100_000)


@sqlite_only
async def test_a_stream_of_events_that_breaks_off_says_so(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.speeches.next(faults.cut(2000))
        response = await speak(running, stream_format="sse")
        assert response.chunks is not None
        seen = b""
        try:
            async for chunk in response.chunks:
                seen += chunk
        except UpstreamError:
            seen += b"data: {}"
        assert seen.endswith(b"data: {}"), "the connection is closed without the end of the response"
        assert events(seen)[-2]["type"] == "error"


@sqlite_only
@pytest.mark.parametrize("output_format", ["mp3", "wav"])
async def test_the_first_sound_is_passed_on_before_the_provider_has_made_the_rest(
    open_gateway: OpenGateway, output_format: str
) -> None:
    is_heard = asyncio.Event()
    sound = sounds.encoded("mp3", 4.0)

    async def act(call: FakeCall) -> None:
        call.accept()
        await call.exchange.begin(200, "audio/mpeg", {})
        await call.exchange.more(sound[: len(sound) // 2])
        await is_heard.wait()
        await call.exchange.more(sound[len(sound) // 2 :])
        await call.exchange.end()

    async with open_gateway() as running:
        running.lab.speeches.next(act)
        response = await speak(running, response_format=output_format)
        assert response.chunks is not None
        first = await anext(aiter(response.chunks))
        is_heard.set()
        rest = b"".join([chunk async for chunk in response.chunks])
        assert sounds.seconds_of(first + rest) == pytest.approx(4, abs=0.2)


@sqlite_only
async def test_who_leaves_before_the_first_sound_pays_for_the_text(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await speak(running)
        assert response.chunks is not None
        await response.chunks.aclose()  # type: ignore[attr-defined]
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("cancelled", len(TEXT) * 10_000)
        assert (await running.money())[1] == 0
