"""Every thing of the lexicon can be drawn."""

from __future__ import annotations

from penstock_atelier.renderers import landmarks, things, words
from penstock_atelier.renderers.canvas import seeded_rng
from tests.atelier.drawings import check_each

NAMES = sorted(set(words._lexicon(words._THINGS).values()))


def test_the_lexicon_and_the_drawings_agree() -> None:
    assert set(NAMES) == set(things.TABLE)


def test_things_stand_on_their_lower_edge() -> None:
    def check(name: str) -> None:
        sprite = things.draw_thing(name, 100, None, seeded_rng(2))
        box = sprite.getchannel("A").getbbox()
        assert sprite.size == (100, 100)
        assert box is not None
        assert box[3] >= 85 or name in landmarks.AIRBORNE

    check_each([*NAMES, *sorted(landmarks.OUTDOORS), "saguaro"], check)


def test_things_take_a_colour() -> None:
    def pixels(name: str, colour: tuple[int, int, int] | None) -> bytes:
        return things.draw_thing(name, 60, colour, seeded_rng(1)).tobytes()

    def check(name: str) -> None:
        assert (pixels(name, (20, 200, 60)) == pixels(name, None)) is False

    check_each(NAMES, check)
