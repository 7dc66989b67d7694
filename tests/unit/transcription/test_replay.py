"""Recordings of transcripts: one serves every form."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from penstock.api.endpoints import recordings as endpoints
from penstock.errors import InvalidRequest, RecordingNotFound
from penstock.providers.openai_compatible import OPERATIONS, TRANSCRIPTION
from penstock.providers.spec import Transcription
from penstock.providers.transcription import WHISPER, read_openai
from tests import sounds
from tests.fake_providers.scripted import WORDS
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import decoded, into_english, listen, text_of

TEXT = " ".join(WORDS)
RECORD = {"x-service-replay": "record"}
REPLAY = {"x-service-replay": "replay-or-error"}
VERBOSE = ("response_format", "verbose_json")


async def record(running: RunningGateway, *fields: tuple[str, str], **options: Any) -> str:
    response = await listen(running, *fields, headers=RECORD, **options)
    assert response.headers["x-service-replay-status"] == "recorded"
    return response.headers["x-service-replay-recording"]


async def test_one_recording_serves_every_form_for_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await record(running)
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        before = await running.money()
        response = await listen(running, headers=REPLAY)
        assert response.headers["x-service-replay-status"] == "replayed"
        assert response.headers["x-service-replay-recording"] == made
        assert response.headers["x-service-executed-model"] == "lab/listen-1"
        assert decoded(response)["text"] == TEXT
        assert text_of(await listen(running, ("response_format", "srt"), headers=REPLAY)).startswith("1\n00:00:00,000")
        verbose = decoded(await listen(running, VERBOSE, ("timestamp_granularities", "word"), headers=REPLAY))
        assert [word["word"] for word in verbose["words"]] == list(WORDS)
        assert "transcript.text.done" in text_of(await listen(running, ("stream", "true"), headers=REPLAY))
        assert len(running.lab.transcripts) == 1
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert await running.money() == before
        records = await running.records()
        assert {(record["status"], record["kind"]) for record in records} == {("completed", "transcription")}
        assert sorted(record["cost"] for record in records) == [0, 0, 0, 0, 200_000]


@sqlite_only
async def test_the_sound_is_compared_by_its_samples(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await record(running, file=sounds.wav(2.0))
        same = sounds.encoded("flac", 2.0)  # another file with the same samples
        assert decoded(await listen(running, file=same, headers=REPLAY))["text"] == TEXT
        with pytest.raises(RecordingNotFound):
            await listen(running, file=sounds.wav(1.5), headers=REPLAY)


@sqlite_only
async def test_what_changes_the_text_is_compared(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await record(running, ("language", "en"))
        with pytest.raises(RecordingNotFound):
            await listen(running, ("language", "de"), headers=REPLAY)
        await listen(running, ("language", "en"), ("prompt", "other words"), headers=REPLAY)
        exact = {**REPLAY, "x-service-replay-match": "exact"}
        with pytest.raises(RecordingNotFound):
            await listen(running, ("language", "en"), ("prompt", "other words"), headers=exact)
        strict = {**REPLAY, "x-service-replay-match": "strict"}
        await listen(running, ("language", "en"), headers=strict)
        with pytest.raises(RecordingNotFound):
            await listen(running, ("language", "en"), VERBOSE, headers=strict)


@sqlite_only
async def test_no_times_are_invented_of_a_recording(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = replace(TRANSCRIPTION, transcription=Transcription(details={"text": WHISPER["text"]}, read=read_openai))
    monkeypatch.setitem(OPERATIONS, "transcription", plain)
    async with open_gateway() as running:
        await record(running)
        assert decoded(await listen(running, headers=REPLAY))["text"] == TEXT
        with pytest.raises(InvalidRequest, match="no times"):
            await listen(running, ("response_format", "srt"), headers=REPLAY)
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert sorted(record["cost"] for record in await running.records()) == [0, 0, 200_000]


@sqlite_only
async def test_the_mock_listens_for_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        response = await listen(running, VERBOSE, ("beam", "5"), headers={"x-service-replay": "mock"})
        assert response.headers["x-service-replay-status"] == "mocked"
        assert decoded(response)["text"] == "[sound]"
        assert len(running.lab.transcripts) == 0
        record = await last_record(running)
        assert (record["status"], record["cost"], record["provider"]) == ("completed", 0, "atelier")
        assert await running.money() == before


@sqlite_only
async def test_a_recording_of_a_transcription_is_not_one_of_a_translation(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await record(running)
        with pytest.raises(RecordingNotFound):
            await into_english(running, headers=REPLAY)


@sqlite_only
async def test_nothing_is_recorded_where_nothing_is_stored(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="none") as running:
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, headers=RECORD)
        assert refusal.value.param == "X-Service-Replay"


@sqlite_only
async def test_a_recording_is_exported_and_imported(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await record(running)
        response = await endpoints.export_recording(running.gateway, running.call(recording_id=made))
        assert response.chunks is not None
        fields = json.loads(b"".join([chunk async for chunk in response.chunks]))
        assert (fields["kind"], fields["files"][0]["content_type"]) == ("transcription", "application/json")
        await endpoints.delete_recording(running.gateway, running.call(recording_id=made))
        with pytest.raises(RecordingNotFound):
            await listen(running, headers=REPLAY)
        await endpoints.import_recording(running.gateway, running.call(fields))
        assert decoded(await listen(running, headers=REPLAY))["text"] == TEXT


@sqlite_only
async def test_an_imported_recording_that_is_no_transcript_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await record(running)
        response = await endpoints.export_recording(running.gateway, running.call(recording_id=made))
        assert response.chunks is not None
        fields = json.loads(b"".join([chunk async for chunk in response.chunks]))
        await endpoints.delete_recording(running.gateway, running.call(recording_id=made))
        fields["files"][0]["data"] = base64.b64encode(b'{"text": 5}').decode()
        await endpoints.import_recording(running.gateway, running.call(fields))
        with pytest.raises(InvalidRequest, match="no transcript"):
            await listen(running, headers=REPLAY)
