"""Everything on the table can be drawn."""

from __future__ import annotations

import pytest

from penstock.atelier.renderers import landmarks, things, words
from penstock.atelier.renderers.canvas import dice

NAMES = sorted(set(words._lexicon(words._THINGS).values()))


def test_the_lexicon_and_the_drawings_agree() -> None:
    assert set(NAMES) == set(things.TABLE)


@pytest.mark.parametrize("name", [*NAMES, *sorted(landmarks.OUTDOORS), "saguaro"])
def test_a_thing_stands_on_its_lower_edge(name: str) -> None:
    sprite = things.sprite(name, 100, None, dice(2))
    box = sprite.getchannel("A").getbbox()
    assert sprite.size == (100, 100)
    assert box is not None
    assert box[3] >= 85 or name in landmarks.AIRBORNE


@pytest.mark.parametrize("name", NAMES)
def test_a_thing_takes_a_colour(name: str) -> None:
    assert things.sprite(name, 60, (20, 200, 60), dice(1)).tobytes() != things.sprite(name, 60, None, dice(1)).tobytes()
