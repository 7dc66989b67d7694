"""Everybody in the lexicon can be drawn, and is somebody else than the others."""

from __future__ import annotations

import hashlib

import pytest

from penstock.atelier.renderers import creatures, words
from penstock.atelier.renderers.canvas import dice

NAMES = sorted(set(words._lexicon(words._CREATURES).values()))


def test_the_lexicon_and_the_drawings_agree() -> None:
    assert set(NAMES) == creatures.KNOWN


@pytest.mark.parametrize("name", NAMES)
def test_a_portrait_fills_its_square_and_stands_below(name: str) -> None:
    sprite = creatures.portrait(name, 120, None, dice(1))
    assert sprite.size == (120, 120)
    box = sprite.getchannel("A").getbbox()
    assert box is not None
    assert box[2] - box[0] > 50
    assert box[3] - box[1] > 50


def test_no_two_look_alike() -> None:
    digests = {hashlib.sha256(creatures.portrait(name, 60, None, dice(1)).tobytes()).digest() for name in NAMES}
    assert len(digests) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_colour_can_be_asked_for(name: str) -> None:
    plain = creatures.portrait(name, 60, None, dice(1))
    assert creatures.portrait(name, 60, (220, 30, 160), dice(1)).tobytes() != plain.tobytes()
