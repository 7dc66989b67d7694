"""What a model that makes sounds takes: a text, words to be sung, a length, and never a file."""

from typing import Any

import pytest

from penstock.providers.derive.draft import Draft
from penstock.providers.derive.sounds import modes, sound_rows
from penstock.providers.live import Underivable
from penstock.providers.spec import Param

TEXT = {"type": "string"}


def rows(*required: str, **properties: Any) -> dict[str, Param]:
    found = sound_rows(Draft({"properties": properties, "required": list(required)}))
    return {row.name: row for row in found}


def test_the_text_that_is_spoken_comes_before_a_prompt_that_describes_how() -> None:
    assert rows(prompt=TEXT, text=TEXT)["prompt"].to == ("text",)
    assert rows("prompt", prompt=TEXT)["prompt"].required
    assert rows(prompt={**TEXT, "maxLength": 2000})["prompt"].max_length == 2000
    assert rows(lyrics_prompt=TEXT)["lyrics"].to == ("lyrics_prompt",)
    assert rows(lyrics=TEXT)["prompt"].handling == "ignored"


@pytest.mark.parametrize(
    ("name", "schema", "asked", "sent"),
    [
        ("duration", {"type": "integer", "maximum": 30}, 4.6, 5),
        ("seconds_total", {"type": "number", "minimum": 1}, 0.2, 1),
        ("seconds_total", {"type": "number"}, 4.5, 4.5),
        ("music_length_ms", {"type": "integer"}, 4.5, 4500),
        ("music_duration", {"enum": ["95s", "285s"]}, 100, "285s"),
    ],
)
def test_lengths(name: str, schema: dict[str, Any], asked: float, sent: Any) -> None:
    row = rows(**{name: schema})["seconds"]
    assert row.to == (name,)
    assert row.convert is not None
    assert row.convert(asked) == sent
    assert type(row.convert(asked)) is type(sent)


def test_lengths_have_the_limits_and_the_default_of_the_model() -> None:
    row = rows(music_length_ms={"type": "integer", "maximum": 300_000, "default": 30_000})["seconds"]
    assert (row.high, row.default) == (300, 30)
    assert rows(duration={"type": "number"})["seconds"].high == 600
    assert rows(prompt=TEXT)["seconds"].handling == "ignored"


def test_what_else_decides_the_length_is_left_out() -> None:
    plan = {"type": "object", "properties": {"parts": {"items": {"properties": {"duration_ms": {"type": "integer"}}}}}}
    draft = Draft({"properties": {"prompt": TEXT, "plan": plan, "seconds_start": {"type": "number"}, "steps": {}}})
    sound_rows(draft)
    assert [field.name for field in draft.take_rest()] == ["steps"]


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("ref_audio_url", TEXT),
        ("speaker", {"type": "string", "format": "uri"}),
        ("speaker", {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]}),
        ("image_urls", {"type": "array", "items": TEXT}),
        ("speakers", {"type": "array", "items": {"properties": {"audio_url": TEXT}}}),
        ("voice_sample", TEXT),
    ],
)
def test_a_file_is_never_taken(name: str, schema: dict[str, Any]) -> None:
    draft = Draft({"properties": {"prompt": TEXT, name: schema}})
    sound_rows(draft)
    assert draft.take_rest() == []
    with pytest.raises(Underivable, match=f"it needs a file in `{name}`"):
        rows(name, prompt=TEXT, **{name: schema})


def test_fields_that_only_sound_like_files_stay() -> None:
    kept = {"voice": TEXT, "audio_format": {"type": "string", "enum": ["mp3"]}, "audio_setting": {"type": "object"}}
    draft = Draft({"properties": {"prompt": TEXT, **kept}})
    sound_rows(draft)
    assert [field.name for field in draft.take_rest()] == list(kept)


def test_what_a_model_makes_is_in_its_name() -> None:
    assert modes("fal-ai/minimax-music/v2 text-to-audio") == {"modes": ("text-to-music",)}
    assert modes("fal-ai/kokoro text-to-speech") == {"modes": ("text-to-speech",)}
    assert modes("fal-ai/elevenlabs/sound-effects/v2") == {}
