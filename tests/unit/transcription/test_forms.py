"""Transcripts in the forms that callers ask for."""

import json

from openai.types.audio import TranscriptionDiarized, TranscriptionVerbose

from penstock.providers.transcription import Segment, Transcript, Word
from penstock.transcription import forms
from tests.unit.transcription.tables import request

USAGE = {"type": "duration", "seconds": 3.0}
HEARD = Transcript(
    text="A & B. <i>Next</i> --> here",
    segments=(
        Segment("A & B.", 0.0, 1.2344, "A", {"tokens": [5], "avg_logprob": -0.5}),
        Segment("<i>Next</i>\n-->  here", 3599.9999, 3661.5),
    ),
    words=(Word("A", 0.0, 0.5),),
)


def body(form: str, **changes: object) -> str:
    return forms.whole(request(form=form, **changes), HEARD, 3.0, USAGE).decode()


def test_subtitles_keep_their_cues_whole() -> None:
    assert body("srt") == (
        "1\n00:00:00,000 --> 00:00:01,234\nA & B.\n\n2\n01:00:00,000 --> 01:01:01,500\n<i>Next</i> -> here\n"
    )
    assert body("vtt") == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.234\nA &amp; B.\n\n"
        "01:00:00.000 --> 01:01:01.500\n&lt;i>Next&lt;/i> -> here\n"
    )


def test_verbose_json_is_what_openai_says_it_is() -> None:
    shown = TranscriptionVerbose.model_validate_json(body("verbose_json", words=True), strict=True)
    assert shown.segments is not None
    assert [segment.tokens for segment in shown.segments] == [[5], []]
    assert [segment.avg_logprob for segment in shown.segments] == [-0.5, 0.0], "zero where the provider says nothing"
    assert shown.words is not None
    assert shown.words[0].word == "A"


def test_diarized_json_is_what_openai_says_it_is() -> None:
    shown = TranscriptionDiarized.model_validate_json(body("diarized_json"))
    assert [segment.speaker for segment in shown.segments] == ["A", ""]
    assert shown.duration == 3.0


def test_json_has_probabilities_only_if_they_were_asked_for() -> None:
    assert json.loads(body("json")) == {"text": HEARD.text, "usage": USAGE}
    assert json.loads(body("json", logprobs=True))["logprobs"] == []


def test_the_language_is_the_one_that_was_asked_for_where_the_provider_says_none() -> None:
    assert json.loads(body("verbose_json", values={"language": "de"}))["language"] == "de"
    assert json.loads(body("verbose_json"))["language"] == ""


def test_the_events_of_a_diarized_stream_are_segments() -> None:
    lines = forms.events(request(form="diarized_json", stream=True), HEARD, USAGE).decode().split("\n\n")
    kinds = [json.loads(line[6:])["type"] for line in lines if line]
    assert kinds == ["transcript.text.segment", "transcript.text.segment", "transcript.text.done"]


def test_usage_is_of_tokens_or_of_seconds() -> None:
    assert forms.usage_object({}, 2.5) == {"type": "duration", "seconds": 2.5}
    assert forms.usage_object({"input": 20, "output": 3}, 2.5) == {
        "type": "tokens",
        "input_tokens": 20,
        "output_tokens": 3,
        "total_tokens": 23,
    }
