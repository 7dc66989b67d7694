"""Calls of transcription from the check of their fields to the record of what they cost."""

import asyncio
import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from penstock.errors import InvalidRequest, PayloadTooLarge, Problem
from penstock.interrupts import CallerGone
from penstock.providers.openai_compatible import OPERATIONS, TRANSCRIPTION
from penstock.providers.spec import Transcription
from penstock.providers.transcription import WHISPER, read_openai
from penstock.schema import Call
from penstock.transcription.endpoint import transcribe
from tests import sounds
from tests.fake_providers import faults
from tests.fake_providers.scripted import WORDS
from tests.fake_providers.server import Act, FakeCall
from tests.gateway import Installation, OpenGateway, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import PATH, decoded, form_call, into_english, listen, stored, text_of

TEXT = " ".join(WORDS)
COST = 2 * 100_000  # nanos, for two seconds
VERBOSE = ("response_format", "verbose_json")


async def test_a_transcript_is_returned_charged_and_recorded(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        response = await listen(running)
        assert decoded(response) == {"text": TEXT, "usage": {"type": "duration", "seconds": 2.0}}
        assert response.headers == {"x-service-executed-model": "lab/listen-1", "x-service-cost": "0.0002"}
        record = await last_record(running)
        assert (record["status"], record["cost"], record["kind"]) == ("completed", COST, "transcription")
        assert (record["modality"], record["model"], record["provider"]) == ("speech", "lab/listen", "lab")
        assert json.loads(record["cost_lines"]) == [["input_second", 2, "0.0001", COST]]
        assert await running.money() == (available - COST, 0)
        assert running.lab.bill_usd * 10**9 == COST


@sqlite_only
async def test_the_provider_gets_one_channel_and_nothing_else_of_the_file(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await listen(running, ("language", "en"), file=sounds.encoded("mp3", 2.0, 44_100))
        fields = running.lab.transcripts.received[0].fields
        assert sounds.container_of(fields["file"]) == "flac"
        assert sounds.decoded(fields["file"])[1] == 16_000
        assert sounds.hertz_of(fields["file"]) == pytest.approx(220, rel=0.01)
        assert {name: value for name, value in fields.items() if name != "file"} == {
            "model": "listen-1",
            "language": "en",
            "response_format": "json",
        }


@sqlite_only
@pytest.mark.parametrize("found", ["mp3", "opus", "aac", "flac", "wav"])
async def test_each_format_is_read_and_measured_by_its_samples(open_gateway: OpenGateway, found: Any) -> None:
    async with open_gateway() as running:
        file = bytearray(sounds.encoded(found, 3.0))
        if found == "wav":
            file[40:44] = (900_000_000).to_bytes(4, "little")  # a header that lies
        response = await listen(running, VERBOSE, file=bytes(file))
        assert decoded(response)["duration"] == pytest.approx(3, abs=0.15)


@sqlite_only
async def test_the_forms_of_a_transcript(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        assert text_of(await listen(running, ("response_format", "text"))) == TEXT + "\n"
        srt = text_of(await listen(running, ("response_format", "srt")))
        assert srt == (
            "1\n00:00:00,000 --> 00:00:01,000\nNever gonna give you up.\n\n"
            "2\n00:00:01,000 --> 00:00:02,000\nNever gonna let you down.\n"
        )
        response = await listen(running, ("response_format", "vtt"))
        assert response.media_type == "text/vtt; charset=utf-8"
        assert text_of(response).startswith("WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nNever gonna give you up.\n")
        verbose = decoded(await listen(running, VERBOSE, ("timestamp_granularities", "word")))
        assert (verbose["task"], verbose["language"], verbose["duration"]) == ("transcribe", "english", 2.0)
        assert [word["word"] for word in verbose["words"]] == list(WORDS)
        assert verbose["segments"][1]["avg_logprob"] == -0.2
        assert "words" not in decoded(await listen(running, VERBOSE))
        asked = running.lab.transcripts.received[-2].fields
        assert asked["timestamp_granularities"] == ["word", "segment"]


@sqlite_only
async def test_a_transcript_as_events(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await listen(running, ("stream", "true"))
        assert response.media_type == "text/event-stream"
        events = [json.loads(line[6:]) for line in text_of(response).split("\n\n") if line]
        assert events == [
            {"type": "transcript.text.delta", "delta": TEXT},
            {"type": "transcript.text.done", "text": TEXT, "usage": {"type": "duration", "seconds": 2.0}},
        ]


@sqlite_only
async def test_a_translation_goes_to_its_own_endpoint(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await into_english(running, VERBOSE)
        assert decoded(response)["task"] == "translate"
        assert len(running.lab.translations) == 1
        assert (await last_record(running))["kind"] == "transcription"
        with pytest.raises(InvalidRequest) as refusal:
            await into_english(running, VERBOSE, ("timestamp_granularities[]", "word"))
        assert refusal.value.param == "timestamp_granularities"


@sqlite_only
async def test_a_dry_run_measures_the_sound_and_charges_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await listen(running, query={"dryRun": "true"})
        assert response.json["total_cost_micros"] == COST // 1000
        (component,) = response.json["components"]
        assert (component["type"], component["metric"], component["quantity"]) == ("input", "second", 2)
        assert len(running.lab.transcripts) == 0
        assert await running.records() == []


def json_call(running: RunningGateway, **fields: Any) -> Call:
    return running.call({"model": "lab/listen", **fields}, endpoint=PATH)


@sqlite_only
async def test_a_sound_in_json(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        data = base64.b64encode(sounds.wav(2.0)).decode()
        call = json_call(running, input_audio={"data": data, "format": "wav"})
        assert decoded(await transcribe(running.gateway, call))["text"] == TEXT
        with pytest.raises(InvalidRequest) as refusal:
            await transcribe(running.gateway, json_call(running, input_audio={"data": "§§§"}))
        assert refusal.value.param == "input_audio"


@sqlite_only
async def test_a_sound_behind_a_url_follows_the_rules_for_urls(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for url in ("http://files.test/a.mp3", "https://127.0.0.1/a.mp3"):
            with pytest.raises(InvalidRequest) as refusal:
                await transcribe(running.gateway, json_call(running, file_url=url))
            assert refusal.value.param == "file_url"


@sqlite_only
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ([("response_format", "ass")], "response_format"),
        ([("response_format", "srt"), ("stream", "true")], "stream"),
        ([("temperature", "2")], "temperature"),
        ([("temperature", "warm")], "temperature"),
        ([("timestamp_granularities[]", "letter")], "timestamp_granularities"),
        ([("include[]", "everything")], "include"),
        ([("include[]", "logprobs")], "include"),
        ([("diarize", "true")], "diarize"),
        ([("response_format", "diarized_json")], "response_format"),
        ([("keywords[]", "x" * 300)], "keywords"),
        ([("file_url", "https://files.test/a.mp3")], "file_url"),
        ([("model", "lab/chat")], "model"),
    ],
)
async def test_a_bad_field_is_refused_by_name(
    open_gateway: OpenGateway, fields: list[tuple[str, str]], param: str
) -> None:
    async with open_gateway() as running:
        model = "lab/chat" if param == "model" else "lab/listen"
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, *(field for field in fields if field[0] != "model"), model=model)
        assert refusal.value.param == param
        assert len(running.lab.transcripts) == 0
        assert await running.records() == []


@sqlite_only
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"ffconcat version 1.0\nfile 'other.wav'\n",
        b"RIFF\x24\0\0\0WAVEfmt ",
        b"ID3" + b"\0" * 500,
        sounds.wav(0.0),
    ],
)
async def test_a_file_that_is_not_a_sound_is_refused(open_gateway: OpenGateway, data: bytes) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, file=data)
        assert refusal.value.param == "file"
        assert await running.records() == []


@sqlite_only
async def test_a_file_that_is_too_large_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(input_audio_bytes=1000) as running:
        with pytest.raises(PayloadTooLarge, match="1000 bytes"):
            await listen(running)


@sqlite_only
async def test_a_model_without_times_names_those_that_have_them(installation: Installation) -> None:
    installation.environ["OPENAI_API_KEY"] = "secret"
    async with installation.open(disabled_providers=()) as running:
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, ("response_format", "srt"), model="gpt-transcribe")
        assert refusal.value.param == "response_format"
        assert "gpt-transcribe gives no times for `srt`" in refusal.value.message
        for name in ("atelier/listen", "lab/listen", "whisper-1"):
            assert f"`{name}`" in refusal.value.message


