"""Make samples from frames: pulses of the vocal cords and breath go through four formants, friction through a fifth."""

import math
import random
from array import array
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from penstock_atelier.voice.prosody import FRAME_SECONDS, Frame

RATE = 24_000
_SAMPLES = int(RATE * FRAME_SECONDS)
_WIDTHS = (70.0, 100.0, 160.0, 260.0)
_FOURTH = 3500.0
_OPEN = 0.6  # share of a period in which the vocal cords are open
_LOUDNESS = 2200.0
_NOISE_LOUDNESS = 900.0
_PEAK = 32000
_NOISE_SAMPLES = 48_000


class Voice(NamedTuple):
    """What tells voices apart."""

    pitch: float  # in hertz
    throat: float = 1.0  # a shorter throat has higher formants
    breath: float = 0.03
    rate: float = 1.0
    melody: float = 1.0  # how much the pitch moves


# By the names of OpenAI's voices.
VOICES = {
    "alloy": Voice(165, 1.08),
    "ash": Voice(112, 0.99, 0.03, 1.03),
    "ballad": Voice(124, 1.02, 0.06, 0.92, 1.3),
    "coral": Voice(205, 1.16, 0.04, 1.0, 1.1),
    "echo": Voice(105, 0.97),
    "fable": Voice(135, 1.03, 0.03, 0.96, 1.25),
    "nova": Voice(215, 1.17, 0.03, 1.06, 1.2),
    "onyx": Voice(84, 0.93, 0.02, 0.94, 0.9),
    "sage": Voice(188, 1.13, 0.05, 0.95),
    "shimmer": Voice(228, 1.19, 0.07, 1.0, 1.2),
    "verse": Voice(118, 1.0, 0.03, 1.05, 1.35),
    "marin": Voice(198, 1.14, 0.03, 1.02, 1.1),
    "cedar": Voice(96, 0.96, 0.03, 0.98, 1.1),
}


def samples(frames: Iterable[Frame], voice: Voice) -> Iterator[bytes]:
    """16-bit samples of each frame."""
    mouth = _Mouth(voice)
    for frame in frames:
        yield mouth.speak(frame)


def _resonance(hertz: float, width: float) -> tuple[float, float, float]:
    """The coefficients of a resonator whose loudness at zero hertz is one."""
    decay = math.exp(-math.pi * width / RATE)
    second = -decay * decay
    first = 2 * decay * math.cos(2 * math.pi * min(hertz, RATE * 0.46) / RATE)
    return 1 - first - second, first, second


class _Mouth:
    """The state of the resonators between two frames."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._phase = 0.0
        self._state = [0.0] * 10
        self._at = 0  # in the noise

    def speak(self, frame: Frame) -> bytes:
        target = frame.target
        voice = self._voice
        if not (target.voice or target.breath or target.noise) and max(map(abs, self._state)) < 0.5:
            return bytes(2 * _SAMPLES)
        throat = voice.throat
        (g1, a1, b1), (g2, a2, b2), (g3, a3, b3), (g4, a4, b4) = (
            _resonance(hertz * throat, width)
            for hertz, width in zip((target.first, target.second, target.third, _FOURTH), _WIDTHS, strict=True)
        )
        gn, an, bn = _resonance(target.noise_hertz, target.noise_width)
        gn = 1 - math.exp(-math.pi * target.noise_width / RATE)
        p1, q1, p2, q2, p3, q3, p4, q4, pn, qn = self._state
        step = voice.pitch * (1 + (frame.pitch - 1) * voice.melody) / RATE
        phase = self._phase
        loud = target.voice * _LOUDNESS
        breath = (target.breath + target.voice * voice.breath) * _LOUDNESS
        friction = target.noise * gn * _NOISE_LOUDNESS * 12
        self._at = (self._at + _SAMPLES) % (_NOISE_SAMPLES - _SAMPLES)
        made: list[int] = []
        add = made.append
        for hiss in _noise()[self._at : self._at + _SAMPLES]:
            phase += step
            if phase >= 1:
                phase -= 1
            if phase < _OPEN:
                opened = phase / _OPEN
                source = loud * opened * (2 - 3 * opened)
            else:
                source = 0.0
            source += breath * hiss
            one = g1 * source + a1 * p1 + b1 * q1
            q1, p1 = p1, one
            two = g2 * one + a2 * p2 + b2 * q2
            q2, p2 = p2, two
            three = g3 * two + a3 * p3 + b3 * q3
            q3, p3 = p3, three
            four = g4 * three + a4 * p4 + b4 * q4
            q4, p4 = p4, four
            fric = friction * hiss + an * pn + bn * qn
            qn, pn = pn, fric
            add(int(four * 3 + fric))
        self._phase = phase
        self._state = [p1, q1, p2, q2, p3, q3, p4, q4, pn, qn]
        if max(made) > _PEAK or min(made) < -_PEAK:
            made = [max(-_PEAK, min(_PEAK, value)) for value in made]
        return array("h", made).tobytes()


@cache
def _noise() -> list[float]:
    """Noise that is the same in each process, so that a text always sounds the same."""
    source = random.Random(7)  # noqa: S311 - for a sound, not for security
    return [source.uniform(-1, 1) for _ in range(_NOISE_SAMPLES)]
