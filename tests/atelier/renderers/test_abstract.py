"""Six kinds of abstract images."""

from __future__ import annotations

from itertools import product

from penstock_atelier.renderers import abstract, canvas, words
from penstock_atelier.renderers.canvas import seeded_rng
from penstock_atelier.renderers.palette import PALETTES
from tests.atelier.drawings import check_each

NAMES = sorted(abstract.COMPOSERS)


def test_the_lexicon_and_the_composers_agree() -> None:
    assert set(words._ABSTRACT_WORDS.values()) == set(NAMES)


def test_each_kind_covers_the_whole_image_with_many_colours() -> None:
    def check(case: tuple[str, str]) -> None:
        name, palette = case
        scene = abstract.compose(name, PALETTES[palette], (120, 90), seeded_rng(2))
        flat = canvas.flatten(scene)
        colours = flat.getcolors(120 * 90)
        assert colours is not None
        assert len(colours) > 20
        assert scene.layers[0].image.getchannel("A").getextrema() == (255, 255)

    check_each(product(NAMES, ("day", "night")), check)


def test_images_of_any_shape_can_be_composed() -> None:
    def check(case: tuple[str, tuple[int, int]]) -> None:
        name, size = case
        assert canvas.flatten(abstract.compose(name, PALETTES["day"], size, seeded_rng(2))).size == size

    check_each(product(NAMES, ((1, 1), (3, 200), (200, 3))), check)


def test_without_a_word_the_seed_chooses() -> None:
    def pixels(seed: int) -> bytes:
        return canvas.flatten(abstract.compose(None, PALETTES["day"], (30, 30), seeded_rng(seed))).tobytes()

    assert len({pixels(seed) for seed in range(8)}) == 8
