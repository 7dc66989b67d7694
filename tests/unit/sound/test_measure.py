"""The length of a sound, by its samples."""

import pytest

from penstock.sound.decode import BadSound
from penstock.sound.formats import SoundFormat
from penstock.sound.measure import measure
from tests import sounds


@pytest.mark.parametrize("output_format", ["mp3", "opus", "aac", "flac", "wav"])
def test_a_sound_is_as_long_as_its_samples(output_format: SoundFormat) -> None:
    assert measure(sounds.encoded(output_format, 2))["seconds"] == pytest.approx(2, abs=0.15)


def test_a_header_that_lies_about_the_length_is_not_believed() -> None:
    data = bytearray(sounds.encoded("wav", 1))
    data[40:44] = (0xFFFFFF00).to_bytes(4, "little")
    assert measure(bytes(data))["seconds"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("data", [b"", b"ffconcat version 1.0\nfile other.wav\n", b"<html></html>" * 20])
def test_what_is_not_sound_is_refused(data: bytes) -> None:
    with pytest.raises(BadSound):
        measure(data)
