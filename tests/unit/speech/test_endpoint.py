"""Calls of speech from the check of their fields to the record of what they cost."""

import json

import pytest

from penstock.errors import AllProvidersExhausted, ContentPolicyViolation, InvalidRequest, Problem, UpstreamError
from penstock.generations.payloads import retrieve_payloads
from penstock.sound.formats import SOUND_FORMATS, SoundFormat, content_type
from tests import sounds
from tests.fake_providers import faults
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.speech.speech_calls import TEXT, sound_of, speak

SECONDS = len(TEXT) / 15
COST = len(TEXT) * 10_000  # nanos


async def test_speech_is_passed_on_charged_and_recorded(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        response = await speak(running)
        assert (response.status, response.media_type) == (200, "audio/mpeg")
        assert response.headers["x-service-executed-model"] == "lab/voice-1"
        assert (response.headers["x-service-voice"], response.headers["x-service-cost"]) == ("alloy", "0.00044")
        assert await sound_of(response) == sounds.encoded("mp3", SECONDS), "byte for byte"
        record = await last_record(running)
        assert (record["status"], record["cost"], record["kind"]) == ("completed", COST, "speech")
        assert (record["modality"], record["model"], record["provider"]) == ("speech", "lab/voice", "lab")
        assert record["response_bytes"] == len(sounds.encoded("mp3", SECONDS))
        assert await running.money() == (available - COST, 0)
        assert running.lab.bill_usd * 10**9 == COST
        assert running.lab.speeches.received[0].fields == {
            "input": TEXT,
            "voice": "alloy",
            "response_format": "mp3",
            "model": "voice-1",
        }


@sqlite_only
@pytest.mark.parametrize(("payloads", "stored"), [("none", None), ("media", TEXT)])
async def test_the_text_is_stored_like_the_prompt_of_an_image(
    open_gateway: OpenGateway, payloads: str, stored: str | None
) -> None:
    async with open_gateway(payloads=payloads) as running:
        await sound_of(await speak(running, speed=2))
        record = await last_record(running)
        found = await retrieve_payloads(running.gateway, running.call({}, request_id=record["id"]))
        shown = found.json if found.body is None else json.loads(bytes(found.body))
        assert shown["request"] == (stored and {"model": "lab/voice", "input": TEXT, "speed": 2, "voice": "alloy"})
        assert await running.rows("SELECT id FROM media") == []


@sqlite_only
@pytest.mark.parametrize("output_format", SOUND_FORMATS)
@pytest.mark.parametrize("speed", [0.25, 1, 4])
async def test_each_format_is_what_its_content_type_says(
    open_gateway: OpenGateway, output_format: SoundFormat, speed: float
) -> None:
    async with open_gateway() as running:
        response = await speak(running, response_format=output_format, speed=speed)
        assert response.media_type == content_type(output_format)
        sound = await sound_of(response)
        assert sounds.container_of(sound) == output_format
        found = "pcm" if output_format == "pcm" else None
        assert sounds.seconds_of(sound, found) == pytest.approx(SECONDS / speed, rel=0.03, abs=0.1)
        assert sounds.hertz_of(sound, found) == pytest.approx(220, rel=0.01)


@sqlite_only
@pytest.mark.parametrize(("output_format", "rate"), [("wav", 8000), ("pcm", 48000), ("flac", 16000)])
async def test_a_sample_rate_is_what_was_asked_for(
    open_gateway: OpenGateway, output_format: SoundFormat, rate: int
) -> None:
    async with open_gateway() as running:
        response = await speak(running, response_format=output_format, sample_rate=rate)
        sound = await sound_of(response)
        found = "pcm" if output_format == "pcm" else None
        assert sounds.decoded(sound, found, rate)[1] == rate
        assert sounds.seconds_of(sound, found, rate) == pytest.approx(SECONDS, rel=0.03)
        assert sounds.hertz_of(sound, found, rate) == pytest.approx(220, rel=0.01)


@sqlite_only
async def test_a_provider_that_sends_another_format_than_asked_for_is_converted(open_gateway: OpenGateway) -> None:
    """Some servers answer every format with MP3."""
    async with open_gateway() as running:
        running.lab.speeches.next(faults.raw(sounds.encoded("mp3", 2), "audio/aac"))
        sound = await sound_of(await speak(running, response_format="aac"))
        assert sounds.container_of(sound) == "aac"
        assert sounds.seconds_of(sound) == pytest.approx(2, abs=0.15)


@sqlite_only
async def test_a_long_text_is_spoken_in_parts_that_are_joined(open_gateway: OpenGateway) -> None:
    text = "This sentence has some words. " * 140
    async with open_gateway() as running:
        running.lab.characters_per_second = 150
        sound = await sound_of(await speak(running, input=text))
        parts = [request.fields["input"] for request in running.lab.speeches.received]
        assert "".join(parts) == text
        assert len(parts) == 2
        assert max(map(len, parts)) <= 4096
        assert sounds.container_of(sound) == "mp3"
        assert sounds.seconds_of(sound) == pytest.approx(len(text) / 150, rel=0.03)
        assert (await last_record(running))["cost"] == len(text) * 10_000


@sqlite_only
async def test_characters_are_counted_as_code_points(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await sound_of(await speak(running, input="Grüße 👋🏽 日本"))
        assert (await last_record(running))["cost"] == len("Grüße 👋🏽 日本") * 10_000


@sqlite_only
async def test_a_dry_run_costs_nothing_and_says_what_the_call_would(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await speak(running, query={"dryRun": "true"})
        assert response.json["total_cost_micros"] == COST // 1000
        (component,) = response.json["components"]
        assert (component["metric"], component["quantity"]) == ("character", len(TEXT))
        assert len(running.lab.speeches) == 0
        assert await running.records() == []


@sqlite_only
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": " \n"}, "input"),
        ({"input": 5}, "input"),
        ({"input": "x" * 20_001}, "input"),
        ({"speed": 4.1}, "speed"),
        ({"speed": 0.2}, "speed"),
        ({"speed": "fast"}, "speed"),
        ({"response_format": "ogg"}, "response_format"),
        ({"stream_format": "json"}, "stream_format"),
        ({"sample_rate": 12345}, "sample_rate"),
        ({"voice": {"name": "x"}}, "voice"),
        ({"voice": ""}, "voice"),
        ({"voice": "x" * 257}, "voice"),
        ({"instructions": "x" * 4097}, "instructions"),
        ({"model": "lab/chat"}, "model"),
    ],
)
async def test_a_bad_field_is_refused_by_name(open_gateway: OpenGateway, fields: object, param: str) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as refusal:
            await speak(running, **fields)  # type: ignore[arg-type]
        assert refusal.value.param == param
        assert len(running.lab.speeches) == 0


@sqlite_only
@pytest.mark.parametrize(
    "act",
    [
        faults.error(500, "Oops."),
        faults.raw(b"", "audio/mpeg"),
        faults.raw(b"<html>no</html>", "text/html"),
        faults.raw(b'{"error": {"message": "no"}}', "application/json"),
        faults.raw(b"this is not a sound at all", "audio/mpeg"),
    ],
)
async def test_what_is_no_sound_goes_to_the_next_provider(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.speeches.always(act)
        response = await speak(running, model="lab/voice")
        assert response.headers["x-service-executed-model"] == "annex/voice-1"
        await sound_of(response)
        assert (await last_record(running))["cost"] == COST


@sqlite_only
async def test_a_provider_that_refuses_a_text_ends_the_call(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.speeches.next(faults.error(400, "Not that.", "content_policy_violation"))
        with pytest.raises(ContentPolicyViolation):
            await speak(running)
        assert len(running.annex.speeches) == 0
        assert (await last_record(running))["cost"] == 0


@sqlite_only
async def test_speech_that_breaks_off_ends_without_its_end_and_costs_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.speeches.next(faults.cut(2000))
        response = await speak(running)
        with pytest.raises(UpstreamError):
            await sound_of(response)
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await running.money() == before
        assert (await running.transfers(record["id"]))["loss"] == COST, "the provider bills the whole text"


@sqlite_only
@pytest.mark.parametrize("output_format", ["mp3", "flac"])
async def test_who_leaves_pays_for_the_text_that_was_sent(open_gateway: OpenGateway, output_format: str) -> None:
    async with open_gateway() as running:
        response = await speak(running, response_format=output_format)
        assert response.chunks is not None
        chunks = response.chunks
        await anext(chunks)
        await chunks.aclose()  # type: ignore[attr-defined]
        record = await last_record(running)
        assert (record["status"], record["error_code"], record["cost"]) == ("cancelled", "CANCELLED", COST)


@sqlite_only
async def test_all_failures_are_one_error(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        for lab in (running.lab, running.annex):
            lab.speeches.always(faults.error(500, "Oops."))
        with pytest.raises(AllProvidersExhausted):
            await speak(running)
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)


@sqlite_only
async def test_a_voice_that_the_only_provider_refuses_is_the_callers_error(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(Problem) as refusal:
            await speak(running, voice="nobody")
        assert refusal.value.status == 400
        assert "alloy" in refusal.value.message
