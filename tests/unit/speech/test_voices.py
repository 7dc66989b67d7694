"""Which voice a name means."""

import pytest

from penstock.errors import InvalidRequest
from penstock.providers.speech import openai_names, voice_names
from penstock.speech.voices import model_voice
from tests.unit.speech.tables import model

CLOSED = model(
    voices=voice_names("Kore Puck Zephyr"), openai_voices=openai_names(" ".join(["Kore", "Puck"] * 6 + ["Zephyr"]))
)


@pytest.mark.parametrize(
    ("name", "voice"),
    [(None, "Kore"), ("alloy", "Kore"), ("ash", "Puck"), ("cedar", "Zephyr"), ("zephyr", "Zephyr"), ("ALLOY", "Kore")],
)
def test_a_name_means_a_voice_of_the_model(name: str | None, voice: str) -> None:
    assert model_voice(CLOSED, name) == voice


def test_an_unknown_voice_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidRequest, match=r"Did you mean `Zephyr`\?") as refusal:
        model_voice(CLOSED, "zefyr")
    assert refusal.value.param == "voice"


def test_a_model_without_a_closed_list_takes_any_voice() -> None:
    assert model_voice(model(), "my-clone") == "my-clone"
    assert model_voice(model(), None) is None
