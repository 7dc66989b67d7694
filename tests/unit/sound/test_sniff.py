"""Sounds are recognised by their first bytes, and nothing else is taken for one."""

import pytest

from penstock.sound.formats import SoundFormat
from penstock.sound.sniff import DEMUXERS, HEAD_BYTES, sound_format
from tests import sounds


@pytest.mark.parametrize("output_format", ["mp3", "opus", "aac", "flac", "wav"])
def test_each_format_is_recognised_by_its_head(output_format: SoundFormat) -> None:
    assert sound_format(sounds.encoded(output_format, 0.2)[:HEAD_BYTES]) == output_format


def test_mp3_without_a_tag_is_recognised() -> None:
    assert sound_format(b"\xff\xfb\x90\x64" + bytes(8)) == "mp3"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xff",
        b"ffconcat version 1.0\n",
        b"#EXTM3U\n#EXT-X-VERSION:3",
        b"<html><body>",
        b'{"error": {}}',
        b"\xff\xe9\x00\x00",  # a version of MPEG that does not exist
        b"\xff\xfb\xf0\x00",  # a bit rate that does not exist
        b"RIFF\x00\x00\x00\x00AVI LIST",
        bytes(64),
    ],
)
def test_nothing_else_is_a_sound(head: bytes) -> None:
    assert sound_format(head) is None


def test_no_demuxer_reads_playlists() -> None:
    assert not {"concat", "hls", "dash", "sdp", "ffmetadata", "image2"} & set(DEMUXERS.values())
