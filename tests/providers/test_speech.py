"""Every table of speech, against fakes of its vendor: each format and speed, and the cost as the vendor bills it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest

from penstock.schema import Response
from penstock.sound.formats import SOUND_FORMATS
from penstock.speech.endpoint import create_speech
from tests import sounds
from tests.fake_providers.server import responds, serving
from tests.fake_providers.speech import SpeechVendors, seconds
from tests.gateway import Installation, RunningGateway, sqlite_only
from tests.providers.recordings import known_providers
from tests.providers.sound_clients import client_fields, is_described, not_in_client
from tests.unit.chat.chat_calls import last_record

TEXT = "The quick brown fox jumps over the lazy dog."
# One model of each vendor and each way of answering.
MODELS = {
    "openai": "tts-1",
    "openai-mini": "gpt-4o-mini-tts",
    "groq": "canopylabs/orpheus-v1-english",
    "mistral": "mistralai/voxtral-mini-tts-3",
    "google": "google/gemini-3.8-flash-tts",
    "vertex": "google/gemini-3.8-flash-tts",
    "elevenlabs": "elevenlabs/eleven_v4",
    "minimax": "minimax/speech-2.6-turbo",
    "deepgram": "deepgram/aura-2",
    "xai": "x-ai/tts",
    "cartesia": "cartesia/sonic-3.5",
    "deepinfra": "hexgrad/kokoro-82m",
    "together": "hexgrad/kokoro-82m",
    "together-orpheus": "canopylabs/orpheus-3b-0.1-ft",
}
UNPRICED = ("deepgram/aura-2", "cartesia/sonic-3.5")
PRICE: dict[str, Any] = {"models": {name: {"price": {"unit": "character", "usd": "0.00003"}} for name in UNPRICED}}


def provider_of(vendor: str) -> str:
    return vendor.partition("-")[0]


@asynccontextmanager
async def vendor_gateway(
    installation: Installation, vendor: str
) -> AsyncIterator[tuple[RunningGateway, SpeechVendors]]:
    """A gateway whose only provider is this vendor, on loopback."""
    slug = provider_of(vendor)
    provider = known_providers()[slug]
    assert provider.key_env is not None
    async with serving(SpeechVendors()) as vendors:
        installation.environ |= {provider.key_env: "secret"}
        async with installation.open(providers={slug: {"base_url": vendors.url}}, **PRICE) as running:
            yield running, vendors


async def speak(running: RunningGateway, **body: Any) -> Response:
    call = running.call({"input": TEXT, **body}, endpoint="/compat/v1/audio/speech")
    return await create_speech(running.gateway, call)


async def sound_of(response: Response) -> bytes:
    assert response.chunks is not None
    return b"".join([chunk async for chunk in response.chunks])


@sqlite_only
@pytest.mark.parametrize("vendor", list(MODELS))
async def test_each_format_and_speed_of_each_vendor(installation: Installation, vendor: str) -> None:
    async with vendor_gateway(installation, vendor) as (running, vendors):
        for output_format, speed in [
            *((name, 1.0) for name in SOUND_FORMATS),
            ("mp3", 0.25),
            ("opus", 1.9),
            ("wav", 4.0),
        ]:
            sound = await sound_of(
                await speak(
                    running,
                    model=MODELS[vendor],
                    voice="marin",
                    response_format=output_format,
                    speed=speed,
                    instructions="Softly.",
                )
            )
            found = "pcm" if output_format == "pcm" else None
            assert sounds.container_of(sound) == output_format, (vendor, output_format, speed)
            assert sounds.seconds_of(sound, found) == pytest.approx(seconds(TEXT) / speed, rel=0.04, abs=0.1)
            assert sounds.hertz_of(sound, found) == pytest.approx(220, rel=0.02)
        assert not vendors.received("others")
        requests = [request for endpoint in vendors.endpoints.values() for request in endpoint.received]
        assert len(requests) >= 9
        assert not_in_client(provider_of(vendor), "speech", requests) == []


@sqlite_only
@pytest.mark.parametrize("vendor", list(MODELS))
async def test_the_cost_is_what_the_vendor_bills(installation: Installation, vendor: str) -> None:
    text = "Ünïcode 👋🏽 and 日本語. " * 12
    async with vendor_gateway(installation, vendor) as (running, vendors):
        await sound_of(await speak(running, model=MODELS[vendor], voice="alloy", input=text))
        record = await last_record(running)
        (price,) = next(
            model.prices or (None,)
            for model in known_providers()[provider_of(vendor)].models
            if model.id in (MODELS[vendor], MODELS[vendor].partition("/")[2])
        )
        usd = price.usd if price else "0.00003"
        unit = "output_token" if price and price.unit == "token" else "character"
        billed = sum(count for name, count in vendors.invoice if name == unit)
        said = sum(map(len, [text])) * Decimal(price.input_usd) if price else Decimal(0)
        assert record["cost"] == round((billed * Decimal(usd) + said) * 10**9)
        assert record["status"] == "completed"


@sqlite_only
@pytest.mark.parametrize("vendor", list(MODELS))
async def test_a_long_text_is_cut_for_each_vendor(installation: Installation, vendor: str) -> None:
    text = "A sentence of some length, which goes on and on. " * 110
    async with vendor_gateway(installation, vendor) as (running, _):
        sound = await sound_of(await speak(running, model=MODELS[vendor], input=text, response_format="pcm"))
        assert sounds.seconds_of(sound, "pcm") == pytest.approx(seconds(text), rel=0.04)


def test_requests_of_most_vendors_are_compared_with_their_own_clients() -> None:
    described = {slug for slug in map(provider_of, MODELS) if is_described(slug, "speech")}
    assert described == {"openai", "groq", "mistral", "elevenlabs", "deepgram", "cartesia", "deepinfra", "together"}


@sqlite_only
async def test_the_same_voice_speaks_when_the_first_provider_of_a_model_fails(installation: Installation) -> None:
    async with serving(SpeechVendors()) as first, serving(SpeechVendors()) as second:
        installation.environ |= {"DEEPINFRA_API_KEY": "secret", "TOGETHER_API_KEY": "secret"}
        urls = {"deepinfra": {"base_url": first.url}, "together": {"base_url": second.url}}
        async with installation.open(providers=urls) as running:
            first.next("openai", responds({"detail": {"error": "out of capacity"}}, 503))
            response = await speak(running, model="hexgrad/kokoro-82m", voice="sage", response_format="wav")
            assert sounds.container_of(await sound_of(response)) == "wav"
            voices = [
                vendor.received(name)[0].fields["voice"] for vendor, name in ((first, "openai"), (second, "together"))
            ]
            assert voices == ["af_sarah", "af_sarah"]


@pytest.mark.parametrize(("task", "modes"), [("sound", ()), ("music", ("text-to-music",))])
def test_elevenlabs_effects_and_music_have_the_names_of_its_client(task: str, modes: tuple[str, ...]) -> None:
    models = [model for model in known_providers()["elevenlabs"].models if model.op.task == "sound"]
    chosen = [model.op for model in models if model.op.settings.get("modes", ()) == modes]
    assert chosen
    sent = {name for op in chosen for row in op.params for name in row.to} | {op.model_field for op in chosen}
    assert {name.removeprefix("?").partition(".")[0] for name in sent if name} <= client_fields("elevenlabs", task)
