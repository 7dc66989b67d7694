"""Models of fal and Replicate that make sounds and that no table lists: called with what the catalogues say."""

from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import InvalidRequest, ModelNotFound
from penstock.providers.fal import units
from penstock.values import nanos
from tests.fake_providers.fal_catalogue import FalWithCatalogue
from tests.fake_providers.replicate_catalogue import ReplicateWithCatalogue
from tests.gateway import OpenGateway, sqlite_only
from tests.providers.fal_gateway import with_fal
from tests.providers.replicate_gateway import with_replicate
from tests.unit.generations.sound_calls import finished, start

MUSIC, SPEECH = "fal-ai/elevenlabs/music", "fal-ai/elevenlabs/tts/eleven-v3"
MUSICGEN = "replicate/meta/musicgen"


@sqlite_only
async def test_a_piece_of_music_is_as_long_as_asked_and_costs_what_fal_counted(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    fal.prices[MUSIC] = (0.6, "minutes")
    fal.billed[MUSIC] = "1"
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        asked: dict[str, Any] = {"model": f"fal/{MUSIC}", "prompt": "jazz", "instrumental": True}
        dry = await start(running, **asked, seconds=5, query={"dryRun": "true"})
        assert dry.json["total_cost_micros"] == 600_000, "fal counts minutes that were begun"
        assert (await start(running, **asked, seconds=61, query={"dryRun": "true"})).json[
            "total_cost_micros"
        ] == 1_200_000
        made = await finished(running, **asked, seconds=5, output_format="flac")
        assert made["status"] == "completed", made["error"]
        assert made["output"]["seconds"] == pytest.approx(5, abs=0.15)
        assert made["output"]["content_type"] == "audio/flac"
        after, held = await running.money()
        assert (before - after, held) == (nanos("0.6"), 0)
        sent = fal.received("submit")[0].fields
        assert sent == {"prompt": "jazz", "music_length_ms": 5000, "force_instrumental": True}


@sqlite_only
async def test_a_text_is_spoken_at_a_price_by_the_character(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    fal.prices[SPEECH] = (0.1, "1000 characters")
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        made = await finished(running, model=f"fal/{SPEECH}", prompt="Good morning.", voice="Rachel", seconds=None)
        assert made["status"] == "completed", made["error"]
        after, held = await running.money()
        extras = '{"voice":"Rachel"}'
        assert (before - after, held) == (nanos(str(Decimal("0.0001") * len("Good morning." + extras))), 0)
        assert fal.received("submit")[0].fields == {"text": "Good morning.", "voice": "Rachel"}


@sqlite_only
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("fal/fal-ai/f5-tts", "it needs a file in `ref_audio_url`"),
        ("fal/fal-ai/vibevoice", "it needs a file in `speakers`"),
        ("fal/fal-ai/elevenlabs/voice-changer", "it needs a file in `audio_url`"),
        ("fal/fal-ai/whisper", "neither images nor videos nor sounds"),
    ],
)
async def test_a_model_that_needs_a_voice_or_makes_no_sound_is_not_offered(
    open_gateway: OpenGateway, model: str, words: str
) -> None:
    """A voice may be imitated only with consent, and where the operator allows it."""
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        with pytest.raises(ModelNotFound) as caught:
            await start(running, model=model, seconds=None)
        assert words in caught.value.message
        assert not fal.received("submit")


@sqlite_only
@pytest.mark.parametrize(
    ("model", "fields", "param"),
    [
        ("fal-ai/chatterbox/text-to-speech", {"audio_url": "https://x.test/voice.wav"}, "audio_url"),
        ("fal-ai/minimax/speech-2.8-hd", {"lyrics": "la"}, "lyrics"),
        (MUSIC, {"composition_plan": {"sections": []}}, "composition_plan"),
        (MUSIC, {"seconds": 601}, "seconds"),
        ("fal-ai/lyria2", {"loop": True}, "loop"),
        ("sonauto/v2/text-to-music", {"num_songs": 2}, "num_songs"),
    ],
)
async def test_what_would_imitate_a_voice_or_change_the_price_is_refused(
    open_gateway: OpenGateway, model: str, fields: dict[str, Any], param: str
) -> None:
    fal = FalWithCatalogue()
    fal.prices[model] = (0.1, "generations")
    async with with_fal(open_gateway, fal) as running:
        with pytest.raises(InvalidRequest) as caught:
            await start(running, model=f"fal/{model}", **{"seconds": None, **fields})
        assert caught.value.param == param
        assert not fal.received("submit")


@sqlite_only
async def test_music_of_replicate_is_billed_by_the_time_of_the_machine(open_gateway: OpenGateway) -> None:
    replicate = ReplicateWithCatalogue()
    price = {"replicate/*": {"price": {"unit": "compute_second", "usd": "0.001", "max_seconds": 60}}}
    async with with_replicate(open_gateway, replicate, models=price) as running:
        before, _ = await running.money()
        made = await finished(running, model=MUSICGEN, prompt="jazz", seconds=3, top_k=100)
        assert made["status"] == "completed", made["error"]
        after, held = await running.money()
        assert (before - after, held) == (nanos("0.0025"), 0)
        sent = replicate.received("create_by_version")[0].fields["input"]
        assert sent == {"prompt": "jazz", "duration": 3, "top_k": 100}
        with pytest.raises(InvalidRequest) as caught:
            await start(running, model=MUSICGEN, input_audio="https://x.test/tune.mp3")
        assert caught.value.param == "input_audio"


@pytest.mark.parametrize(
    ("words", "unit", "size"),
    [
        ("minutes", "minute_started", "1"),
        ("1000 characters", "character", "1000"),
        ("10 seconds", "second", "10"),
        ("audios", "call", "1"),
        ("songs", "call", "1"),
        ("credits", "unit", "1"),
    ],
)
def test_words_for_units_of_sounds(words: str, unit: str, size: str) -> None:
    assert units.unit_and_size(words, "sound") == (unit, Decimal(size))
