"""Effects and music that are asked for as speech."""

import asyncio
from typing import Any

import pytest

from penstock.errors import InvalidRequest, Problem, UnprocessableRequest
from penstock.speech.endpoint import create_speech
from tests import sounds
from tests.fake_providers import faults
from tests.fake_providers.scripted import SOUND_SECOND_USD
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.speech.speech_calls import sound_of

pytestmark = sqlite_only
PATH = "/compat/v1/audio/speech"


async def ask(running: RunningGateway, query: Any = None, headers: Any = None, **body: Any) -> Any:
    body = {"model": "lab/sound", "input": "rain on a roof", "voice": "alloy", "seconds": 2, **body}
    call = running.call(body, endpoint=PATH, query=query, headers=headers)
    asked = asyncio.ensure_future(create_speech(running.gateway, call))

    async def is_answered() -> bool:
        return asked.done()

    await running.wait_until(is_answered)
    return await asked


async def file_of(response: Any) -> bytes:
    return await sound_of(response) if response.chunks is not None else bytes(response.body)


@pytest.mark.parametrize(("wanted", "kind"), [("mp3", "audio/mpeg"), ("flac", "audio/flac"), (None, "audio/mpeg")])
async def test_a_sound_is_returned_as_speech_would_be(open_gateway: OpenGateway, wanted: Any, kind: str) -> None:
    async with open_gateway() as running:
        response = await ask(running, **({"response_format": wanted} if wanted else {}))
        assert response.headers["content-type"] == kind
        assert sounds.seconds_of(await file_of(response)) == pytest.approx(2, abs=0.1)
        assert response.headers["x-service-executed-model"] == "lab/foley-1"
        record = await last_record(running)
        assert (record["kind"], record["endpoint"], record["status"]) == ("sound", PATH, "completed")
        assert record["cost"] == int(2 * SOUND_SECOND_USD * 10**9)
        (sent,) = running.lab.effects.received
        assert sent.fields["text"] == "rain on a roof"
        assert not {"voice", "speed", "input", "instructions"} & set(sent.fields)


async def test_what_only_speech_has_is_ignored(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await ask(running, speed=2, instructions="softly", stream_format="audio", sample_rate=48000)
        assert (await last_record(running))["status"] == "completed"


async def test_a_caller_who_takes_json_gets_the_url(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        shown = (await ask(running, headers={"accept": "application/json"}, response_format="wav")).json
        assert (shown["object"], shown["output_format"]) == ("audio.speech", "wav")
        assert shown["seconds"] == pytest.approx(2, abs=0.1)
        assert shown["data"][0]["url"]


async def test_a_job_and_a_dry_run_are_those_of_a_sound(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        estimate = (await ask(running, query={"dryRun": "true"})).json
        assert estimate["total_cost_micros"] == int(2 * SOUND_SECOND_USD * 10**6)
        response = await ask(running, headers={"prefer": "respond-async"})
        assert (response.status, response.json["object"]) == (202, "audio")
        assert (await running.wait_for_request(response.json["id"]))["status"] == "completed"


async def test_a_repeated_key_returns_the_first_sound(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first, second = [await ask(running, idempotency_key="k") for _ in range(2)]
        assert await file_of(first) == await file_of(second)
        assert "idempotent-replayed" not in first.headers
        assert second.headers["idempotent-replayed"] == "true"
        assert second.headers["x-request-id"] == (await last_record(running))["id"]
        with pytest.raises(UnprocessableRequest) as refusal:
            await ask(running, idempotency_key="k", input="a bell")
        assert refusal.value.param == "idempotency_key"
        assert len(running.lab.effects.received) == 1


async def test_a_failure_is_an_error_response_and_free(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.effects.next(faults.rejected)
        with pytest.raises(Problem):
            await ask(running)
        assert (await last_record(running))["cost"] == 0
        assert await running.money() == before


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"stream_format": "sse"}, "stream_format"),
        ({"response_format": "pcm"}, "response_format"),
        ({"n": 2}, "n"),
        ({"prompt": "a bell"}, "prompt"),
        ({"output_format": "wav"}, "output_format"),
        ({"reference_audio": {"audio": "data:audio/wav;base64,AAAA", "consent": True}}, "reference_audio"),
        ({"input": 7}, "input"),
        ({"input": "x" * 40_000}, "input"),
        ({"input": ""}, "input"),
    ],
)
async def test_what_cannot_be_had_is_refused_in_the_words_of_speech(
    open_gateway: OpenGateway, fields: dict[str, Any], param: str
) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as refusal:
            await ask(running, **fields)
        assert refusal.value.param == param
        assert f"`{param}`" in refusal.value.message
        assert running.lab.effects.received == []


async def test_a_mock_costs_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await ask(running, headers={"x-service-replay": "mock"})
        assert response.headers["x-service-replay-status"] == "mocked"
        assert sounds.container_of(await file_of(response)) == "mp3"
        assert running.lab.effects.received == []
