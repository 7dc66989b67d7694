"""Recordings of speech: one serves every format and speed, at the pace that is asked for."""

import asyncio
import base64
import json
from typing import Any

import pytest

from penstock.api.endpoints import recordings as endpoints
from penstock.errors import InvalidRequest, RecordingNotFound
from penstock.sound.formats import SOUND_FORMATS, SoundFormat
from penstock.speech.endpoint import create_speech
from tests import sounds
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import ended_records
from tests.unit.speech.speech_calls import TEXT, sound_of, speak

SECONDS = len(TEXT) / 15
RECORD = {"x-service-replay": "record"}
REPLAY = {"x-service-replay": "replay-or-error"}


async def record(running: RunningGateway, **body: Any) -> str:
    response = await speak(running, headers=RECORD, **body)
    assert response.headers["x-service-replay-status"] == "recorded"
    await sound_of(response)
    return response.headers["x-service-replay-recording"]


async def test_a_recording_is_replayed_byte_for_byte_for_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await record(running)
        await ended_records(running, 1)
        running.clock.advance(1)
        before = await running.money()
        response = await speak(running, headers=REPLAY)
        assert response.headers["x-service-replay-status"] == "replayed"
        assert response.headers["x-service-replay-recording"] == made
        assert response.headers["x-service-executed-model"] == "lab/voice-1"
        assert response.headers["x-service-voice"] == "alloy"
        assert await sound_of(response) == sounds.encoded("mp3", SECONDS)
        assert len(running.lab.speeches) == 1
        found = await running.record((await ended_records(running, 2))[-1]["id"])
        assert (found["status"], found["cost"], found["kind"]) == ("completed", 0, "speech")
        assert await running.money() == before


@sqlite_only
@pytest.mark.sweep(5)
@pytest.mark.parametrize("output_format", SOUND_FORMATS)
@pytest.mark.parametrize("speed", [0.5, 1, 2])
async def test_one_recording_serves_every_format_and_speed(
    open_gateway: OpenGateway, output_format: SoundFormat, speed: float
) -> None:
    async with open_gateway() as running:
        await record(running, speed=1.7)  # recorded at the usual speed all the same
        response = await speak(running, headers=REPLAY, response_format=output_format, speed=speed)
        sound = await sound_of(response)
        found = "pcm" if output_format == "pcm" else None
        assert sounds.container_of(sound) == output_format
        assert sounds.seconds_of(sound, found) == pytest.approx(SECONDS / speed, rel=0.05, abs=0.1)
        assert sounds.hertz_of(sound, found) == pytest.approx(220, rel=0.01)


@sqlite_only
async def test_the_words_are_not_compared_unless_that_is_asked_for(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await record(running)
        await sound_of(await speak(running, headers=REPLAY, input="Other words."))
        exact = {**REPLAY, "x-service-replay-match": "exact"}
        await sound_of(await speak(running, headers=exact, stream_format="sse", response_format="wav"))
        with pytest.raises(RecordingNotFound):
            await speak(running, headers=exact, input="Other words.")
        with pytest.raises(RecordingNotFound):
            await speak(running, headers=REPLAY, voice="verse")
        strict = {**REPLAY, "x-service-replay-match": "strict"}
        await sound_of(await speak(running, headers=strict))
        with pytest.raises(RecordingNotFound):
            await speak(running, headers=strict, speed=2)
        fields = {**REPLAY, "x-service-replay-match": "specific", "x-service-replay-fields": "input"}
        await sound_of(await speak(running, headers=fields, voice="verse"))


@sqlite_only
async def test_a_replay_keeps_the_pace_of_the_recording(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        running.lab.speeches.next(gate)
        call = asyncio.ensure_future(speak(running, headers=RECORD))
        await running.lab.speeches.reached(1)
        running.clock.advance(3)
        gate.open()
        await sound_of(await call)
        real = {**REPLAY, "x-service-replay-latency": "real"}
        begun = running.clock.monotonic()
        response = asyncio.ensure_future(speak(running, headers=real))

        async def done() -> bool:
            return response.done()

        await running.wait_until(done, step_seconds=0.1)
        await sound_of(response.result())
        assert running.clock.monotonic() - begun >= 3
        instant = running.clock.monotonic()
        await sound_of(await speak(running, headers=REPLAY))
        assert running.clock.monotonic() == instant


@sqlite_only
async def test_several_parts_are_joined_again(open_gateway: OpenGateway) -> None:
    text = "This sentence has some words. " * 140
    async with open_gateway() as running:
        running.lab.characters_per_second = 150
        await record(running, input=text)
        assert len(running.lab.speeches) == 2
        sound = await sound_of(await speak(running, headers=REPLAY, response_format="opus"))
        assert sounds.seconds_of(sound) == pytest.approx(len(text) / 150, rel=0.03)


@sqlite_only
async def test_a_sound_that_breaks_off_is_not_recorded(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.speeches.next(faults.raw(b"", "audio/mpeg"))
        with pytest.raises(Exception, match="sent no sound"):
            await speak(running, headers=RECORD)
        with pytest.raises(RecordingNotFound):
            await speak(running, headers=REPLAY)


@sqlite_only
async def test_a_recording_is_exported_and_imported(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await record(running, response_format="wav")
        row = await running.gateway.recordings.get(running.caller.org_id, made)
        response = await endpoints.export_recording(running.gateway, running.call(recording_id=made))
        assert response.chunks is not None
        document = b"".join([chunk async for chunk in response.chunks])
        fields = json.loads(document)
        assert (fields["kind"], fields["files"][0]["content_type"]) == ("speech", "audio/wav")
        assert base64.b64decode(fields["files"][0]["data"])[:4] == b"RIFF"
        stranger = await running.create_caller_in_new_org()
        await endpoints.import_recording(running.gateway, running.call(fields, caller=stranger))
        call = running.call({"model": "lab/voice", "input": TEXT, "voice": "alloy"}, caller=stranger, headers=REPLAY)
        assert await sound_of(await create_speech(running.gateway, call))
        fields["files"][0]["data"] = base64.b64encode(b"ffconcat version 1.0\n").decode()
        with pytest.raises(InvalidRequest, match="audio/wav"):
            await endpoints.import_recording(running.gateway, running.call(fields, caller=stranger))
        assert row.kind == "speech"


@sqlite_only
async def test_kept_speech_is_not_recorded_and_says_so(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest, match="kept"):
            await speak(running, headers={**RECORD, "accept": "application/json"})
        with pytest.raises(RecordingNotFound):
            await speak(running, headers={**REPLAY, "accept": "application/json"})
