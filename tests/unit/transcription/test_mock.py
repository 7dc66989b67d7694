"""What is left of a call that the built-in model answers."""

from penstock.schema import Request
from penstock.transcription.mock import plain, plain_request
from tests.unit.transcription.tables import request


def test_what_only_other_models_know_is_left_out() -> None:
    asked = request(extras={"boost": 2}, preferences={"only": ["lab"]}, speakers=True, logprobs=True, words=True)
    left = plain(asked)
    assert (left.extras, left.preferences, left.speakers, left.logprobs, left.words) == ({}, None, False, False, True)


def test_the_stored_form_likewise() -> None:
    values = {"diarize": True, "include": ["logprobs"], "response_format": "srt"}
    stored = Request(task="transcription", model="lab/listen", values=values, extras={"boost": 2})
    assert plain_request(stored).values == {"response_format": "srt"}
    assert plain_request(stored).extras == {}
