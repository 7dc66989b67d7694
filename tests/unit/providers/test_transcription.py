"""How providers' transcripts are read."""

import pytest

from penstock.providers.transcription import DETAILS, WHISPER, Segment, Transcription, Word, openai_tokens, read_openai


def test_the_least_that_gives_a_detail_is_asked_for() -> None:
    whisper = Transcription(details=WHISPER, read=read_openai)
    assert [whisper.asked(detail) for detail in DETAILS] == list(DETAILS)
    words = Transcription(details={"word": {}}, read=read_openai)
    assert [words.asked(detail) for detail in DETAILS] == ["word"] * 3
    plain = Transcription(details={"text": {}}, read=read_openai)
    assert [plain.asked(detail) for detail in DETAILS] == ["text", None, None]


def test_openais_forms_are_read() -> None:
    found = read_openai(
        {
            "text": "Hi.",
            "language": "english",
            "segments": [{"id": 0, "start": 0, "end": 1.5, "text": " Hi.", "avg_logprob": -0.1, "speaker": 0}],
            "words": [{"word": "Hi", "start": 0.1, "end": 0.4}],
            "usage": {"type": "tokens", "input_tokens": 14, "output_tokens": 2, "total_tokens": 16},
        }
    )
    assert found.segments == (Segment(" Hi.", 0.0, 1.5, "0", {"avg_logprob": -0.1}),)
    assert found.words == (Word("Hi", 0.1, 0.4),)
    assert found.usage == {"input": 14, "output": 2}
    assert read_openai({"text": ""}).text == "", "silence"


def test_seconds_are_not_tokens() -> None:
    assert openai_tokens({"type": "duration", "seconds": 3}) == {}


@pytest.mark.parametrize("fields", [{}, {"text": None}, {"text": 5}, {"text": "", "words": [{"word": "a"}]}, []])
def test_what_is_not_a_transcript_is_refused(fields: object) -> None:
    with pytest.raises((KeyError, TypeError, AttributeError)):
        read_openai(fields)
