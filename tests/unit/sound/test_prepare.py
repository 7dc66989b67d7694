"""Sounds of callers: measured by their samples, encoded, and cut where they are quiet."""

import random
from array import array
from typing import Any

import pytest

from penstock.sound import wave
from penstock.sound.decode import BadSound
from penstock.sound.formats import SOUND_FORMATS, SoundFormat
from penstock.sound.prepare import prepare
from tests import sounds

LIMITS: dict[str, Any] = {"part_bytes": 24 * 2**20, "part_seconds": 1400.0, "max_seconds": 14_400.0}


@pytest.mark.parametrize("found", [name for name in SOUND_FORMATS if name != "pcm"])
def test_each_format_is_measured(found: SoundFormat) -> None:
    made = prepare(sounds.encoded(found, 2.0), **LIMITS)
    assert made["seconds"] == pytest.approx(2.0, abs=0.1)
    assert made["format"] == "flac"
    (part,) = made["parts"]
    assert sounds.decoded(part["data"])[1] == 16_000
    assert sounds.hertz_of(part["data"]) == pytest.approx(220, rel=0.01)


def test_a_header_is_not_believed() -> None:
    samples = sounds.tone(2.0)
    assert prepare(wave.header(sounds.RATE, 4_000_000_000) + samples, **LIMITS)["seconds"] == 2.0


def test_a_long_sound_is_cut_where_it_is_quiet() -> None:
    rate = 16_000
    noise = array("h", [random.Random(7).randint(-9000, 9000) for _ in range(rate)]).tobytes()
    sound = noise * 45 + bytes(2 * rate) + noise * 40  # a second of silence after 45
    made = prepare(wave.header(rate, len(sound)) + sound, **{**LIMITS, "part_seconds": 60.0})
    first, second = made["parts"]
    assert 45 < first["seconds"] <= 46
    assert second["start"] == first["seconds"]
    assert first["seconds"] + second["seconds"] == made["seconds"] == 86.0
    joined = b"".join(sounds.decoded(part["data"])[0].tobytes() for part in made["parts"])
    assert joined == sound, "no sample is lost, and none comes twice"


def test_a_sound_that_is_too_large_as_flac_becomes_opus() -> None:
    made = prepare(sounds.encoded("mp3", 100.0), **{**LIMITS, "part_bytes": 200_000})
    assert made["format"] == "opus"
    assert len(made["parts"]) > 1
    assert all(len(part["data"]) <= 200_000 for part in made["parts"])
    assert sum(part["seconds"] for part in made["parts"]) == pytest.approx(made["seconds"])


@pytest.mark.parametrize(
    "data", [b"", b"ffconcat version 1.0\nfile x.wav\n", b"#EXTM3U\n", sounds.wav(0.0), b"OggS" + b"\0" * 90]
)
def test_what_is_not_a_sound_is_refused(data: bytes) -> None:
    with pytest.raises(BadSound):
        prepare(data, **LIMITS)


def test_a_sound_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadSound, match=r"longer than 0\.001 hours"):
        prepare(sounds.encoded("flac", 10.0), **{**LIMITS, "max_seconds": 3.6})


@pytest.mark.parametrize("found", [name for name in SOUND_FORMATS if name != "pcm"])
def test_broken_files_are_refused_or_read_and_nothing_else(found: SoundFormat) -> None:
    whole = sounds.encoded(found, 1.0)
    chance = random.Random(found)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 30)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            made = prepare(data[: chance.randint(12, len(data))], **LIMITS)
        except BadSound:
            continue
        assert 0 < made["seconds"] < 600
