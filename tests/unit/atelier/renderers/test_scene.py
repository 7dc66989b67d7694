"""The words choose the kind of picture."""

from __future__ import annotations

import pytest

from penstock.atelier.renderers import canvas, scene

SIZE = (96, 72)


def flat(prompt: str, seed: int = 1, negative: str = "") -> bytes:
    return canvas.flatten(scene.compose(prompt, negative, SIZE, seed)).tobytes()


@pytest.mark.parametrize(
    "prompt",
    [
        "mountains",
        "a lake in the mountains",
        "a boat",
        "three balloons over a desert",
        "a castle",
        "a lighthouse by the sea",
        "autumn forest",
        "city at night",
        "underwater, two fish",
        "rocket in space",
        "fox",
        "two cats and a bird",
        "whale",
        "butterflies",
        "a cup and a book",
        "seven apples and a bottle",
        "cactus in the desert",
        "sunset",
        "geometric poster",
        "hope",
        "",
        "owl under the stars",
        "snow, rain, fog and lightning over a village",
    ],
)
def test_each_kind_is_composed_the_same_twice(prompt: str) -> None:
    once = flat(prompt)
    assert len(once) == 3 * SIZE[0] * SIZE[1]
    assert once == flat(prompt)
    assert once != flat(prompt, seed=2)


def test_what_is_unwanted_is_left_out() -> None:
    assert flat("a fox in the forest") != flat("a fox in the forest", negative="fox")


@pytest.mark.parametrize("size", [(1, 1), (2, 300), (300, 2), (16, 16)])
@pytest.mark.parametrize(
    "prompt", ["mountains with a lake and a boat", "a cat", "a vase", "city with fireworks", "space"]
)
def test_no_shape_is_too_odd(prompt: str, size: tuple[int, int]) -> None:
    assert canvas.flatten(scene.compose(prompt, "", size, 3)).size == size


def test_the_first_layer_hides_everything_behind_it() -> None:
    for prompt in ("mountains", "cat", "cup", "flow", "underwater", "space"):
        first = scene.compose(prompt, "", SIZE, 1).layers[0]
        assert (first.left, first.top, first.image.size) == (0, 0, SIZE)
        assert first.image.getchannel("A").getextrema() == (255, 255)
