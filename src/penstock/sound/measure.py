"""Measure how long a sound is, by its samples and not by its headers."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO
from typing import Any

from penstock.sound.decode import BadSound, frames
from penstock.sound.sniff import HEAD_BYTES, sound_format

# This runs in a child process (see imaging/workers.py).


def measure(data: bytes) -> dict[str, Any]:
    """The seconds of a whole file; the task of a child process. Raises BadSound for what is not sound."""
    found = sound_format(data[:HEAD_BYTES])
    if found is None:
        raise BadSound("The file type is unknown.")
    seconds = sum((Fraction(frame.samples, frame.sample_rate) for frame in frames(BytesIO(data), found)), Fraction(0))
    return {"seconds": round(float(seconds), 3)}
