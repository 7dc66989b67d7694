"""The content types of sounds."""

from penstock.sound.formats import content_type


def test_the_content_type_of_pcm_says_what_a_header_would() -> None:
    assert content_type("pcm", 16000) == "audio/pcm;rate=16000;channels=1"


def test_other_formats_have_one_content_type() -> None:
    assert [content_type(name, 8000) for name in ("mp3", "opus", "flac")] == ["audio/mpeg", "audio/opus", "audio/flac"]
