"""OpenAI's speech models: their voices, their fields and their end."""

from penstock.providers.gpt_speech import MINI, TTS_1, speech_models
from penstock.providers.speech import OPENAI_VOICES


def test_the_older_models_speak_missing_voices_with_near_ones() -> None:
    assert TTS_1.speech is not None
    assert set(TTS_1.speech.openai_voices.values()) == set(TTS_1.speech.voices)
    assert TTS_1.speech.openai_voices["cedar"] == "onyx"
    assert set(OPENAI_VOICES) - set(TTS_1.speech.voices) == {"ballad", "verse", "marin", "cedar"}


def test_only_the_newest_model_is_told_how_to_speak() -> None:
    assert not TTS_1.takes("instructions")
    assert MINI.takes("instructions")


def test_each_model_has_the_day_on_which_it_ends() -> None:
    dates = dict.fromkeys(("gpt-4o-mini-tts", "tts-1", "tts-1-hd"), "2027-01-06")
    assert {model.upstream: model.shutdown_date for model in speech_models(dates)} == dates
