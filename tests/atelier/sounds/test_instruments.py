"""Instruments play the note that they are told to."""

import pytest

from penstock_atelier.sounds.instruments import INSTRUMENTS, drum, hertz, play
from penstock_atelier.sounds.waves import RATE
from tests.atelier.sounds.hearing import SIZE, spectrum_of


def heard(instrument: str, note: int) -> int:
    """Which of the notes around it a note sounds like: that at whose first overtones it is loudest."""
    found = spectrum_of(play(instrument, note, 0.5)[2000 : 2000 + SIZE])

    def level(candidate: int) -> float:
        places = [hertz(candidate) * overtone * SIZE / RATE for overtone in (1, 2, 3)]
        return sum(found[round(place)] for place in places)

    return max(range(note - 7, note + 8), key=level)


@pytest.mark.parametrize("instrument", INSTRUMENTS)
def test_an_instrument_plays_the_note(instrument: str) -> None:
    assert heard(instrument, 64) == 64
    assert heard(instrument, 71) == 71


def test_the_a_above_the_middle_c_has_440_hertz() -> None:
    assert hertz(69) == 440
    assert hertz(57) == pytest.approx(220)


@pytest.mark.parametrize("name", ["kick", "snare", "hat"])
def test_drums_are_loud_at_once_and_then_silent(name: str) -> None:
    samples = drum(name)
    size = len(samples) // 4
    assert max(map(abs, samples[:size])) > 10 * max(map(abs, samples[-size // 4 :]))
