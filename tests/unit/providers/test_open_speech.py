"""The voices of open speech models, which every provider of them must have."""

import pytest

from penstock.providers import discover
from penstock.providers.open_speech import KOKORO, KOKORO_OPENAI_VOICES, KOKORO_VOICES, ORPHEUS
from penstock.providers.spec import Speech
from penstock.providers.speech import OPENAI_VOICES


def speeches(name: str) -> dict[str, Speech]:
    """How each provider of a model speaks, by slug."""
    return {
        provider.slug: model.op.speech
        for provider in discover()
        for model in provider.models
        if model.id == name and model.op.speech
    }


@pytest.mark.parametrize(("name", "providers"), [(KOKORO, {"deepinfra", "together"}), (ORPHEUS, {"together"})])
def test_a_model_speaks_alike_at_each_of_its_providers(name: str, providers: set[str]) -> None:
    found = speeches(name)
    assert set(found) == providers
    first, *others = found.values()
    assert set(first.openai_voices) == set(OPENAI_VOICES)
    assert set(first.openai_voices.values()) <= set(first.voices)
    assert all((each.voices, each.openai_voices) == (first.voices, first.openai_voices) for each in others)


def test_voices_of_kokoro_say_their_language_and_keep_the_sex_of_openais() -> None:
    assert len(KOKORO_VOICES) == 54
    assert KOKORO_VOICES["bf_emma"] == "British English, a woman"
    assert KOKORO_VOICES["zm_yunxi"] == "Mandarin, a man"
    women = {name for name, voice in KOKORO_OPENAI_VOICES.items() if KOKORO_VOICES[voice].endswith("a woman")}
    assert women == {"alloy", "coral", "nova", "sage", "shimmer", "marin"}
