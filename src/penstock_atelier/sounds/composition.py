"""Compose a piece of music: the words of a prompt decide the key, the tempo, the mood and the instruments."""

import math
import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock_atelier.sounds.instruments import INSTRUMENTS, drum, forget_notes, play
from penstock_atelier.sounds.waves import Track

_KEY = re.compile(r"\bin ([A-G])(#|b| sharp| flat)? ?(major|minor)\b", re.IGNORECASE)
_TEMPO = re.compile(r"\b(\d{2,3}) ?bpm\b", re.IGNORECASE)
_LETTERS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_SCALES = {"major": (0, 2, 4, 5, 7, 9, 11), "minor": (0, 2, 3, 5, 7, 8, 10)}
_PROGRESSIONS = {
    "major": ((0, 4, 5, 3), (0, 5, 3, 4), (0, 3, 0, 4), (5, 3, 0, 4)),
    "minor": ((0, 5, 2, 6), (0, 3, 5, 4), (0, 6, 5, 6), (0, 2, 5, 4)),
}
_BEATS = 4  # of a bar
_FORM = "AABA"  # each letter is two bars of the melody
_END_SECONDS = 1.5


class Style(NamedTuple):
    """How a piece is to sound."""

    scale: str
    beats_per_minute: float
    lead: str
    chords: str
    drums: str  # `none`, `soft`, `pop` or `dance`
    busy: float = 0.5  # how many notes the melody has


# The first that a prompt names decides.
STYLES = {
    "techno": Style("minor", 128, "synth", "synth", "dance", 0.7),
    "dance": Style("minor", 124, "synth", "strings", "dance", 0.7),
    "house": Style("minor", 124, "piano", "synth", "dance", 0.6),
    "electronic": Style("minor", 118, "synth", "synth", "dance", 0.6),
    "lofi": Style("major", 76, "piano", "piano", "soft", 0.4),
    "lo-fi": Style("major", 76, "piano", "piano", "soft", 0.4),
    "ambient": Style("major", 64, "flute", "strings", "none", 0.2),
    "calm": Style("major", 72, "piano", "strings", "none", 0.35),
    "relaxing": Style("major", 68, "guitar", "strings", "none", 0.35),
    "peaceful": Style("major", 70, "flute", "strings", "none", 0.35),
    "sleep": Style("major", 58, "piano", "strings", "none", 0.2),
    "sad": Style("minor", 72, "piano", "strings", "none", 0.4),
    "melancholic": Style("minor", 74, "piano", "strings", "none", 0.4),
    "dark": Style("minor", 80, "strings", "strings", "soft", 0.35),
    "epic": Style("minor", 96, "strings", "strings", "pop", 0.5),
    "cinematic": Style("minor", 88, "strings", "strings", "soft", 0.45),
    "rock": Style("minor", 132, "guitar", "guitar", "pop", 0.7),
    "folk": Style("major", 104, "guitar", "guitar", "soft", 0.6),
    "jazz": Style("major", 112, "piano", "piano", "soft", 0.7),
    "waltz": Style("major", 120, "piano", "strings", "none", 0.5),
    "church": Style("major", 76, "organ", "organ", "none", 0.4),
    "happy": Style("major", 124, "piano", "guitar", "pop", 0.7),
    "upbeat": Style("major", 126, "synth", "guitar", "pop", 0.7),
    "cheerful": Style("major", 120, "flute", "guitar", "pop", 0.7),
    "funny": Style("major", 116, "flute", "piano", "soft", 0.8),
}
# The drums of a bar: what is struck, on which beats, and how hard.
PATTERNS = {
    "soft": (("kick", (0, 2.5), 0.6), ("snare", (1, 3), 0.25), ("hat", (0, 1, 2, 3), 0.12)),
    "pop": (("kick", (0, 2, 2.5), 0.9), ("snare", (1, 3), 0.5), ("hat", (0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5), 0.18)),
    "dance": (("kick", (0, 1, 2, 3), 1.0), ("snare", (1, 3), 0.35), ("hat", (0.5, 1.5, 2.5, 3.5), 0.3)),
}
_PLAIN = Style("major", 100, "piano", "strings", "soft")


def style_of(prompt: str) -> Style:
    """The style that the words of a prompt ask for."""
    words = re.findall(r"[a-z]+(?:-[a-z]+)?", prompt.lower())
    style = next((STYLES[word] for word in words if word in STYLES), _PLAIN)
    leads = [word for word in words if word in INSTRUMENTS and word != "bass"]
    if leads:
        style = style._replace(lead=leads[0], chords=leads[-1] if len(leads) > 1 else style.chords)
    if "no drums" in prompt.lower() or "without drums" in prompt.lower():
        style = style._replace(drums="none")
    elif style.drums == "none" and "drums" in words:
        style = style._replace(drums="soft")
    pace = 1.2 if "fast" in words else 0.8 if "slow" in words else 1.0
    style = style._replace(beats_per_minute=style.beats_per_minute * pace)
    if found := _TEMPO.search(prompt):
        style = style._replace(beats_per_minute=min(max(float(found[1]), 40), 220))
    if found := _KEY.search(prompt):
        style = style._replace(scale=found[3].lower())
    return style