@sqlite_only
@pytest.mark.parametrize("act", [faults.busy(1), faults.raw(b"<html>", "text/html"), faults.raw(b'{"txt": 1}')])
async def test_a_failure_of_the_only_provider_costs_nothing(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        running.lab.transcripts.next(act)
        with pytest.raises(Problem):
            await listen(running)
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await running.money() == (available, 0)


@sqlite_only
async def test_a_caller_who_leaves_pays_for_what_the_provider_was_sent(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        call = form_call(running, ("model", "lab/listen"))
        arrived = asyncio.Event()

        async def never(exchanged: FakeCall) -> None:
            arrived.set()
            await faults.stalled(exchanged)

        running.lab.transcripts.next(never)
        waiting = asyncio.create_task(transcribe(running.gateway, call))
        await arrived.wait()
        call.line.close()
        with pytest.raises(CallerGone):
            await waiting
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("cancelled", COST)


@sqlite_only
@pytest.mark.parametrize("in_json", [False, True])
async def test_the_sound_is_never_stored_and_the_text_as_the_settings_say(
    open_gateway: OpenGateway, in_json: bool
) -> None:
    async with open_gateway(payloads="all") as running:
        call = form_call(running, ("model", "lab/listen"), ("prompt", "A song"))
        if in_json:
            data = base64.b64encode(sounds.wav(2.0)).decode()
            call = json_call(running, input_audio={"data": data}, prompt="A song")
        response = await transcribe(running.gateway, call)
        await last_record(running)
        shown = await stored(running, call.id)
        assert shown["request"] == {"model": "lab/listen", "prompt": "A song"}
        assert shown["response"] == decoded(response)


@sqlite_only
async def test_a_long_sound_is_heard_in_parts_that_are_joined(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(TRANSCRIPTION, transcription=Transcription(details=WHISPER, read=read_openai, max_seconds=60))
    monkeypatch.setitem(OPERATIONS, "transcription", short)
    async with open_gateway() as running:
        response = await listen(running, VERBOSE, file=sounds.encoded("flac", 100.0))
        verbose = decoded(response)
        assert verbose["text"] == f"{TEXT} {TEXT}"
        starts = [segment["start"] for segment in verbose["segments"]]
        assert starts == sorted(starts)
        assert verbose["segments"][-1]["end"] == pytest.approx(100, abs=0.1)
        first, second = (request.fields for request in running.lab.transcripts.received)
        assert "prompt" not in first
        assert second["prompt"] == "Never gonna let you down."
        assert (await last_record(running))["cost"] == 100 * 100_000
