"""Whatever somebody wrote is found, wherever it is; names and contents of files are not."""

from typing import Any

import pytest

from penstock.guards.texts import NAMES, joined, text_of_transcript, texts_in


def test_texts_are_found_in_their_order_and_at_any_depth() -> None:
    deep: Any = "the end"
    for _ in range(5000):
        deep = [{"content": deep}]
    call = {"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, "two"]}], "n": 3, "more": deep}
    assert list(texts_in(call, NAMES)) == ["one", "two", "the end"]
    assert next(texts_in(call)) == "user"


def test_names_and_contents_of_files_are_no_texts_of_messages() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "output", "result": "AAAA", "id": "item_1", "note": "data:image/png;base64,AAAA"},
    ]
    assert joined(parts, None, "", "end", skipped=NAMES) == "end"


def test_a_skipped_name_hides_no_object() -> None:
    parameters = {"properties": {"data": {"type": "string", "description": "hidden"}}}
    assert joined(parameters, skipped=NAMES) == "hidden"


@pytest.mark.parametrize(
    "text",
    [
        "data: a gun",
        "data:a gun",
        "data:image/png;base64,a gun",
        "data:image/png;base64,AAAA\na gun",
        "data:text/plain;base64,YSBndW4=",
        "data:,a%20gun",
    ],
)
def test_what_only_begins_like_a_file_is_a_text(text: str) -> None:
    assert joined({"messages": [{"role": "user", "content": text}]}, skipped=NAMES) == text


def test_the_text_of_a_transcript_is_without_numbers_and_times() -> None:
    srt = "1\n00:00:00,000 --> 00:00:01,000\nGive 5 &amp; take\n\n2\n00:00:01,000 --> 00:00:02,000\nup.\n"
    assert text_of_transcript(srt, "application/x-subrip") == "Give 5 & take up."
    assert text_of_transcript("WEBVTT\n\n" + srt, "text/vtt; charset=utf-8") == "Give 5 & take up."
    assert text_of_transcript('{"text": "up."}', "application/json") == "up."
    assert text_of_transcript("up.\n", "text/plain; charset=utf-8") == "up."
    assert text_of_transcript("WEBVTT\n", "text/vtt; charset=utf-8") == ""
