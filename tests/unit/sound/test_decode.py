"""Decoding what strangers made: broken, lying and hostile files."""

import io
import random
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.sound.decode import BadSound, frames
from penstock.sound.formats import SoundFormat
from penstock.sound.sniff import DEMUXERS
from tests import sounds

FORMATS: tuple[SoundFormat, ...] = ("mp3", "opus", "aac", "flac", "wav")
MUTATIONS = 60  # of each format


def seconds(data: bytes, source: str) -> float:
    return sum(frame.samples / frame.sample_rate for frame in frames(io.BytesIO(data), source, 24000))


@pytest.mark.parametrize("output_format", FORMATS)
def test_the_whole_of_a_file_is_decoded(output_format: SoundFormat) -> None:
    assert seconds(sounds.encoded(output_format, 2.0), output_format) == pytest.approx(2, abs=0.15)


def test_raw_samples_keep_their_order_and_lose_half_a_sample_at_the_end() -> None:
    samples = sounds.tone(0.7)
    found = b"".join(
        bytes(frame.planes[0])[: frame.samples * 2] for frame in frames(io.BytesIO(samples + b"x"), "pcm", 8000)
    )
    assert found == samples


@pytest.mark.parametrize("source", sorted(DEMUXERS))
def test_a_list_of_files_is_not_followed(source: str, tmp_path: Path) -> None:
    """Left to itself, FFmpeg opens the file that such a text names."""
    (tmp_path / "secret.wav").write_bytes(sounds.wav(1.0))
    text = f"ffconcat version 1.0\nfile {tmp_path}/secret.wav\n".encode()
    try:
        found = seconds(text, source)
    except BadSound:
        found = 0
    assert found == 0


@pytest.mark.parametrize("rate", [1, 0, 3_999, 192_001, 2**31 - 1])
def test_a_rate_that_no_sound_has_is_refused(rate: int) -> None:
    data = bytearray(sounds.wav(0.1))
    data[24:28] = rate.to_bytes(4, "little")
    with pytest.raises(BadSound):
        seconds(bytes(data), "wav")


def test_a_header_that_claims_more_is_not_believed() -> None:
    data = bytearray(sounds.wav(1.0))
    data[40:44] = b"\xf0\xff\xff\xff"
    assert seconds(bytes(data), "wav") == pytest.approx(1)


@pytest.mark.parametrize("output_format", FORMATS)
def test_broken_files_are_read_or_refused(output_format: SoundFormat) -> None:
    whole = sounds.encoded(output_format, 0.5)
    source = random.Random(output_format)
    for _ in range(MUTATIONS):
        data = bytearray(whole[: source.randrange(1, len(whole))])
        for _ in range(source.randrange(0, 8)):
            data[source.randrange(len(data))] = source.randrange(256)
        with suppress(BadSound):  # anything else fails the test
            seconds(bytes(data), output_format)
