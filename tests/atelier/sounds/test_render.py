"""Files of effects and music: their form, their length, and that the same words make the same file."""

from itertools import pairwise

import pytest

from penstock_atelier.sounds.waves import RATE
from tests.atelier.sounds import hearing


@pytest.mark.parametrize("seconds", [0.5, 3.25])
def test_a_file_is_as_long_as_it_was_asked_for(seconds: float) -> None:
    for data in (hearing.sound("rain", seconds), hearing.music("calm", seconds)):
        left, right = hearing.sides(data)
        assert len(left) == len(right) == round(seconds * RATE)


def test_the_same_words_and_seed_make_the_same_file() -> None:
    assert hearing.sound.__wrapped__("a bell", 1.0, 7) == hearing.sound.__wrapped__("A  Bell", 1.0, 7)
    assert hearing.music.__wrapped__("happy", 1.0, 7) == hearing.music.__wrapped__("happy", 1.0, 7)
    assert hearing.music("happy", 1.0, 7) != hearing.music("happy", 1.0, 8)
    assert hearing.sound("rain", 1.0, 7) != hearing.sound("rain", 1.0, 8)


@pytest.mark.parametrize("hertz", [440, 5000])
def test_a_tone_has_the_frequency_that_is_named(hertz: int) -> None:
    assert hearing.loudest(hearing.sound(f"a test tone of {hertz} Hz")) == pytest.approx(hertz, abs=6)


def test_a_loop_ends_where_it_begins() -> None:
    left, _ = hearing.sides(hearing.sound("waves at a beach", 2.0, loop=True))
    assert len(left) == 2 * RATE
    usual = max(abs(a - b) for a, b in pairwise(left))
    assert abs(left[-1] - left[0]) <= usual, "no click where it is repeated"
    ends = hearing.loudness(hearing.sound("waves at a beach", 2.0, loop=True))
    assert min(ends[0], ends[-1]) > 0.2 * max(ends), "it is not faded, as a sound that ends is"
    once = hearing.loudness(hearing.sound("waves at a beach", 2.0))
    assert once[-1] < 0.1 * max(once)


def test_words_that_are_not_known_make_a_sound_all_the_same() -> None:
    assert max(hearing.loudness(hearing.sound("qwertz uiop"))) > 10_000
