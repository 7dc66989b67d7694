"""Every table of transcription, against fakes of its vendor: each form, and the cost as the vendor bills it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, get_args, get_type_hints

import pytest
from openai.types import AudioResponseFormat
from openai.types.audio import (
    TranscriptionTextDeltaEvent,
    TranscriptionTextDoneEvent,
    TranscriptionTextSegmentEvent,
)
from openai.types.audio.transcription_create_params import TranscriptionCreateParamsNonStreaming

from penstock.errors import InvalidRequest
from penstock.providers.spec import Price
from penstock.schema import Response
from tests import sounds
from tests.fake_providers.listening import TEXT, WORDS, ListeningVendors
from tests.fake_providers.server import serving
from tests.gateway import Installation, RunningGateway, sqlite_only
from tests.providers.recordings import known_providers
from tests.providers.sound_clients import not_in_client
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import decoded, into_english, listen, text_of

# One model of each vendor and each way of answering.
MODELS = {
    "openai": "whisper-1",
    "openai-gpt": "gpt-transcribe",
    "openai-4o": "gpt-4o-transcribe",
    "openai-diarize": "gpt-4o-transcribe-diarize",
    "groq": "openai/whisper-large-v3",
    "mistral": "mistralai/voxtral-mini-transcribe-3",
    "deepgram": "deepgram/nova-3",
    "elevenlabs": "elevenlabs/scribe_v2",
    "xai": "x-ai/grok-voice-transcribe-2.0",
    "google": "google/gemini-3.5-transcribe",
    "together": "together/whisper-large-v3",
    "cartesia": "cartesia/ink-whisper",
    "deepinfra": "openai/whisper-large-v3",
    "deepinfra-turbo": "openai/whisper-large-v3-turbo",
}
TIMED = sorted(set(MODELS) - {"openai-gpt", "openai-4o"})
WORDS_TIMED = sorted(set(TIMED) - {"openai-diarize", "mistral"})
DIARIZING = ("openai-diarize", "mistral", "elevenlabs", "google", "together")
STREAMING = ("openai-gpt", "openai-4o", "openai-diarize", "mistral")
SENTENCES = ["The quick brown fox jumps.", "It runs."]
UNPRICED = ("together/whisper-large-v3", "cartesia/ink-whisper")
PRICE = {name: {"price": {"unit": "second", "usd": "0.00005"}} for name in UNPRICED}
pytestmark = sqlite_only


@asynccontextmanager
async def vendor_gateway(
    installation: Installation, vendor: str
) -> AsyncIterator[tuple[RunningGateway, ListeningVendors]]:
    """A gateway whose only provider is this vendor, on loopback."""
    slug = vendor.partition("-")[0]
    provider = known_providers()[slug]
    assert provider.key_env is not None
    async with serving(ListeningVendors()) as vendors:
        installation.environ |= {provider.key_env: "secret"}
        async with installation.open(providers={slug: {"base_url": vendors.url}}, models=PRICE) as running:
            yield running, vendors


async def hear(running: RunningGateway, vendor: str, *fields: tuple[str, str], seconds: float = 7.0) -> Response:
    file = sounds.encoded("mp3", seconds)
    return await listen(running, ("language", "en"), *fields, model=MODELS[vendor], file=file)


def chunks_of(response: Response) -> AsyncIterator[bytes]:
    assert response.chunks is not None
    assert response.media_type == "text/event-stream"
    return aiter(response.chunks)


async def events_of(response: Response) -> list[Any]:
    """The events of a stream, each as OpenAI's client reads it."""
    kinds: Mapping[str, Any] = {
        "transcript.text.delta": TranscriptionTextDeltaEvent,
        "transcript.text.segment": TranscriptionTextSegmentEvent,
        "transcript.text.done": TranscriptionTextDoneEvent,
    }
    body = b"".join([chunk async for chunk in chunks_of(response)])
    events = [json.loads(event.removeprefix(b"data: ")) for event in body.split(b"\n\n") if event]
    if events[-1]["usage"]["type"] == "duration":
        del events[-1]["usage"]  # its types have tokens only
    return [kinds[event["type"]].model_validate(event) for event in events]


@pytest.mark.parametrize("vendor", list(MODELS))
async def test_each_vendor_gets_what_it_takes_and_its_text_is_read(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, vendors):
        fields = (("prompt", "A fox"), ("temperature", "0.2"), ("keywords[]", "fox"), ("languages[]", "en"))
        assert decoded(await hear(running, vendor, *fields, ("user", "u-1")))["text"] == TEXT
        requests = [request for endpoint in vendors.endpoints.values() for request in endpoint.received]
        assert requests
        assert not_in_client(vendor.partition("-")[0], "transcription", requests) == []


@pytest.mark.parametrize("vendor", TIMED)
async def test_each_vendor_with_times_has_every_form(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, _):
        srt = text_of(await hear(running, vendor, ("response_format", "srt")))
        assert srt.startswith("1\n00:00:00,000 --> 00:00:0")
        assert "The quick brown fox jumps.\n\n2\n" in srt
        verbose = decoded(await hear(running, vendor, ("response_format", "verbose_json")))
        assert [segment["text"].strip() for segment in verbose["segments"]] == SENTENCES
        assert verbose["segments"][1]["start"] == pytest.approx(5, abs=0.2)


@pytest.mark.parametrize("vendor", WORDS_TIMED)
async def test_each_vendor_with_times_of_words_gives_them(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, _):
        asked = (("response_format", "verbose_json"), ("timestamp_granularities[]", "word"))
        words = decoded(await hear(running, vendor, *asked))["words"]
        assert [word["word"] for word in words] == list(WORDS)
        assert words[3]["start"] == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("vendor", DIARIZING)
