"""Sounds for tests: tones that can be recognised after they were encoded, decoded, resampled and played faster."""

from __future__ import annotations

import io
import math
from array import array
from functools import cache
from typing import Any

import av
from av.audio.resampler import AudioResampler

from penstock.sound import sniff, wave
from penstock.sound.encode import Encoder
from penstock.sound.formats import SoundFormat

HERTZ = 220
RATE = 24_000


@cache
def tone(seconds: float, rate: int = RATE, hertz: float = HERTZ) -> bytes:
    """16-bit samples of a tone."""
    step = 2 * math.pi * hertz / rate
    count = int(rate * seconds)
    distinct = min(count, rate) if float(hertz).is_integer() else count  # it repeats itself after a second
    samples = array("h", [int(12_000 * math.sin(step * at)) for at in range(distinct)]).tobytes()
    return (samples * (count // max(distinct, 1) + 1))[: count * 2]


@cache
def encoded(output_format: SoundFormat, seconds: float = 1.0, rate: int = RATE) -> bytes:
    """A tone as a file."""
    made = bytearray()
    with Encoder(output_format, rate, made.extend) as encoder:
        samples = tone(seconds, rate)
        for start in range(0, len(samples), 4096):
            encoder.add(samples[start : start + 4096])
    return bytes(made)


def decoded(data: bytes, found: str | None = None, rate: int = RATE) -> tuple[array[int], int]:
    """The samples of a file, and their rate; the format is recognised by its first bytes unless it is `pcm`."""
    found = found or sniff.sound_format(data)
    assert found is not None, f"not a sound: {data[:16]!r}"
    if found == "pcm":
        return array("h", data), rate
    samples = bytearray()
    with av.open(io.BytesIO(data), "r", format=sniff.DEMUXERS[found]) as container:
        stream: Any = container.streams.audio[0]
        rate = stream.codec_context.sample_rate
        resampler = AudioResampler(format="s16", layout="mono", rate=rate)
        for frame in container.decode(stream):
            for plain in resampler.resample(frame):
                samples += bytes(plain.planes[0])[: plain.samples * 2]
    return array("h", bytes(samples)), rate


def seconds_of(data: bytes, found: str | None = None, rate: int = RATE) -> float:
    samples, rate = decoded(data, found, rate)
    return len(samples) / rate


def hertz_of(data: bytes, found: str | None = None, rate: int = RATE) -> float:
    """The pitch of a tone, by how often it passes zero; the first and the last tenth are left out."""
    samples, rate = decoded(data, found, rate)
    edge = len(samples) // 10
    middle = samples[edge : len(samples) - edge]
    passages = [at for at in range(len(middle) - 1) if middle[at] < 0 <= middle[at + 1]]
    return (len(passages) - 1) * rate / (passages[-1] - passages[0])


def container_of(data: bytes) -> str:
    """What a file is by its first bytes, without using the code under test."""
    marks = {b"ID3": "mp3", b"OggS": "opus", b"fLaC": "flac", b"RIFF": "wav"}
    for mark, name in marks.items():
        if data.startswith(mark):
            return name
    if data[:1] == b"\xff" and data[1] & 0xF6 == 0xF0:
        return "aac"
    return "mp3" if data[:1] == b"\xff" and data[1] & 0xE6 == 0xE2 else "pcm"


def wav(seconds: float = 1.0, rate: int = RATE) -> bytes:
    samples = tone(seconds, rate)
    return wave.header(rate, len(samples)) + samples
