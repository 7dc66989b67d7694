"""The tasks of a child process: an effect or a piece of music as a WAV file, the same for the same words and seed."""

import hashlib
import random
import re
import struct
from typing import Any

from penstock_atelier.sounds.composition import compose
from penstock_atelier.sounds.effects import WORDS, whoosh
from penstock_atelier.sounds.waves import RATE, Track, shaped, swell, tone

_CHANNELS = 2
_LOOP_SECONDS = 0.8
_HERTZ = re.compile(r"\b(\d{2,5}) ?(?:hz|hertz)\b")


def render_sound(*, prompt: str, seed: int, seconds: float, loop: bool) -> dict[str, Any]:
    """The noises that the words of a prompt name, all at the same time. Words that it does not know change nothing but
    the chance in them; without any known word there is a whoosh.
    """
    overlap = min(_LOOP_SECONDS, seconds / 2) if loop else 0.0
    track = Track(seconds + overlap)
    rng = _random(prompt, seed)
    words = re.findall(r"[a-z]+", prompt.lower())
    effects = list(dict.fromkeys(WORDS[word] for word in words if word in WORDS))
    pitch = _HERTZ.search(prompt.lower())
    if pitch:
        effects = []
        track.add(0, shaped(tone(min(float(pitch[1]), RATE / 2.2), track.length), swell(track.length, 0.01, 0.01)))
    for effect in effects or ([] if pitch else [whoosh]):
        effect(track, rng)
    if loop:
        track.loop(overlap)
    else:
        track.fade(0.005, min(0.25, seconds / 4))
    return {"data": _wave(track)}


def render_music(*, prompt: str, seed: int, seconds: float) -> dict[str, Any]:
    """A piece of music in the style of a prompt."""
    return {"data": _wave(compose(prompt, _random(prompt, seed), seconds))}


def _random(prompt: str, seed: int) -> random.Random:
    digest = hashlib.sha256(f"{seed}\n{' '.join(prompt.lower().split())}".encode()).digest()
    return random.Random(digest)  # noqa: S311 - makes no secret


def _wave(track: Track) -> bytes:
    samples = track.finish()
    size = 2 * _CHANNELS
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, _CHANNELS, RATE, RATE * size, size, 16)
    return (
        struct.pack("<4sI4s", b"RIFF", len(samples) + 36, b"WAVE")
        + form
        + struct.pack("<4sI", b"data", len(samples))
        + samples
    )
