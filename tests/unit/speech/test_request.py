"""The fields of a call of speech."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.schema import Call, Caller
from penstock.speech.request import SpeechRequest, read_speech_request
from penstock.values import OrgId


def read(body: Any) -> SpeechRequest:
    caller = Caller(OrgId("org"), "key")
    return read_speech_request(Call(id="req_1", caller=caller, endpoint="/", at_ms=0, started=0.0, json=body))


def test_defaults_are_those_of_the_interface() -> None:
    request = read({"model": "m", "input": "Hello", "voice": None, "speed": None})
    assert (request.output_format, request.speed, request.voice, request.in_events) == ("mp3", 1, None, False)
    assert (request.rate, request.wanted_rate) == (None, 24000)


def test_a_voice_may_be_an_object_with_its_id() -> None:
    assert read({"model": "m", "input": "Hello", "voice": {"id": "v1"}}).voice == "v1"


def test_fields_are_divided_by_who_uses_them() -> None:
    request = read({"model": "m", "input": "Hi", "instructions": "Softly", "user": "u", "stability": 0.5})
    assert request.values == {"instructions": "Softly", "user": "u"}
    assert request.extras == {"stability": 0.5}
    assert request.records == {"user": "u"}


@pytest.mark.parametrize(
    "body", [[], "text", {"model": "m"}, {"input": "x"}, {"model": "m", "input": "x", "voice": []}]
)
def test_what_is_no_call_of_speech_is_refused(body: Any) -> None:
    with pytest.raises(InvalidRequest):
        read(body)
