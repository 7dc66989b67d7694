"""The vocabulary of providers that speak."""

import base64

import pytest

from penstock.providers import discover
from penstock.providers.speech import OPENAI_VOICES, named_formats, openai_names, read_openai_event

SPEAKING = [(provider, model) for provider in discover() for model in provider.models if model.op.speech]


def test_formats_are_asked_for_by_name() -> None:
    assert named_formats("format", "mp3 pcm") == {"mp3": {"format": "mp3"}, "pcm": {"format": "pcm"}}


def test_a_map_of_voices_needs_all_thirteen() -> None:
    with pytest.raises(ValueError, match="shorter"):
        openai_names("one two")


def test_events_of_openai_and_mistral_are_read() -> None:
    sound = base64.b64encode(b"abc").decode()
    assert read_openai_event({"type": "speech.audio.delta", "audio": sound}).sound == b"abc"
    assert read_openai_event({"type": "speech.audio.delta", "audio_data": sound}).sound == b"abc"
    assert read_openai_event({"error": {"message": "no"}}).error == "broken"


@pytest.mark.parametrize(("provider", "model"), SPEAKING, ids=lambda value: getattr(value, "slug", None) or value.id)
def test_each_model_has_all_of_openais_voices(provider: object, model: object) -> None:
    speech = model.op.speech  # type: ignore[attr-defined]
    assert tuple(speech.openai_voices) == OPENAI_VOICES
    if speech.voices:
        assert set(speech.openai_voices.values()) <= set(speech.voices)
    assert speech.formats
    assert (speech.read is None) == (speech.reply == "body")
