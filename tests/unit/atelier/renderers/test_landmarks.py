"""Everything that stands in a landscape can be drawn."""

from __future__ import annotations

import pytest

from penstock.atelier.renderers import landmarks, words
from penstock.atelier.renderers.canvas import dice
from penstock.atelier.renderers.pen import Pen

NAMES = sorted(set(words._lexicon(words._PLACED).values()))


def test_the_lexicon_and_the_drawings_agree() -> None:
    assert set(NAMES) == set(landmarks.OUTDOORS)
    assert set(landmarks.OUTDOORS) >= landmarks.AIRBORNE


@pytest.mark.parametrize("name", NAMES)
def test_a_landmark_takes_a_colour(name: str) -> None:
    def drawn(colour: tuple[int, int, int] | None) -> bytes:
        pen = Pen(60)
        landmarks.OUTDOORS[name](pen, colour, dice(1))
        return pen.done().tobytes()

    assert drawn((20, 200, 60)) != drawn(None)
