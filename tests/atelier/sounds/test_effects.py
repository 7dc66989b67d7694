"""Effects are heard where their things are loud: thunder low, birds high, footsteps in steps."""

import pytest

from penstock_atelier.sounds.effects import WORDS
from tests.atelier.sounds import hearing
from tests.many_cases import many_cases

# Where most of the energy of a sound is, in hertz, and how much of it at least.
PLACES = {
    "rain": (2000, 22000, 0.8),
    "wind": (80, 1000, 0.8),
    "thunder": (20, 300, 0.5),
    "birds": (1800, 6500, 0.9),
    "crickets": (4000, 4800, 0.9),
    "bees": (150, 700, 0.8),
    "heartbeat": (20, 120, 0.9),
    "siren": (550, 1250, 0.8),
    "alarm": (1900, 2200, 0.6),
    "engine": (30, 600, 0.8),
    "bell": (200, 1600, 0.9),
    "beep": (850, 910, 0.9),
    "whistle": (1400, 2000, 0.9),
}


@pytest.mark.parametrize("word", list(PLACES))
def test_a_sound_is_loud_where_its_thing_is(word: str) -> None:
    low, high, least = PLACES[word]
    data = hearing.sound(word, 3.0)
    levels = hearing.loudness(data)
    loudest = levels.index(max(levels[:250])) / 100
    assert hearing.share(data, low, high, max(0, loudest - 0.05)) > least


def test_every_word_makes_a_sound_that_is_heard() -> None:
    with many_cases() as cases:
        for effect in dict.fromkeys(WORDS.values()):
            word = next(word for word, made in WORDS.items() if made is effect)
            with cases.case(word):
                assert max(hearing.loudness(hearing.sound(word, 0.5), 0.05)) > 10_000


def test_several_words_are_heard_together() -> None:
    both = hearing.sound("a beep in the rain", 2.0)
    assert hearing.share(both, 850, 910, 0.2) > 0.1
    assert hearing.share(both, 2000, 22000, 0.7) > 0.8, "between the beeps it rains"


def test_steps_are_heard_one_after_the_other() -> None:
    levels = hearing.loudness(hearing.sound("footsteps", 3.0))
    loud = [level > 0.3 * max(levels) for level in levels]
    begins = [at for at in range(1, len(loud)) if loud[at] and not any(loud[max(0, at - 20) : at])]
    assert len(begins) in (4, 5, 6)


def test_both_sides_of_rain_differ() -> None:
    left, right = hearing.sides(hearing.sound("rain", 1.0))
    assert left != right
