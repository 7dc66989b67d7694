"""Play single notes: strings, keys, pads, a flute, a bass and drums."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Mapping
from functools import cache

from penstock_atelier.sounds.waves import (
    RATE,
    count,
    decay,
    high_pass,
    line,
    low_pass,
    mixed,
    noise,
    scaled,
    shaped,
    sweep,
    swell,
    table,
    tone,
)

_DARK = (1.0, 0.25, 0.08)
_BRIGHT = (1.0, 0.6, 0.45, 0.3, 0.2, 0.14, 0.1, 0.06)
_REED = (1.0, 0.05, 0.5, 0.04, 0.25, 0.03, 0.12)
_SAW = tuple(1 / n for n in range(1, 14))


def hertz(note: int) -> float:
    """The pitch of a note as MIDI counts them: 69 is the A of 440 hertz."""
    return float(440 * 2 ** ((note - 69) / 12))


def _piano(note: int, seconds: float) -> list[float]:
    length = count(seconds + 0.5)
    pitch = hertz(note)
    bright = shaped(tone(pitch, length, table(*_BRIGHT)), decay(length, 0.13))
    dark = shaped(tone(pitch * 1.0007, length, table(*_DARK)), decay(length, max(0.2, 0.75 - note / 180)))
    return mixed(bright, dark)


def _guitar(note: int, seconds: float) -> list[float]:
    """A plucked string: noise that goes round in a loop which takes its edge off."""
    length = count(seconds + 0.4)
    period = max(2, round(RATE / hertz(note)))
    string = low_pass(noise(random.Random(note), period), 5500)  # noqa: S311 - makes no secret
    made = array("f", bytes(4 * length))
    last = 0.0
    for at in range(length):
        place = at % period
        value = string[place]
        made[at] = value
        string[place] = 0.4985 * (value + last)
        last = value
    return shaped(made, swell(length, 0.001, 0.15))


def _strings(note: int, seconds: float) -> list[float]:
    length = count(seconds + 0.35)
    saw = table(*_SAW)
    pitch = hertz(note)
    choir = mixed(*(tone(pitch * detune, length, saw) for detune in (0.996, 1.0, 1.0045)))
    return scaled(shaped(low_pass(choir, min(4200, pitch * 5)), swell(length, 0.18, 0.35)), 0.5)


def _synth(note: int, seconds: float) -> list[float]:
    length = count(seconds + 0.08)
    pitch = hertz(note)
    lead = mixed(tone(pitch, length, table(*_SAW)), tone(pitch * 1.006, length, table(*_SAW)))
    return scaled(shaped(low_pass(lead, 3200), decay(length, 0.4, 0.006)), 0.55)


def _flute(note: int, seconds: float) -> list[float]:
    length = count(seconds + 0.1)
    pitch = hertz(note)
    wobble = [pitch * (1 + 0.006 * value) for value in tone(5.1, length)]
    breath = scaled(low_pass(noise(random.Random(note), length), 2500), 0.12)  # noqa: S311 - makes no secret
    return shaped(mixed(sweep(wobble), breath), swell(length, 0.07, 0.1))


def _organ(note: int, seconds: float) -> list[float]:
    length = count(seconds + 0.05)
    return shaped(tone(hertz(note), length, table(*_REED)), swell(length, 0.02, 0.06))


def _bass(note: int, seconds: float) -> list[float]:
    length = count(seconds + 0.05)
    return shaped(tone(hertz(note), length, table(1.0, 0.5, 0.2, 0.08)), decay(length, 0.45, 0.006))


_PLAYERS: Mapping[str, Callable[[int, float], list[float]]] = {
    "piano": _piano,
    "guitar": _guitar,
    "strings": _strings,
    "synth": _synth,
    "flute": _flute,
    "organ": _organ,
    "bass": _bass,
}
INSTRUMENTS = tuple(_PLAYERS)


@cache
def play(instrument: str, note: int, seconds: float) -> array[float]:
    """The samples of a note; most notes of a piece are played more than once."""
    return array("f", _PLAYERS[instrument](note, seconds))


@cache
def drum(name: str) -> array[float]:
    """The samples of a `kick`, a `snare` or a `hat`."""
    rng = random.Random(name)  # noqa: S311 - makes no secret
    if name == "kick":
        length = count(0.28)
        return array("f", shaped(sweep(line(130, 42, length)), decay(length, 0.06)))
    if name == "snare":
        length = count(0.2)
        skin = scaled(tone(185, length), 0.5)
        return array("f", shaped(mixed(high_pass(noise(rng, length), 900), skin), decay(length, 0.035)))
    length = count(0.07)
    return array("f", shaped(high_pass(noise(rng, length), 6500), decay(length, 0.012)))


def forget_notes() -> None:
    """Free the memory of the notes of a piece."""
    play.cache_clear()
    decay.cache_clear()
    swell.cache_clear()
