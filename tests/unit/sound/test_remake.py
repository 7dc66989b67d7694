"""Whole files in other formats: their channels, their length, and files that are not what they say."""

import io
from itertools import pairwise
from typing import Any

import av
import pytest

from penstock.sound import wave
from penstock.sound.decode import BadSound
from penstock.sound.formats import FILE_FORMATS, SoundFormat
from penstock.sound.remake import remake
from tests import sounds


def stereo(seconds: float = 1.0, rate: int = 44_100) -> bytes:
    """A file with a tone on the left side and one of twice its pitch on the right."""
    left, right = (
        memoryview(sounds.tone(seconds, rate)).cast("h"),
        memoryview(sounds.tone(seconds, rate, 440)).cast("h"),
    )
    samples = b"".join(
        a.to_bytes(2, "little", signed=True) + b.to_bytes(2, "little", signed=True)
        for a, b in zip(left, right, strict=True)
    )
    return wave.header(rate, len(samples), 2) + samples


def opened(data: bytes) -> Any:
    return av.open(io.BytesIO(data), "r")


@pytest.mark.parametrize("target", FILE_FORMATS)
def test_a_file_of_two_sides_keeps_both(target: SoundFormat) -> None:
    made = remake(stereo(), target)
    assert made["seconds"] == pytest.approx(1, abs=0.01)
    assert sounds.container_of(made["data"]) == target
    with opened(made["data"]) as container:
        assert len(container.streams.audio[0].layout.channels) == 2
        sides: list[list[float]] = [[], []]
        resampler = av.AudioResampler(format="s16p", layout="stereo", rate=44_100)
        for frame in container.decode(audio=0):
            for plain in resampler.resample(frame):
                for side, plane in zip(sides, plain.planes, strict=True):
                    side.extend(memoryview(bytes(plane)).cast("h")[: plain.samples])
    for side, hertz in zip(sides, (220, 440), strict=True):
        middle = side[5000:-5000]
        rises = sum(before < 0 <= after for before, after in pairwise(middle))
        assert rises * 44_100 / len(middle) == pytest.approx(hertz, rel=0.02)


@pytest.mark.parametrize("source", FILE_FORMATS)
def test_each_format_becomes_each_other(source: SoundFormat) -> None:
    for target in FILE_FORMATS:
        made = remake(sounds.encoded(source, 1.5), target)
        assert made["seconds"] == pytest.approx(1.5, abs=0.09)
        assert sounds.hertz_of(made["data"]) == pytest.approx(220, rel=0.02)
        with opened(made["data"]) as container:
            assert len(container.streams.audio[0].layout.channels) == 1


@pytest.mark.parametrize("data", [b"", b"{}", b"ffconcat version 1.0", b"RIFF\0\0\0\0WAVE", b"ID3" + bytes(50)])
def test_what_is_not_sound_is_refused(data: bytes) -> None:
    with pytest.raises(BadSound):
        remake(data, "mp3")


def test_a_file_without_samples_is_refused() -> None:
    with pytest.raises(BadSound):
        remake(wave.header(24_000, 0), "flac")


def test_a_rate_that_players_do_not_know_is_lowered() -> None:
    made = remake(sounds.encoded("wav", 0.3, 96_000), "flac")
    with opened(made["data"]) as container:
        assert container.streams.audio[0].codec_context.sample_rate == 48_000
