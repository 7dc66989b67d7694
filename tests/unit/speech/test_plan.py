"""What a model is asked for: its format, its speed, its fields."""

from typing import Any

import pytest

from penstock import package_extras
from penstock.errors import InvalidRequest
from penstock.providers.spec import Price
from penstock.speech.plan import make_plan
from penstock.speech.turns import Turn
from tests.unit.speech.tables import model, request


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({}, "mp3"),
        ({"output_format": "pcm"}, "pcm"),
        ({"output_format": "opus"}, "pcm"),
        ({"speed": 2}, "pcm"),
        ({"output_format": "pcm", "rate": 48000}, "pcm"),
        ({"text": "word " * 2000}, "pcm"),
    ],
)
def test_the_callers_format_is_asked_for_unless_the_sound_is_changed(changes: dict[str, Any], asked: str) -> None:
    assert make_plan(model(), request(**changes)).asked_format == asked


@pytest.mark.parametrize(("speed", "sent", "tempo"), [(1, None, 1), (1.1, 1.1, 1), (2.4, 1.2, 2.0), (0.35, 0.7, 0.5)])
def test_the_model_speaks_as_fast_as_it_can_and_the_gateway_does_the_rest(
    speed: float, sent: float | None, tempo: float
) -> None:
    plan = make_plan(model(speeds=(0.7, 1.2)), request(speed=speed))
    assert plan.body(0).get("speed") == sent
    assert plan.tempo == pytest.approx(tempo)


def test_the_body_has_the_fields_of_the_format_and_the_table() -> None:
    plan = make_plan(model(), request(text="Hi", values={"instructions": "Softly", "language": "en"}))
    assert plan.body(0) == {
        "input": "Hi",
        "voice": "alloy",
        "instructions": "Softly",
        "response_format": "mp3",
        "model": "voice-1",
    }


def test_sound_that_is_priced_by_the_second_is_measured() -> None:
    assert make_plan(model(Price(unit="second", usd="0.01")), request()).asked_format == "pcm"


def test_without_the_library_only_what_needs_none_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_extras, "find_spec", lambda name: None)
    make_plan(model(), request())
    make_plan(model(), request(output_format="wav"))
    for changes in ({"output_format": "opus"}, {"speed": 2}, {"output_format": "wav", "rate": 8000}):
        with pytest.raises(InvalidRequest, match="media"):
            make_plan(model(), request(**changes))


def test_a_text_without_letters_is_refused_where_only_latin_is_spoken() -> None:
    with pytest.raises(InvalidRequest, match="Latin"):
        make_plan(model(latin_only=True), request(text="こんにちは"))


def test_each_turn_has_its_own_voice_and_manner_also_where_its_text_is_cut() -> None:
    turns = (Turn("one two. three four.", "echo"), Turn("five", instructions="Whisper"))
    asked = request(turns=turns, values={"instructions": "Softly"})
    plan = make_plan(model(max_characters=12), asked)
    bodies = [plan.body(number) for number in range(len(plan.parts))]
    assert [(body["input"], body["voice"], body["instructions"]) for body in bodies] == [
        ("one two. ", "echo", "Softly"),
        ("three four.", "echo", "Softly"),
        ("five", "alloy", "Whisper"),
    ]
    assert (plan.voice, plan.asked_format) == ("echo", "pcm"), "they are joined as samples"
    assert [plan.instructions_bytes(count) for count in range(4)] == [0, 6, 12, 19]


def test_a_voice_that_the_model_does_not_have_is_refused_in_a_turn() -> None:
    with pytest.raises(InvalidRequest, match="alloy"):
        make_plan(model(voices=("alloy",)), request(turns=(Turn("one"), Turn("two", "nobody"))))
