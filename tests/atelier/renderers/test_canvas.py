"""Gradients, noise, masks and layers have the right size and values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from PIL import Image

from penstock_atelier.renderers import canvas
from penstock_atelier.renderers.canvas import Layer, Scene

sizes = some.tuples(some.integers(1, 90), some.integers(1, 90))


def test_the_same_words_give_the_same_random_numbers() -> None:
    assert canvas.seeded_rng("a", 1).random() == canvas.seeded_rng("a", 1).random()
    assert canvas.seeded_rng("a", 1).random() != canvas.seeded_rng("a", 2).random()
    assert canvas.seeded_rng("a1", "").random() != canvas.seeded_rng("a", "1").random()
    canvas.seeded_rng("\ud800", 1)  # half a surrogate pair, as JSON may carry


@settings(max_examples=40)
@given(sizes, some.floats(0.5, 200), some.integers(1, 5), some.booleans())
def test_noise_has_the_asked_size(size: tuple[int, int], cell: float, octaves: int, tiled: bool) -> None:
    assert canvas.noise(canvas.seeded_rng(1), size, (cell, cell), octaves, tiled=tiled).size == size


def test_tiled_noise_meets_itself() -> None:
    noise = canvas.noise(canvas.seeded_rng(4), (240, 60), (60, 60), 2, tiled=True)
    left, right = noise.crop((0, 0, 1, 60)).tobytes(), noise.crop((239, 0, 240, 60)).tobytes()
    assert max(abs(a - b) for a, b in zip(left, right, strict=True)) < 16


def test_gradients_run_from_the_first_to_the_last_colour() -> None:
    gradient = canvas.gradient(((255, 0, 0), (0, 0, 255)), (3, 300))
    assert gradient.getpixel((1, 0)) == (255, 0, 0)
    assert gradient.getpixel((2, 299)) == (0, 0, 255)


def test_halos_end_at_their_edge() -> None:
    halo = canvas.halo(64)
    assert halo.getpixel((0, 0)) == 0
    assert halo.getpixel((0, 32)) == 0
    assert halo.tobytes()[32 * 64 + 32] > 240


@pytest.mark.parametrize(("left", "top"), [(0, 0), (-5, -5), (7, 7), (-50, 3), (50, 50)])
def test_layers_may_be_partly_outside(left: int, top: int) -> None:
    ground = Layer(Image.new("RGBA", (10, 10), "white"))
    spot = Layer(Image.new("RGBA", (6, 6), "black"), left, top)
    flat = canvas.flatten(Scene(10, 10, (ground, spot)))
    dark = sum(1 for value in flat.convert("L").tobytes() if value == 0)
    across, down = (max(0, min(10, start + 6) - max(0, start)) for start in (left, top))
    assert dark == across * down


def test_silhouettes_have_smooth_edges() -> None:
    mask = canvas.silhouette([(0, 0), (20, 0), (0, 20)], (20, 20))
    assert len(set(mask.tobytes())) > 2


def test_a_cut_layer_keeps_only_what_shows() -> None:
    mask = Image.new("L", (20, 20))
    mask.paste(255, (5, 6, 9, 12))
    layer = canvas.cut_layer(mask, (1, 2, 3))
    assert (layer.left, layer.top, layer.image.size) == (5, 6, (4, 6))


def test_shading_changes_no_outline() -> None:
    sprite = Image.new("RGBA", (60, 60))
    sprite.paste((90, 120, 200, 255), (10, 10, 50, 60))
    shaded = canvas.add_shading(sprite, 0.35)
    assert shaded.getchannel("A").tobytes() == sprite.getchannel("A").tobytes()
    assert shaded.tobytes() != sprite.tobytes()


def test_lines_of_heights_stay_between_0_and_1() -> None:
    for line in (canvas.ridge_line(canvas.seeded_rng(2), 100, 0.6), canvas.hill_line(canvas.seeded_rng(2), 100, 1.4)):
        assert min(line) == 0
        assert max(line) == 1
