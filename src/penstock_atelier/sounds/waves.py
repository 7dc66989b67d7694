"""Make and mix samples: tones, noise, filters, envelopes and a stereo track."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from operator import add, mul

RATE = 44_100
_TABLE = 2048
_PEAK = 29_000.0  # of the loudest sample of a finished track

Samples = Sequence[float]


def count(seconds: float) -> int:
    """How many samples last so long."""
    return max(1, round(seconds * RATE))


# --------------------------------------------------------------------------------------------------------------- making


@cache
def table(*harmonics: float) -> tuple[float, ...]:
    """One period of a wave with these harmonics."""
    turn = 2 * math.pi / _TABLE
    made = [sum(level * math.sin(turn * at * (n + 1)) for n, level in enumerate(harmonics)) for at in range(_TABLE)]
    peak = max(map(abs, made))
    return tuple(value / peak for value in made)


def tone(hertz: float, length: int, wave: tuple[float, ...] = ()) -> list[float]:
    """A steady tone of one wave; without one, a sine."""
    wave = wave or table(1.0)
    step = hertz * _TABLE / RATE
    mask = _TABLE - 1
    return [wave[int(at * step) & mask] for at in range(length)]


def sweep(hertz: Iterable[float]) -> list[float]:
    """A sine with one frequency for each sample."""
    wave = table(1.0)
    mask = _TABLE - 1
    step = _TABLE / RATE
    phase = 0.0
    made = []
    for each in hertz:
        phase += each * step
        made.append(wave[int(phase) & mask])
    return made


def line(start: float, end: float, length: int) -> list[float]:
    """Values that go evenly from one to another."""
    step = (end - start) / length
    return [start + step * at for at in range(length)]


def noise(rng: random.Random, length: int) -> list[float]:
    draw = rng.random
    return [2 * draw() - 1 for _ in range(length)]


# -------------------------------------------------------------------------------------------------------------- shaping


def low_pass(samples: Samples, hertz: float) -> list[float]:
    share = 1 - math.exp(-2 * math.pi * hertz / RATE)
    last = 0.0
    made = []
    for sample in samples:
        last += share * (sample - last)
        made.append(last)
    return made


def high_pass(samples: Samples, hertz: float) -> list[float]:
    return [sample - low for sample, low in zip(samples, low_pass(samples, hertz), strict=True)]


def resonance(samples: Samples, hertz: float, width: float) -> list[float]:
    """What a body that rings at this frequency makes of the samples."""
    decay = math.exp(-math.pi * width / RATE)
    first = 2 * decay * math.cos(2 * math.pi * hertz / RATE)
    second = -decay * decay
    gain = (1 - decay * decay) * 0.9
    one = two = 0.0
    made = []
    for sample in samples:
        one, two = gain * sample + first * one + second * two, one
        made.append(one)
    return made


@cache
def decay(length: int, half_seconds: float, attack_seconds: float = 0.003) -> array[float]:
    """An envelope that rises quickly and then halves every so many seconds; its end is silent."""
    factor = 0.5 ** (1 / (half_seconds * RATE))
    rise = min(length, count(attack_seconds))
    fall = min(length, count(0.02))
    level = 1.0
    made = array("f", bytes(4 * length))
    for at in range(length):
        made[at] = level * min(1.0, at / rise) * min(1.0, (length - at) / fall)
        level *= factor
    return made


@cache
def swell(length: int, attack_seconds: float, release_seconds: float) -> array[float]:
    """An envelope that rises, stays and falls."""
    rise = min(length / 2, attack_seconds * RATE)
    fall = min(length / 2, release_seconds * RATE)
    return array("f", (min(1.0, at / rise, (length - at) / fall) for at in range(length)))


def shaped(samples: Samples, envelope: Iterable[float]) -> list[float]:
    return list(map(mul, samples, envelope))


def scaled(samples: Samples, level: float) -> list[float]:
    return [sample * level for sample in samples]


def mixed(*parts: Samples) -> list[float]:
    """Sounds of the same length at the same time."""
    made = list(parts[0])
    for part in parts[1:]:
        made = list(map(add, made, part))
    return made


# -------------------------------------------------------------------------------------------------------------- a track


class Track:
    """A piece of sound with a left and a right side, to which sounds are added."""

    def __init__(self, seconds: float) -> None:
        self.length = count(seconds)
        self.left = array("f", bytes(4 * self.length))
        self.right = array("f", bytes(4 * self.length))

    def add(self, at_seconds: float, samples: Samples, level: float = 1.0, side: float = 0.0) -> None:
        """Add a sound: `side` is -1 for the left, 1 for the right. What would be beyond the end is left out."""
        start = round(at_seconds * RATE)
        size = min(len(samples), self.length - start)
        if start < 0 or size <= 0:
            return
        for channel, gain in ((self.left, 1 - max(0.0, side)), (self.right, 1 + min(0.0, side))):
            gained = [sample * (level * gain) for sample in samples[:size]]
            channel[start : start + size] = array("f", map(add, channel[start : start + size], gained))

    def loop(self, seconds: float) -> None:
        """Blend the end into the beginning, and cut it off: the track can be repeated without a seam."""
        size = count(seconds)
        for channel in (self.left, self.right):
            end = channel[self.length - size :]
            for at in range(size):
                share = at / size
                channel[at] = channel[at] * math.sqrt(share) + end[at] * math.sqrt(1 - share)
            del channel[self.length - size :]
        self.length -= size

    def fade(self, begin_seconds: float, end_seconds: float) -> None:
        for channel in (self.left, self.right):
            for at in range(min(self.length, count(begin_seconds))):
                channel[at] *= at / count(begin_seconds)
            for at in range(min(self.length, count(end_seconds))):
                channel[self.length - 1 - at] *= at / count(end_seconds)

    def finish(self) -> bytes:
        """16-bit samples of both sides in turn, as loud as they can be."""
        peak = max(1e-6, *(abs(value) for side in (self.left, self.right) for value in (max(side), min(side))))
        level = _PEAK / peak
        made = array("h", bytes(4 * self.length))
        made[0::2] = array("h", [int(sample * level) for sample in self.left])
        made[1::2] = array("h", [int(sample * level) for sample in self.right])
        return made.tobytes()
