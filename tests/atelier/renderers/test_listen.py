"""When a sound has speech, another sound or silence."""

import json
import random
from array import array
from typing import Any

import pytest

from penstock.sound import wave
from penstock_atelier.renderers.listen import listen
from penstock_atelier.voice.speak import speak
from tests import sounds

RATE = 16_000


def heard(samples: bytes, rate: int = RATE) -> Any:
    return json.loads(listen(file=wave.header(rate, len(samples)) + samples)["body"])


def test_speech_is_told_from_silence() -> None:
    made = bytearray()
    speak(made.extend, text="The quick brown fox jumps over the lazy dog.", voice="alloy", speed=1)
    said = heard(bytes(48_000 * 2) + bytes(made) + bytes(48_000 * 2), 24_000)
    assert said["text"] == "[silence] [speech] [silence]"
    start, end = said["segments"][1]["start"], said["segments"][1]["end"]
    assert start == pytest.approx(2, abs=0.1)
    assert end == pytest.approx(2 + len(made) / 48_000, abs=0.5), "but for the pause at its end"


def test_tones_and_noise_are_not_speech() -> None:
    assert heard(sounds.tone(2.0, RATE))["text"] == "[sound]"
    noise = random.Random(7)
    assert heard(array("h", [noise.randint(-9000, 9000) for _ in range(RATE)]).tobytes())["text"] == "[sound]"


def test_the_same_sound_has_the_same_transcript() -> None:
    samples = sounds.tone(1.0, RATE)
    assert heard(samples) == heard(samples)


def test_the_padding_of_an_encoder_is_not_heard() -> None:
    assert json.loads(listen(file=sounds.encoded("mp3", 1.0))["body"])["text"] == "[sound]"


def test_words_and_segments_cover_the_sound() -> None:
    said = heard(sounds.tone(1.0, RATE) + bytes(2 * RATE))
    assert [(segment["start"], segment["end"]) for segment in said["segments"]] == [(0.0, 1.0), (1.0, 2.0)]
    assert [word["word"] for word in said["words"]] == ["[sound]", "[silence]"]
