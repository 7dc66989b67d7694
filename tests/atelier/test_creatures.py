"""Each creature looks like itself, and like no other."""

from collections.abc import Callable

import pytest

from penstock_atelier.renderers import creatures, words
from penstock_atelier.renderers.canvas import seeded_rng
from tests.atelier.drawings import check_each
from tests.atelier.seen import Shape, sprites


def is_head(it: Shape, *named: str) -> bool:
    """A head and shoulders, seen from the front, of which these are the main colours."""
    return 0.6 < it.ratio < 1.05 and it.lopsided < 0.06 and sum(it.colours[name] for name in named) > 0.7


LOOKS: dict[str, Callable[[Shape], bool]] = {
    "fox": lambda it: (
        is_head(it, "orange", "red", "white") and it.colours["white"] > 0.25 and 0.4 < it.top < 0.6 < it.middle
    ),
    "tiger": lambda it: (
        is_head(it, "orange", "white", "brown") and it.top > 0.65 and it.middle < 0.7 and it.colours["orange"] > 0.5
    ),
    "lion": lambda it: is_head(it, "orange", "brown") and it.middle > 0.85 and it.ratio > 0.75,  # a mane
    "wolf": lambda it: is_head(it, "grey", "white") and 0.4 < it.top < 0.65 and it.middle > 0.76,  # cheeks
    "cat": lambda it: is_head(it, "grey", "white") and it.colours["green"] > 0.003,  # green eyes
    "mouse": lambda it: is_head(it, "grey", "white") and it.top > 0.65 and it.colours["black"] < 0.02,
    "koala": lambda it: is_head(it, "grey", "white") and 0.02 < it.colours["black"] < 0.1,  # a large nose
    "panda": lambda it: is_head(it, "white", "black") and it.colours["black"] > 0.4 and it.top > 0.7,
    "penguin": lambda it: is_head(it, "white", "black", "blue") and it.foot < 0.65,  # thin legs
    "astronaut": lambda it: is_head(it, "white", "black") and it.middle < 0.7 and 0.1 < it.colours["black"] < 0.3,
    "cow": lambda it: is_head(it, "white", "red") and it.colours["white"] > 0.4 and it.colours["red"] > 0.2,
    "pig": lambda it: is_head(it, "red") and it.colours["red"] > 0.9,  # pale red: pink
    "bear": lambda it: (
        is_head(it, "brown", "orange") and it.top > 0.65 and it.colours["brown"] > 0.5 and it.middle > 0.645
    ),
    "otter": lambda it: (
        is_head(it, "brown", "orange") and it.top > 0.65 and it.colours["brown"] > 0.5 and it.middle < 0.645
    ),
    "monkey": lambda it: is_head(it, "brown", "orange") and it.ratio > 0.95,  # ears at its sides
    "dog": lambda it: is_head(it, "orange", "white", "brown") and it.top > 0.65 and it.middle > 0.7,
    "deer": lambda it: is_head(it, "brown", "orange") and it.top < 0.2 and it.middle < 0.75,  # antlers
    "rabbit": lambda it: is_head(it, "orange", "white", "grey") and 0.2 < it.top < 0.4 and it.ratio < 0.7,  # long ears
    "owl": lambda it: is_head(it, "brown", "orange") and it.middle > 0.9 and it.ratio < 0.75,
    "robot": lambda it: it.ratio < 0.7 and it.top < 0.2 and it.middle > 0.75,  # an antenna
    "person": lambda it: 0.82 < it.ratio < 0.87 and 0.4 < it.top < 0.55 and it.middle < 0.7 > it.colours["white"] + 0.3,
    "bird": lambda it: 1.1 < it.ratio < 1.3 and it.lopsided > 0.2,  # seen from its side
    "butterfly": lambda it: it.ratio > 1.05 and it.lopsided < 0.06,
    "fish": lambda it: it.ratio > 1.3 and it.top > 0.15 and it.middle > 0.85,
    "whale": lambda it: it.ratio > 1.3 and it.top < 0.15 and it.colours["blue"] > 0.5,  # a spout
}


def draw(name: str, seed: int, colour: tuple[int, int, int] | None = None) -> Shape:
    return Shape(creatures.draw_creature(name, 120, colour, seeded_rng(seed)))


def seen_as(shape: Shape) -> list[str]:
    return [name for name, looks in LOOKS.items() if looks(shape)]


def test_every_creature_that_has_a_word_is_described_here() -> None:
    assert set(words._lexicon(words._CREATURES).values()) == LOOKS.keys() == creatures.KNOWN


def test_each_looks_like_itself_and_like_no_other() -> None:
    def check(name: str) -> None:
        for seed in range(2):
            assert seen_as(draw(name, seed)) == [name]

    check_each(LOOKS, check)


def test_each_takes_the_colour_it_is_given() -> None:
    def check(name: str) -> None:
        purple, green = (draw(name, 1, colour).colours for colour in ((130, 40, 170), (20, 170, 60)))
        assert purple["purple"] > green["purple"] + 0.1
        assert green["green"] > purple["green"] + 0.1

    check_each(LOOKS, check)


def test_creatures_fill_most_of_their_square() -> None:
    def check(name: str) -> None:
        shape = draw(name, 1)
        assert shape.sprite.size == (120, 120)
        assert min(shape.outline.size) > 50

    check_each(LOOKS, check)


@pytest.mark.parametrize("count", [1, 3])
def test_a_word_brings_as_many_into_the_image_as_the_prompt_says(count: int) -> None:
    def check(name: str) -> None:
        found = [each for shape in sprites(f"{count} {name}") for each in seen_as(shape)]
        assert found.count(name) == count

    check_each(LOOKS, check)
