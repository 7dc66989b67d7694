"""Gemini's requests and events."""

import base64

import pytest

from penstock.providers.gemini_speech import build_contents, read_event


def test_the_text_and_the_style_are_one_part() -> None:
    body = build_contents({"text": "Hi", "style": "softly", "generationConfig": {}})
    parts = [{"text": "Hi", "speechMetadata": {"style": "softly"}}]
    assert body == {"generationConfig": {}, "contents": [{"role": "user", "parts": parts}]}


def test_sound_and_counts_are_read() -> None:
    inline = {"inlineData": {"mimeType": "audio/L16", "data": base64.b64encode(b"ab").decode()}}
    part = read_event(
        {
            "candidates": [{"content": {"parts": [inline, {"text": "thought"}, inline]}}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 9},
        }
    )
    assert (part.sound, part.usage, part.error) == (b"abab", {"input": 3, "output": 9}, "")


@pytest.mark.parametrize(
    "fields", [{"promptFeedback": {"blockReason": "SAFETY"}}, {"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}]
)
def test_a_blocked_text_is_a_refusal(fields: dict[str, object]) -> None:
    assert read_event(fields).error == "refused"
