"""Samples have the pitch of the voice, and the vowels their formants."""

import cmath
import math
from array import array
from itertools import repeat

import pytest

from penstock.providers.speech import OPENAI_VOICES
from penstock_atelier.voice.phonemes import PHONEMES
from penstock_atelier.voice.prosody import Frame
from penstock_atelier.voice.synthesis import RATE, VOICES, samples

COUNT = 2400  # samples that are looked at


def spectrum(name: str, hertz: range, voice: str = "echo", index: int = 0) -> dict[int, float]:
    """How loud each frequency is in the middle of a phoneme that is held."""
    frames = repeat(Frame(1.0, PHONEMES[name][index]), 60)
    made = array("h", b"".join(samples(frames, VOICES[voice])))[4000 : 4000 + COUNT]
    window = [value * (0.5 - 0.5 * math.cos(2 * math.pi * at / COUNT)) for at, value in enumerate(made)]
    turns = {freq: cmath.exp(-2j * math.pi * freq / RATE) for freq in hertz}
    return {freq: abs(sum(value * turn**at for at, value in enumerate(window))) for freq, turn in turns.items()}


def test_there_is_a_voice_for_each_of_openais() -> None:
    assert tuple(VOICES) == OPENAI_VOICES


@pytest.mark.parametrize("name", ["IY", "EH", "AA"])
def test_a_vowel_is_louder_at_its_formants_than_between_them(name: str) -> None:
    first, second = PHONEMES[name][0].first, PHONEMES[name][0].second
    found = spectrum(name, range(100, 3400, 25))

    def loud(hertz: float) -> float:
        return max(value for freq, value in found.items() if abs(freq - hertz) <= 60)

    between = (first + second) / 2
    assert loud(first) > 1.3 * loud(between)
    assert loud(second) > 1.1 * loud(between)


def test_s_hisses_high_and_sh_lower() -> None:
    bands = {name: spectrum(name, range(1000, 9000, 250)) for name in ("S", "SH")}
    centres = {
        name: sum(freq * loud for freq, loud in found.items()) / sum(found.values()) for name, found in bands.items()
    }
    assert centres["S"] > centres["SH"] + 1000


@pytest.mark.parametrize("voice", ["onyx", "echo", "alloy", "shimmer"])
def test_the_pitch_is_that_of_the_voice(voice: str) -> None:
    frames = repeat(Frame(1.0, PHONEMES["AA"][0]), 60)
    made = array("h", b"".join(samples(frames, VOICES[voice])))[4000 : 4000 + COUNT]
    shifts = range(RATE // 300, RATE // 60)
    likeness = {shift: sum(made[at] * made[at + shift] for at in range(COUNT - RATE // 60)) for shift in shifts}
    shortest = min(shift for shift, value in likeness.items() if value > 0.9 * max(likeness.values()))
    assert RATE / shortest == pytest.approx(VOICES[voice].pitch, rel=0.06)


def test_silence_is_silent() -> None:
    assert not any(b"".join(samples(repeat(Frame(1.0, PHONEMES["_"][0]), 3), VOICES["echo"])))


def test_the_same_frames_sound_the_same() -> None:
    frames = [Frame(1.0, target) for name in ("S", "IY", "T") for target in PHONEMES[name] for _ in range(10)]
    assert list(samples(frames, VOICES["nova"])) == list(samples(frames, VOICES["nova"]))
