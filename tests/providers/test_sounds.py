"""Every table of effects and music, against fakes of its vendor, and its requests against what others publish."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from tests import sounds
from tests.fake_providers.server import serving
from tests.fake_providers.sounds import USUAL_SECONDS, SoundVendors
from tests.gateway import Installation, RunningGateway, sqlite_only
from tests.providers import descriptions
from tests.providers.recordings import known_providers
from tests.unit.generations.sound_calls import finished, start

# Each model, and whether its caller chooses the length.
MODELS = {
    "elevenlabs/eleven_text_to_sound_v3": True,
    "elevenlabs/music_v2": True,
    "stability/stable-audio-2.5": True,
    "minimax/music-3.0": False,
    "google/lyria-3-clip-preview": False,
    "google/lyria-002": False,
    "runway/eleven-text-to-sound-v2": True,
    "runway/mirelo-sfx-2": True,
    "runway/seed-audio": False,
}


@asynccontextmanager
async def vendor_gateway(installation: Installation, model: str) -> AsyncIterator[tuple[RunningGateway, SoundVendors]]:
    """A gateway whose only provider is the vendor of this model, on loopback."""
    slug = "vertex" if model == "google/lyria-002" else model.partition("/")[0]
    provider = known_providers()[slug]
    assert provider.key_env is not None
    priced = {model: {"price": {"unit": "call", "usd": "0.05"}}}
    async with serving(SoundVendors()) as vendors:
        installation.environ |= {provider.key_env: "secret"}
        async with installation.open(providers={slug: {"base_url": vendors.url}}, models=priced) as running:
            yield running, vendors


@sqlite_only
@pytest.mark.parametrize("model", list(MODELS))
async def test_each_vendor_makes_a_sound_in_any_format(installation: Installation, model: str) -> None:
    async with vendor_gateway(installation, model) as (running, vendors):
        for output_format in ("mp3", "flac"):
            made = await finished(running, model=model, prompt="rain", seconds=3, output_format=output_format)
            assert made["status"] == "completed", made["error"]
            expected = 3 if MODELS[model] else USUAL_SECONDS
            assert made["output"]["seconds"] == pytest.approx(expected, abs=0.15)
            assert made["output"]["content_type"] == {"mp3": "audio/mpeg", "flac": "audio/flac"}[output_format]
            assert float(made["metadata"]["cost"]) == 0.05
        assert len(vendors.bodies) == 2


@sqlite_only
@pytest.mark.parametrize(
    "model", [model for model in MODELS if model.startswith(("runway", "elevenlabs/e", "google/lyria-3"))]
)
async def test_requests_fit_what_others_publish(installation: Installation, model: str) -> None:
    async with vendor_gateway(installation, model) as (running, vendors):
        for fields in ({}, {"seconds": 2}, {"loop": True}, {"seed": 7}, {"negative_prompt": "birds"}):
            with_fields: dict[str, Any] = {"seconds": None, **fields}
            try:
                await finished(running, model=model, prompt="rain", **with_fields)
            except InvalidRequest:
                continue
        slug = model.partition("/")[0]
        assert vendors.bodies
        for path, body in vendors.bodies:
            found = list(descriptions.find_validators(slug, f"/v1{path}", body))
            assert found, "nothing describes this request"
            for description, validator in found:
                assert not [error.message for error in validator.errors(body)], description.source


@sqlite_only
async def test_songs_have_words(installation: Installation) -> None:
    async with vendor_gateway(installation, "minimax/music-3.0") as (running, vendors):
        made = await finished(running, model="minimax/music-3.0", prompt=None, lyrics="La la", seconds=None)
        assert made["status"] == "completed"
        assert vendors.bodies[0][1]["lyrics"] == "La la"
        assert "is_instrumental" not in vendors.bodies[0][1]
        await finished(running, model="minimax/music-3.0", prompt="jazz", instrumental=True, seconds=None)
        assert vendors.bodies[1][1]["is_instrumental"] is True


@sqlite_only
async def test_the_words_that_a_model_wrote_are_returned(installation: Installation) -> None:
    model = "google/lyria-3-clip-preview"
    async with vendor_gateway(installation, model) as (running, vendors):
        made = await finished(running, model=model, prompt="a song", lyrics="Do re mi", seconds=None)
        assert made["output"]["lyrics"] == "[Verse]\nLa la"
        assert [part["text"] for part in vendors.bodies[0][1]["contents"][0]["parts"]] == ["a song", "Do re mi"]
        refused = await finished(running, model=model, prompt="a forbidden song", seconds=None)
        assert (refused["status"], refused["error"]["code"]) == ("failed", "CONTENT_POLICY_VIOLATION")


@sqlite_only
async def test_lyria_2_gets_its_names_and_says_what_was_blocked(installation: Installation) -> None:
    model = "google/lyria-002"
    async with vendor_gateway(installation, model) as (running, vendors):
        made = await finished(running, model=model, prompt="jazz", negative_prompt="drums", seed=7, seconds=None)
        assert made["status"] == "completed", made["error"]
        sent = {"prompt": "jazz", "negative_prompt": "drums", "seed": 7}
        assert vendors.bodies[0][1] == {"instances": [sent], "parameters": {}}
        blocked = await finished(running, model=model, prompt="a forbidden song", seconds=None)
        assert (blocked["status"], blocked["error"]["code"]) == ("failed", "CONTENT_POLICY_VIOLATION")


@sqlite_only
@pytest.mark.parametrize(
    ("model", "fields", "param"),
    [
        ("elevenlabs/eleven_text_to_sound_v3", {"seconds": 31}, "seconds"),
        ("elevenlabs/music_v2", {"seconds": 2}, "seconds"),
        ("elevenlabs/music_v2", {"lyrics": "la"}, "lyrics"),
        ("elevenlabs/music_v2", {"loop": True}, "loop"),
        ("elevenlabs/music_v2", {"composition_plan": {}}, "composition_plan"),
        ("stability/stable-audio-2.5", {"seconds": 200}, "seconds"),
        ("runway/mirelo-sfx-2", {"loop": True}, "loop"),
        ("runway/seed-audio", {"negative_prompt": "x"}, "negative_prompt"),
        ("minimax/music-3.0", {"lyrics": "x" * 3501}, "lyrics"),
        ("google/lyria-002", {"lyrics": "la"}, "lyrics"),
    ],
)
async def test_what_a_vendor_would_refuse_is_refused_before(
    installation: Installation, model: str, fields: dict[str, Any], param: str
) -> None:
    async with vendor_gateway(installation, model) as (running, vendors):
        with pytest.raises(InvalidRequest) as caught:
            await start(running, model=model, **{"seconds": None, **fields})
        assert caught.value.param == param
        assert not vendors.bodies


@sqlite_only
async def test_a_format_of_the_vendor_is_passed_on_as_it_is(installation: Installation) -> None:
    model = "elevenlabs/music_v2"
    async with vendor_gateway(installation, model) as (running, _):
        made = await finished(running, model=model, seconds=3, output_format="opus")
        assert made["output"]["size_bytes"] == len(sounds.encoded("opus", 3))
