"""Six ways of painting nothing in particular."""

from __future__ import annotations

import pytest

from penstock.atelier.renderers import abstract, canvas, words
from penstock.atelier.renderers.canvas import dice
from penstock.atelier.renderers.palette import PALETTES

NAMES = sorted(abstract.COMPOSERS)


def test_the_lexicon_and_the_composers_agree() -> None:
    assert set(words._ABSTRACT_WORDS.values()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("palette", ["day", "night"])
def test_each_covers_the_whole_picture_with_many_colours(name: str, palette: str) -> None:
    scene = abstract.compose(name, PALETTES[palette], (120, 90), dice(2))
    flat = canvas.flatten(scene)
    colours = flat.getcolors(120 * 90)
    assert colours is not None
    assert len(colours) > 20
    assert scene.layers[0].image.getchannel("A").getextrema() == (255, 255)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [(1, 1), (3, 200), (200, 3)])
def test_no_shape_is_too_odd(name: str, size: tuple[int, int]) -> None:
    assert canvas.flatten(abstract.compose(name, PALETTES["day"], size, dice(2))).size == size


def test_without_a_word_the_seed_chooses() -> None:
    chosen = {canvas.flatten(abstract.compose(None, PALETTES["day"], (30, 30), dice(n))).tobytes() for n in range(8)}
    assert len(chosen) == 8
