"""Listening tests: what is said and made is told apart by ear alone, in another voice or of another seed."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import pytest

from penstock_atelier.sounds.waves import RATE
from penstock_atelier.voice.speak import speak
from penstock_atelier.voice.synthesis import RATE as VOICE_RATE
from tests.atelier.sounds import hearing

SENTENCES = (
    "The birch canoe slid on the smooth planks.",
    "Glue the sheet to the dark blue background.",
    "It is easy to tell the depth of a well.",
    "Rice is often served in round bowls.",
    "The juice of lemons makes fine punch.",
    "Four hours of steady work faced us.",
)
EFFECTS = ("rain", "thunder", "a bell", "a siren", "a clock", "birds", "a heartbeat", "applause")
MUSIC = (
    "a calm piano piece in C major, 60 bpm",
    "fast techno in A minor, 140 bpm",
    "strings, a sad waltz in D minor",
    "jazz with a flute, 100 bpm",
    "heroic music for a film",
)
# The edges of the bands that are heard, in hertz: about as far apart as the ear has them.
EDGES = (80, 250, 400, 600, 850, 1150, 1500, 1950, 2500, 3200, 4200, 6000)

Heard = tuple[tuple[float, ...], ...]  # how loud each band is at each moment, in nepers


def heard(samples: Sequence[int], rate: int, size: int, step_seconds: float) -> Heard:
    """The bands of a sound over time."""
    step = int(rate * step_seconds)
    places = [int(edge * size / rate) for edge in EDGES]
    moments = []
    for start in range(0, len(samples) - size, step):
        found = hearing.spectrum_of(samples[start : start + size], size)
        energies = (sum(value * value for value in found[a:b]) for a, b in pairwise(places))
        moments.append(tuple(math.log(1e4 + energy) for energy in energies))
    return tuple(moments)


def average(moments: Heard) -> tuple[float, ...]:
    return tuple(sum(band) / len(moments) for band in zip(*moments, strict=True))


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    return math.dist(one, other)


def nearest(sounds: Sequence[Heard], known: Sequence[Heard], apart: Callable[[Heard, Heard], float]) -> list[int]:
    """Which of the known sounds each of them is most like."""
    return [min(range(len(known)), key=lambda number: apart(sound, known[number])) for sound in sounds]


# --------------------------------------------------------------------------------------------------------------- speech


@cache
def said(sentence: str, voice: str) -> Heard:
    made = bytearray()
    speak(made.extend, text=sentence, voice=voice, speed=1.0)
    moments = heard(array("h", bytes(made)), VOICE_RATE, 512, 0.04)
    usual = average(moments)  # what a voice always has says nothing about the words
    return tuple(tuple(band - mean for band, mean in zip(moment, usual, strict=True)) for moment in moments)


def warped(one: Heard, other: Heard) -> float:
    """How far two sentences are apart, whoever speaks faster."""
    costs = [0.0, *[math.inf] * len(other)]
    for moment in one:
        row = [math.inf]
        for at, wanted in enumerate(other):
            row.append(distance(moment, wanted) + min(costs[at], costs[at + 1], row[at]))
        costs = row
    return costs[-1] / (len(one) + len(other))


def test_sentences_are_told_apart_in_another_voice() -> None:
    known = [said(sentence, "onyx") for sentence in SENTENCES]
    asked = [said(sentence, "nova") for sentence in SENTENCES]
    assert nearest(asked, known, warped) == list(range(len(SENTENCES)))


# ---------------------------------------------------------------------------------------------------- effects and music


def profile(data: bytes) -> Heard:
    """The bands of a sound that was made, at moments a fifth of a second apart."""
    left, _ = hearing.sides(data)
    return heard(left, RATE, 1024, 0.2)


def unlike(one: Heard, other: Heard) -> float:
    """How far two sounds are apart: the loudness of their bands, and how much it changes."""
    means = average(one), average(other)
    changes = [
        average(tuple(tuple(map(abs, map(float.__sub__, a, b))) for a, b in pairwise(found))) for found in (one, other)
    ]
    return distance(*means) + distance(*changes)


@pytest.mark.parametrize(("make", "prompts"), [(hearing.sound, EFFECTS), (hearing.music, MUSIC)])
def test_prompts_are_told_apart_with_another_seed(
    make: Callable[[str, float, int], bytes], prompts: tuple[str, ...]
) -> None:
    known = [profile(make(prompt, 3.0, 1)) for prompt in prompts]
    asked = [profile(make(prompt, 3.0, 2)) for prompt in prompts]
    assert nearest(asked, known, unlike) == list(range(len(prompts)))
