"""Every object of a landscape that the lexicon has can be drawn."""

from __future__ import annotations

from penstock_atelier.renderers import landmarks, words
from penstock_atelier.renderers.canvas import seeded_rng
from penstock_atelier.renderers.pen import Pen
from tests.atelier.drawings import check_each

NAMES = sorted(set(words._lexicon(words._PLACED).values()))


def test_the_lexicon_and_the_drawings_agree() -> None:
    assert set(NAMES) == set(landmarks.OUTDOORS)
    assert set(landmarks.OUTDOORS) >= landmarks.AIRBORNE


def test_landmarks_take_a_colour() -> None:
    def pixels(name: str, colour: tuple[int, int, int] | None) -> bytes:
        pen = Pen(60)
        landmarks.OUTDOORS[name](pen, colour, seeded_rng(1))
        return pen.render().tobytes()

    def check(name: str) -> None:
        assert (pixels(name, (20, 200, 60)) == pixels(name, None)) is False

    check_each(NAMES, check)
