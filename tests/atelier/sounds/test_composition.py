"""Music has the key, the tempo and the instruments that its prompt names."""

import math
import random
from itertools import pairwise

import pytest

from penstock_atelier.sounds.composition import PATTERNS, STYLES, pitch_of, root_of, style_of
from penstock_atelier.sounds.instruments import INSTRUMENTS, hertz
from penstock_atelier.sounds.waves import RATE
from tests.atelier.sounds import hearing


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("a calm piece", ("major", 72, "piano", "none")),
        ("techno at 140 bpm", ("minor", 140, "synth", "dance")),
        ("happy music with flute", ("major", 124, "flute", "pop")),
        ("happy, no drums", ("major", 124, "piano", "none")),
        ("a happy tune in D minor", ("minor", 124, "piano", "pop")),
        ("slow jazz", ("major", 112 * 0.8, "piano", "soft")),
        ("no word that is known", ("major", 100, "piano", "soft")),
    ],
)
def test_words_decide_the_style(prompt: str, found: tuple[object, ...]) -> None:
    style = style_of(prompt)
    assert (style.scale, style.beats_per_minute, style.lead, style.drums) == found


@pytest.mark.parametrize(
    ("key", "note"), [("C major", 48), ("a minor", 57), ("F# minor", 54), ("B flat major", 58), ("Cb major", 59)]
)
def test_a_key_is_read(key: str, note: int) -> None:
    assert root_of(f"music in {key}", random.Random(1)) == note


def test_degrees_go_on_beyond_the_octave() -> None:
    assert [pitch_of("major", degree) for degree in (-1, 0, 2, 7, 9)] == [-1, 0, 4, 12, 16]


@pytest.mark.parametrize("key", ["C major", "E minor"])
def test_the_notes_that_are_heard_are_those_of_the_key(key: str) -> None:
    data = hearing.music(f"a church organ in {key}, no drums", 6.0)
    scale = (0, 2, 4, 5, 7, 9, 11) if "major" in key else (0, 2, 3, 5, 7, 8, 10)
    tonic = root_of(f"in {key}", random.Random(1))
    heard = [0.0] * 12
    step = RATE / hearing.SIZE
    for at in range(1, 5):
        found = hearing.spectrum(data, at)
        for note in range(76, 96):
            place = round(hertz(note) / step)
            heard[(note - tonic) % 12] += max(found[place - 1 : place + 2])
    inside = sum(heard[step] for step in scale) / len(scale)
    outside = sum(level for step, level in enumerate(heard) if step not in scale) / (12 - len(scale))
    assert inside > 3 * outside


@pytest.mark.parametrize("tempo", [120])
def test_the_beat_is_heard_in_its_tempo(tempo: int) -> None:
    levels = hearing.loudness(hearing.music(f"techno, {tempo} bpm", 8.0))
    rises = [max(0.0, after - before) for before, after in pairwise(levels)]

    def together(pause: float) -> float:
        lag = pause * 100
        return sum(rises[at] * max(rises[round(at + lag) - 1 : round(at + lag) + 2]) for at in range(len(rises) - 200))

    beat = 60 / tempo
    others = [beat * factor for factor in (0.8, 0.87, 1.15, 1.28)]
    assert together(beat) > 1.5 * max(map(together, others))


def test_a_piece_ends_softly() -> None:
    levels = hearing.loudness(hearing.music("rock", 6.0))
    assert levels[-2] < 0.1 * max(levels)
    assert math.isclose(len(levels), 600, abs_tol=2)


def test_every_style_can_be_played() -> None:
    for style in STYLES.values():
        assert {style.lead, style.chords} <= set(INSTRUMENTS)
        assert style.drums == "none" or style.drums in PATTERNS
