"""Replies of Lyria: music with words, refusals and nothing."""

from typing import Any

import msgspec
import pytest

from penstock.providers.exchange import Reply
from penstock.providers.lyria import build_contents, read_music


def reply(body: Any) -> Reply:
    return Reply(200, {}, msgspec.json.encode(body))


def test_music_and_its_words_are_read() -> None:
    parts = [{"text": "[Verse]"}, {"inlineData": {"data": "QUJD", "mimeType": "audio/mpeg"}}, {"text": "La"}]
    (file,) = read_music(reply({"candidates": [{"content": {"parts": parts}}]})).files
    assert (file.data, file.lyrics) == ("QUJD", "[Verse]\nLa")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refused"),
        ({"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}, "refused"),
        ({"candidates": [{"content": {"parts": [{"text": "no"}]}, "finishReason": "STOP"}]}, "broken"),
        ({}, "broken"),
    ],
)
def test_no_music_is_a_failure(body: Any, kind: str) -> None:
    result = read_music(reply(body))
    assert (result.status, result.failure_kind) == ("failed", kind)


def test_words_follow_the_description() -> None:
    sent = build_contents({"lyrics": "La", "prompt": "jazz", "generationConfig": {}})
    assert sent["contents"][0]["parts"] == [{"text": "jazz"}, {"text": "La"}]
    assert build_contents({"lyrics": "La"})["contents"][0]["parts"] == [{"text": "La"}]
