"""Hears sounds by their spectrum: which frequencies are loud, and when something begins."""

from __future__ import annotations

import cmath
import io
import math
import wave
from array import array
from collections.abc import Sequence
from functools import cache

from penstock_atelier.sounds.render import render_music, render_sound
from penstock_atelier.sounds.waves import RATE

SIZE = 4096


@cache
def sound(prompt: str, seconds: float = 2.0, seed: int = 0, *, loop: bool = False) -> bytes:
    data: bytes = render_sound(prompt=prompt, seed=seed, seconds=seconds, loop=loop)["data"]
    return data


@cache
def music(prompt: str, seconds: float = 6.0, seed: int = 0) -> bytes:
    data: bytes = render_music(prompt=prompt, seed=seed, seconds=seconds)["data"]
    return data


def sides(data: bytes) -> tuple[array[int], array[int]]:
    """The samples of the left and the right side of a file, as Python's own reader reads it."""
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 2, 2)
        samples = array("h", file.readframes(10**9))
    return samples[0::2], samples[1::2]


def spectrum(data: bytes, at_seconds: float = 0.5) -> list[float]:
    """How loud each frequency is, in steps of RATE / SIZE hertz, at a moment of a file."""
    left, _ = sides(data)
    return spectrum_of(left[int(at_seconds * RATE) :][:SIZE])


def spectrum_of(samples: Sequence[float], size: int = SIZE) -> list[float]:
    """The spectrum of up to `size` samples, a power of two."""
    window = [value * (0.5 - 0.5 * math.cos(2 * math.pi * at / size)) for at, value in enumerate(samples)]
    window += [0.0] * (size - len(window))
    return [abs(value) for value in _transform([complex(value) for value in window])[: size // 2]]


def _transform(values: list[complex]) -> list[complex]:
    size = len(values)
    if size == 1:
        return values
    even, odd = _transform(values[0::2]), _transform(values[1::2])
    turned = [cmath.exp(-2j * math.pi * at / size) * value for at, value in enumerate(odd)]
    return [a + b for a, b in zip(even, turned, strict=True)] + [a - b for a, b in zip(even, turned, strict=True)]


def share(data: bytes, low: float, high: float, at_seconds: float = 0.5) -> float:
    """How much of the energy is between two frequencies."""
    found = [value * value for value in spectrum(data, at_seconds)]
    step = RATE / SIZE
    return sum(found[int(low / step) : int(high / step)]) / max(sum(found), 1e-9)


def loudest(data: bytes, at_seconds: float = 0.5) -> float:
    """The frequency that is loudest."""
    found = spectrum(data, at_seconds)
    return found.index(max(found)) * RATE / SIZE


def loudness(data: bytes, step_seconds: float = 0.01) -> list[float]:
    """How loud each hundredth of a second is."""
    left, right = sides(data)
    size = int(step_seconds * RATE)
    return [
        math.sqrt(sum(a * a for a in left[at : at + size]) + sum(b * b for b in right[at : at + size]))
        for at in range(0, len(left) - size, size)
    ]
