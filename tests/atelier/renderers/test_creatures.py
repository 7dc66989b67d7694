"""Every creature of the lexicon can be drawn, and no two look the same."""

from __future__ import annotations

import hashlib

from penstock_atelier.renderers import creatures, words
from penstock_atelier.renderers.canvas import seeded_rng
from tests.atelier.drawings import check_each

NAMES = sorted(set(words._lexicon(words._CREATURES).values()))


def pixels(name: str, colour: tuple[int, int, int] | None = None) -> bytes:
    return creatures.draw_creature(name, 60, colour, seeded_rng(1)).tobytes()


def test_the_lexicon_and_the_drawings_agree() -> None:
    assert set(NAMES) == creatures.KNOWN


def test_creatures_fill_most_of_their_square() -> None:
    def check(name: str) -> None:
        sprite = creatures.draw_creature(name, 120, None, seeded_rng(1))
        assert sprite.size == (120, 120)
        box = sprite.getchannel("A").getbbox()
        assert box is not None
        assert box[2] - box[0] > 50
        assert box[3] - box[1] > 50

    check_each(NAMES, check)


def test_no_two_look_alike() -> None:
    assert len({hashlib.sha256(pixels(name)).digest() for name in NAMES}) == len(NAMES)


def test_creatures_take_a_colour() -> None:
    def check(name: str) -> None:
        assert (pixels(name, (220, 30, 160)) == pixels(name)) is False

    check_each(NAMES, check)
