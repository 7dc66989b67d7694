"""Gemini's interactions that transcribe; calls of them are in tests/providers/test_transcription.py."""

from typing import Any

import pytest

from penstock.providers.exchange import Upload
from penstock.providers.gemini_transcription import read_transcript, sound_input
from penstock.providers.transcription import Word


def interaction(**changes: Any) -> dict[str, Any]:
    words = [{"type": "word_info", "text": "Hi", "start_offset": "0.5s", "end_offset": "1s", "speaker": "2"}]
    contents = [{"type": "text", "text": " Hi ", "annotations": words}, {"type": "thought", "text": "hm"}]
    return {"status": "completed", "steps": [{"content": contents}, {}], **changes}


def test_texts_and_words_of_all_steps_are_read() -> None:
    heard = read_transcript(interaction(usage={"total_input_tokens": 30, "total_output_tokens": 2}))
    assert heard.text == "Hi"
    assert heard.words == (Word("Hi", 0.5, 1.0, "2"),)
    assert heard.usage == {"input": 30, "output": 2}


@pytest.mark.parametrize("changes", [{"status": "failed"}, {"steps": None}])
def test_an_interaction_without_a_result_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_transcript(interaction(**changes))


def test_the_sound_is_in_base64() -> None:
    (part,) = sound_input(Upload(b"fLaC", "audio/flac", "sound.flac"))
    assert part == {"type": "audio", "data": "ZkxhQw==", "mime_type": "audio/flac"}
