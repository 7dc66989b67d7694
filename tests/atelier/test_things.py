"""Each thing and each object of a landscape looks like itself, and like no other."""

from collections.abc import Callable

import pytest

from penstock_atelier.renderers import landmarks, things, words
from penstock_atelier.renderers.canvas import seeded_rng
from tests.atelier.drawings import check_each
from tests.atelier.seen import Shape, sprites

LOOKS: dict[str, Callable[[Shape], bool]] = {
    # On a table:
    "cup": lambda it: it.hole > 0.015 and 0.8 < it.ratio < 1 and it.top < 0.2 < 0.65 < it.middle,  # a handle, and steam
    "teapot": lambda it: it.hole > 0.015 and it.ratio > 1.4,  # a handle, and wide
    "lamp": lambda it: it.top > 0.45 > it.middle > it.foot and it.lopsided < 0.05,  # a shade, a stem, a foot
    "bottle": lambda it: it.ratio < 0.4 and it.middle > 0.85 > 0.4 > it.top,  # slim, with a neck
    "candle": lambda it: 0.5 < it.ratio < 0.65 and it.top < it.middle < 0.5 < it.foot,  # a flame, and a plate
    "book": lambda it: it.ratio > 1.7 and it.top > 0.85,  # a flat stack
    "bowl": lambda it: 1.02 < it.ratio < 1.3 and it.foot < 0.6,  # narrower at its foot
    "cake": lambda it: 1.02 < it.ratio < 1.3 and it.foot > 0.7 and it.top < 0.2,  # candles, and a plate
    "vase": lambda it: it.hole > 0.01 and it.middle < 0.55 and it.top > 0.22 and it.foot > 0.3,  # stems
    "pot": lambda it: 0.83 < it.ratio < 1.1 and it.middle > 0.7 and 0.25 < it.foot < 0.45,  # leaves
    "cactus": lambda it: 0.7 < it.ratio < 0.82 and 0.6 < it.middle < 0.8 and 0.25 < it.foot < 0.45,  # arms
    "apple": lambda it: 0.8 < it.ratio < 0.89 and it.middle > 0.93 > 0.7 > it.foot,
    "orange": lambda it: 0.89 < it.ratio < 1 and it.middle > 0.93 and it.colours["orange"] > 0.5,
    "lemon": lambda it: it.ratio > 1.7 and it.top < 0.6,
    "pear": lambda it: 0.5 < it.ratio < 0.65 and it.top < 0.3 and it.foot > 0.7,  # heavy below
    "cherry": lambda it: it.middle < 0.1 and it.foot > 0.5,  # two on thin stems
    # In a landscape:
    "boat": lambda it: 0.9 < it.ratio < 1.02 and it.top < 0.12 and it.foot > 0.7,  # a mast above a hull
    "house": lambda it: 0.9 < it.ratio < 1.02 and 0.25 < it.top < 0.45 and it.foot > 0.7,  # a roof
    "lighthouse": lambda it: it.ratio < 0.4 and it.top < it.middle < 0.85 < it.foot,  # slim, and wider below
    "castle": lambda it: it.ratio > 0.8 and it.top < 0.2 and it.middle > 0.85 and it.foot > 0.85,  # pointed towers
    "windmill": lambda it: 0.58 < it.ratio < 0.7 and it.lopsided > 0.07 and 0.5 < it.foot < 0.7,  # turned sails
    "tent": lambda it: 1.4 < it.ratio < 1.7 and it.top < it.middle < it.foot and it.foot > 0.8,  # a triangle
    "balloon": lambda it: it.ratio < 0.8 and it.top > 0.65 and it.foot < 0.2,  # a basket below
    "rocket": lambda it: 0.45 < it.ratio < 0.6 and it.lopsided < 0.03 and 0.25 < it.foot < 0.45,
    "plane": lambda it: 1.4 < it.ratio < 1.7 and it.lopsided > 0.2,  # seen from its side
    "kite": lambda it: 0.45 < it.ratio < 0.6 and it.foot < 0.12 < it.top,  # a tail
    "umbrella": lambda it: it.ratio > 0.8 and it.foot < 0.1 and 0.4 < it.middle < 0.7,  # a roof on a stick
    "oak": lambda it: it.ratio > 0.8 and it.top > 0.5 and it.middle > 0.8 and it.foot < 0.2,  # a crown on a trunk
    "palm": lambda it: it.middle < 0.1 and it.foot < 0.1,  # fronds on a thin trunk
}


def draw(name: str, seed: int, colour: tuple[int, int, int] | None = None) -> Shape:
    return Shape(things.draw_thing(name, 100, colour, seeded_rng(seed)))


def seen_as(shape: Shape) -> list[str]:
    return [name for name, looks in LOOKS.items() if looks(shape)]


def test_every_thing_that_has_a_word_is_described_here() -> None:
    named = {*words._lexicon(words._THINGS).values(), *words._lexicon(words._PLACED).values()}
    assert named == LOOKS.keys()
    assert named == things.TABLE.keys() | landmarks.OUTDOORS.keys()


def test_each_looks_like_itself_and_like_no_other() -> None:
    def check(name: str) -> None:
        for seed in range(2):
            assert seen_as(draw(name, seed)) == [name]

    check_each(LOOKS, check)


def test_each_takes_the_colour_it_is_given() -> None:
    def check(name: str) -> None:
        purple, green = (draw(name, 1, colour).colours for colour in ((130, 40, 170), (20, 170, 60)))
        assert purple["purple"] > green["purple"] + 0.05
        assert green["green"] > purple["green"] + 0.05

    check_each(LOOKS, check)


def test_things_stand_on_their_lower_edge() -> None:
    def check(name: str) -> None:
        sprite = things.draw_thing(name, 100, None, seeded_rng(2))
        box = sprite.getchannel("A").getbbox()
        assert sprite.size == (100, 100)
        assert box is not None
        assert box[3] >= 85 or name in landmarks.AIRBORNE

    check_each([*LOOKS, "saguaro"], check)


WORDS = {**words._lexicon(words._THINGS), **words._lexicon(words._PLACED)}


def test_a_word_brings_its_thing_into_the_image() -> None:
    def check(name: str) -> None:
        word = next(word for word, meant in WORDS.items() if meant == name and word != "orange")  # that is a colour
        assert [each for shape in sprites(f"a {word}") for each in seen_as(shape)].count(name) == 1

    check_each(LOOKS, check)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_as_many_are_drawn_as_the_prompt_says(count: int) -> None:
    def check(name: str) -> None:
        assert [each for shape in sprites(f"{count} {name}s") for each in seen_as(shape)].count(name) == count

    check_each(["cup", "lamp", "boat", "balloon", "candle"], check)
