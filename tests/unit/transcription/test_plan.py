"""What a model is asked for."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.providers.spec import Price, Upload
from penstock.transcription.plan import NoTimes, make_plan
from tests.unit.transcription.tables import model, request

FILE = Upload(b"fLaC", "audio/flac", "sound.flac")
TEXT_ONLY = {"text": {"response_format": "json"}}


def body(given: Any, **changes: Any) -> dict[str, Any]:
    return make_plan(given, request(**changes)).body(FILE, None)


@pytest.mark.parametrize(
    ("form", "words", "asked"),
    [
        ("text", False, {"response_format": "json"}),
        ("srt", False, {"response_format": "verbose_json"}),
        (
            "verbose_json",
            True,
            {"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]},
        ),
    ],
)
def test_the_model_is_asked_for_what_the_form_needs(form: str, words: bool, asked: dict[str, Any]) -> None:
    assert body(model(), form=form, words=words) == {"file": FILE, "model": "listen-1", **asked}


def test_segments_are_made_of_words_where_the_model_has_only_those() -> None:
    asked = body(model(details={"word": {"?words": True}}), form="srt")
    assert asked["?words"] is True


def test_no_times_are_invented() -> None:
    for form in ("srt", "vtt", "verbose_json"):
        with pytest.raises(NoTimes, match=form):
            make_plan(model(details=TEXT_ONLY), request(form=form))
    with pytest.raises(NoTimes, match="of words"):
        make_plan(model(details={"segment": {}}), request(form="verbose_json", words=True))


def test_speakers_and_probabilities_need_a_model_that_has_them() -> None:
    able = model(speakers={"diarize": True}, logprobs={"include[]": ["logprobs"]})
    assert body(able, speakers=True)["diarize"] is True
    assert body(able, logprobs=True)["include[]"] == ["logprobs"]
    with pytest.raises(InvalidRequest) as refusal:
        make_plan(model(), request(speakers=True))
    assert refusal.value.param == "diarize"
    with pytest.raises(InvalidRequest) as refusal:
        make_plan(model(), request(logprobs=True))
    assert refusal.value.param == "include"


def test_a_file_is_sent_as_it_came_only_where_its_length_does_not_set_the_price() -> None:
    by_token = Price(unit="token", input_usd="0.0000025", usd="0.00001")
    assert body(model(by_token), original=True)["file"] is FILE
    with pytest.raises(InvalidRequest) as refusal:
        make_plan(model(), request(original=True))
    assert refusal.value.param == "original"


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        make_plan(model(), request(extras={"beam": 5}))
    assert refusal.value.param == "beam"


def test_a_field_that_the_model_does_not_take_is_not_sent() -> None:
    assert "keywords" not in body(model(), values={"keywords": ["Penstock"], "language": "en"})


def test_the_prompt_of_a_later_part_is_what_was_said_before() -> None:
    plan = make_plan(model(), request(values={"prompt": "first"}))
    assert plan.body(FILE, None)["prompt"] == "first"
    assert plan.body(FILE, "second")["prompt"] == "second"
