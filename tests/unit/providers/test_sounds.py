"""Replies with sounds, and the formats that a model is asked for."""

import pytest

from penstock.providers.exchange import Reply
from penstock.providers.sounds import file_formats, read_sound


def test_the_body_of_a_reply_is_the_sound() -> None:
    result = read_sound(Reply(200, {"content-type": "audio/mpeg", "x-request-id": "r1"}, b"ID3..."))
    assert [file.data for file in result.files] == [b"ID3..."]
    assert result.upstream_id == "r1"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {"content-type": "audio/mpeg"}, b""),
        Reply(200, {"content-type": "application/json"}, b"{}"),
        Reply(200, {"content-type": "text/html; charset=utf-8"}, b"<html>"),
    ],
)
def test_another_body_is_not_read_as_a_sound(reply: Reply) -> None:
    with pytest.raises(ValueError, match="no sound"):
        read_sound(reply)


def test_a_format_that_a_model_lacks_is_made_of_the_first_that_it_has() -> None:
    row = file_formats("format", {"wav": "pcm_wav", "mp3": "mp3_192"})
    assert row.convert is not None
    assert [row.convert(wanted) for wanted in ("mp3", "wav", "opus")] == ["mp3_192", "pcm_wav", "pcm_wav"]
    assert row.default == "wav"