async def test_each_vendor_that_tells_speakers_apart_names_them(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, _):
        said = decoded(await hear(running, vendor, ("response_format", "diarized_json")))
        assert all(segment["speaker"] for segment in said["segments"])
        assert [segment["text"].strip() for segment in said["segments"]] == SENTENCES


@pytest.mark.parametrize("vendor", sorted(set(MODELS) - set(DIARIZING)))
async def test_a_vendor_that_does_not_is_not_asked_for_speakers(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, vendors):
        with pytest.raises(InvalidRequest) as refusal:
            await hear(running, vendor, ("diarize", "true"))
        assert refusal.value.param == "diarize"
        assert not vendors.invoice


@pytest.mark.parametrize("vendor", STREAMING)
@pytest.mark.parametrize("form", ["json", "diarized_json"])
async def test_a_stream_of_a_vendor_is_passed_on_in_openais_events(
    installation: Installation, vendor: str, form: str
) -> None:
    if form == "diarized_json" and vendor not in DIARIZING:
        return
    async with vendor_gateway(installation, vendor) as (running, vendors):
        response = await hear(running, vendor, ("stream", "true"), ("response_format", form), ("temperature", "0.2"))
        *events, done = await events_of(response)
        assert isinstance(done, TranscriptionTextDoneEvent)
        assert done.text == TEXT
        deltas = [event.delta for event in events if isinstance(event, TranscriptionTextDeltaEvent)]
        assert "".join(deltas) == TEXT
        assert len(deltas) == (1 if vendor == "mistral" and form == "diarized_json" else len(WORDS))
        segments = [event for event in events if isinstance(event, TranscriptionTextSegmentEvent)]
        assert [segment.text for segment in segments] == (SENTENCES if form == "diarized_json" else [])
        assert all(segment.speaker for segment in segments)
        (request,) = vendors.received("transcribe")
        assert request.fields["stream"] == "true"
        assert not_in_client(vendor.partition("-")[0], "transcription", [request]) == []


@pytest.mark.parametrize("vendor", STREAMING)
async def test_a_stream_costs_what_a_whole_transcript_does(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, _):
        whole = decoded(await hear(running, vendor))
        cost = (await last_record(running))["cost"]
        response = await hear(running, vendor, ("stream", "true"))
        body = b"".join([chunk async for chunk in chunks_of(response)])
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("completed", cost)
        assert record["cost"] > 0
        assert json.loads(body.split(b"\n\n")[-2][6:])["usage"] == whole["usage"]
        if vendor in ("openai-4o", "openai-diarize"):
            assert float(response.headers["x-service-cost-estimate"]) >= cost / 10**9
        else:
            assert float(response.headers["x-service-cost"]) == pytest.approx(cost / 10**9, abs=1e-9)


async def test_probabilities_come_in_a_stream_too(installation: Installation) -> None:
    async with vendor_gateway(installation, "openai-4o") as (running, _):
        asked = (("stream", "true"), ("include[]", "logprobs"))
        first, *_, done = await events_of(await hear(running, "openai-4o", *asked))
        assert [each.token for each in first.logprobs] == ["The"]
        assert len(done.logprobs) == len(WORDS)


async def test_probabilities_come_from_models_that_have_them(installation: Installation) -> None:
    async with vendor_gateway(installation, "openai-4o") as (running, _):
        said = decoded(await hear(running, "openai-4o", ("include[]", "logprobs")))
        assert said["logprobs"][0]["token"] == "The"


@pytest.mark.parametrize("vendor", ["openai", "groq", "deepinfra"])
async def test_translations_go_to_models_that_translate(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, _):
        assert decoded(await into_english(running, model=MODELS[vendor]))["text"] == TEXT


@pytest.mark.parametrize("vendor", ["openai", "openai-gpt", "openai-4o", "openai-diarize", "groq"])
async def test_requests_fit_the_types_of_openais_client(installation: Installation, vendor: str) -> None:
    """Groq's client has the same fields, and fewer of them."""
    async with vendor_gateway(installation, vendor) as (running, vendors):
        fields = (("prompt", "A fox"), ("temperature", "0.2"), ("keywords[]", "fox"), ("languages[]", "en"))
        await hear(running, vendor, *fields)
        if vendor in TIMED:
            await hear(running, vendor, *fields, ("response_format", "srt"))
        hints = get_type_hints(TranscriptionCreateParamsNonStreaming)
        for request in vendors.received("transcribe"):
            assert set(request.fields) <= set(hints)
            assert request.fields["response_format"] in get_args(AudioResponseFormat)


@pytest.mark.parametrize("vendor", list(MODELS))
async def test_the_cost_is_what_the_vendor_bills(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, vendors):
        response = await hear(running, vendor, seconds=4.0)
        record = await last_record(running)
        slug, name = vendor.partition("-")[0], MODELS[vendor]
        tabled = next(model.prices for model in known_providers()[slug].models if model.id == name)
        prices = tabled or (Price(unit="second", usd="0.00005"),)
        billed: dict[str, Decimal] = {}
        for unit, count in vendors.invoice:
            billed[unit] = billed.get(unit, Decimal(0)) + Decimal(str(count))
        if prices[0].unit == "token":
            usd = billed["input_token"] * Decimal(prices[0].input_usd) + billed["token"] * Decimal(prices[0].usd)
        else:
            least = Decimal(10 if vendor == "groq" else 0)
            usd = max(least, billed["second"]) * Decimal(prices[0].usd)
        assert record["cost"] == pytest.approx(int(usd * 10**9), abs=1)
        assert record["status"] == "completed"
        usage = decoded(response)["usage"]
        assert usage["type"] == ("tokens" if prices[0].unit == "token" else "duration")