def root_of(prompt: str, rng: random.Random) -> int:
    """The tonic, as MIDI counts notes, below the middle C."""
    found = _KEY.search(prompt)
    if not found:
        return 48 + rng.choice((0, 2, 4, 5, 7, 9))
    sign = (found[2] or "").strip().lower()
    return 48 + (_LETTERS[found[1].upper()] + {"#": 1, "sharp": 1, "b": -1, "flat": -1}.get(sign, 0)) % 12


class Note(NamedTuple):
    """A note of the melody: when it begins and how long it lasts, in beats, and a degree of the scale."""

    at: float
    beats: float
    degree: int


def compose(prompt: str, rng: random.Random, seconds: float) -> Track:
    """A piece of this length, which ends with its tonic."""
    style = style_of(prompt)
    root = root_of(prompt, rng)
    beat = 60 / style.beats_per_minute
    bars = max(1, math.ceil(seconds / (beat * _BEATS)))
    progression = rng.choice(_PROGRESSIONS[style.scale])
    melodies = {letter: _melody(rng, style, progression) for letter in sorted(set(_FORM))}
    track = Track(seconds)
    for bar in range(bars):
        is_last = bar == bars - 1
        start = bar * _BEATS * beat
        degree = 0 if is_last else progression[bar % len(progression)]
        _accompany(track, style, root, degree, start, beat)
        _strike(track, style, start, beat, is_fill=bar % 8 == 7)
        letter = _FORM[bar // 2 % len(_FORM)]
        for note in [Note(0, _BEATS, 0)] if is_last else melodies[letter][bar % 2]:
            pitch = root + 24 + pitch_of(style.scale, note.degree)
            sound = play(style.lead, pitch, round(note.beats * beat, 3))
            track.add(start + note.at * beat, sound, 0.5, 0.15)
    track.fade(0.01, min(_END_SECONDS, seconds / 3))
    forget_notes()
    return track


def pitch_of(scale: str, degree: int) -> int:
    """The semitones above the tonic of a degree of the scale; degrees may be negative, or more than an octave."""
    octave, step = divmod(degree, 7)
    return 12 * octave + _SCALES[scale][step]


def _melody(rng: random.Random, style: Style, progression: Sequence[int]) -> tuple[list[Note], list[Note]]:
    """Two bars: the second answers the first, with the same rhythm."""
    rhythm = list(_rhythm(rng, style.busy))
    degree = rng.choice((0, 2, 4))
    bars: list[list[Note]] = []
    for bar in range(2):
        notes = []
        for at, beats in rhythm:
            if at in (0, 2):  # strong beats take a note of the chord
                near = [chord + octave for chord in _chord(progression[bar]) for octave in (-7, 0, 7)]
                degree = min(near, key=lambda each: (abs(each - degree), each))
            else:
                degree += rng.choice((-2, -1, -1, 1, 1, 2))
            degree = min(max(degree, -3), 9)
            notes.append(Note(at, beats, degree))
        bars.append(notes)
    return bars[0], bars[1]


def _rhythm(rng: random.Random, busy: float) -> Iterator[tuple[float, float]]:
    at = 0.0
    while at < _BEATS:
        longest = _BEATS - at
        beats = min(longest, rng.choice((0.5, 0.5, 1.0)) if rng.random() < busy else rng.choice((1.0, 2.0)))
        yield at, beats
        at += beats


def _chord(degree: int) -> tuple[int, int, int]:
    return degree % 7, (degree + 2) % 7, (degree + 4) % 7


def _accompany(track: Track, style: Style, root: int, degree: int, start: float, beat: float) -> None:
    """The chord and the bass of one bar."""
    is_held = style.chords in ("strings", "organ")
    for number, step in enumerate(_chord(degree)):
        pitch = root + 12 + pitch_of(style.scale, step)
        for at in (0,) if is_held else (0, 1, 2, 3) if style.chords == "guitar" else (0, 2):
            length = round(beat * (_BEATS if is_held else 2), 3)
            stagger = 0.02 * number if style.chords == "guitar" else 0.0
            track.add(start + at * beat + stagger, play(style.chords, pitch, length), 0.2, -0.3 + 0.3 * number)
    low = root - 12 + pitch_of(style.scale, degree % 7)
    for at in (0, 1, 2, 3) if style.drums in ("pop", "dance") else (0, 2):
        track.add(start + at * beat, play("bass", low, round(beat * 0.9, 3)), 0.5)


def _strike(track: Track, style: Style, start: float, beat: float, *, is_fill: bool) -> None:
    """The drums of one bar."""
    if style.drums == "none":
        return
    for name, beats, level in PATTERNS[style.drums]:
        for at in beats:
            track.add(start + at * beat, drum(name), level, 0.25 if name == "hat" else 0.0)
    if is_fill:
        for at in (3.25, 3.5, 3.75):
            track.add(start + at * beat, drum("snare"), 0.3)
