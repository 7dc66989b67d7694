"""Samples become files that other programs read."""

from io import BytesIO

import av
import pytest

from penstock.sound.encode import GENERATED, Encoder, encoded_rate
from penstock.sound.formats import SOUND_FORMATS, WITH_RATE, SoundFormat
from tests import sounds


@pytest.mark.parametrize(
    ("output_format", "rate"),
    [*((name, 24000) for name in SOUND_FORMATS), *((name, rate) for name in WITH_RATE for rate in (8000, 48000))],
)
def test_a_tone_stays_a_tone(output_format: SoundFormat, rate: int) -> None:
    data = sounds.encoded(output_format, 1.0, rate)
    found = "pcm" if output_format == "pcm" else None
    assert sounds.container_of(data) == output_format
    assert sounds.seconds_of(data, found, rate) == pytest.approx(1, abs=0.16)
    assert sounds.hertz_of(data, found, rate) == pytest.approx(220, rel=0.01)


@pytest.mark.parametrize("output_format", ["mp3", "opus", "flac"])
def test_what_was_generated_says_so(output_format: SoundFormat) -> None:
    for is_generated in (True, False):
        made = bytearray()
        with Encoder(output_format, 24000, made.extend, is_generated=is_generated) as encoder:
            encoder.add(sounds.tone(0.5))
        with av.open(BytesIO(bytes(made))) as opened:
            said = {**opened.metadata, **opened.streams.audio[0].metadata}
        assert (GENERATED in said.values()) == is_generated


def test_opus_is_encoded_at_a_rate_that_it_has() -> None:
    assert [encoded_rate("opus", rate) for rate in (8000, 22050, 44100)] == [8000, 48000, 48000]
    assert encoded_rate("flac", 22050) == 22050


@pytest.mark.parametrize("output_format", ["mp3", "opus", "aac", "flac"])
def test_bytes_come_while_samples_are_added(output_format: SoundFormat) -> None:
    made: list[bytes] = []
    samples = sounds.tone(3)
    with Encoder(output_format, 24000, made.append) as encoder:
        for start in range(0, len(samples), 4800):
            encoder.add(samples[start : start + 4800])
        assert sum(map(len, made)) > len(sounds.encoded(output_format, 3.0)) * 0.8
