"""The words of a prompt choose the kind of image."""

from __future__ import annotations

from penstock_atelier.renderers import canvas, scene
from tests.atelier.drawings import check_each

SIZE = (96, 72)
PROMPTS = (
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
)


def flat(prompt: str, seed: int = 1) -> bytes:
    return canvas.flatten(scene.compose(prompt, SIZE, seed)).tobytes()


def test_each_kind_is_composed_the_same_twice() -> None:
    def check(prompt: str) -> None:
        first = flat(prompt)
        assert len(first) == 3 * SIZE[0] * SIZE[1]
        assert (first == flat(prompt)) is True
        assert (first == flat(prompt, seed=2)) is False

    check_each(PROMPTS, check)


def test_scenes_of_any_shape_can_be_composed() -> None:
    prompts = ("mountains with a lake and a boat", "a cat", "a vase", "city with fireworks", "space")

    def check(case: tuple[str, tuple[int, int]]) -> None:
        prompt, size = case
        assert canvas.flatten(scene.compose(prompt, size, 3)).size == size

    check_each([(prompt, size) for prompt in prompts for size in ((1, 1), (2, 300), (300, 2), (16, 16))], check)


def test_the_first_layer_covers_everything() -> None:
    def check(prompt: str) -> None:
        first = scene.compose(prompt, SIZE, 1).layers[0]
        assert (first.left, first.top, first.image.size) == (0, 0, SIZE)
        assert first.image.getchannel("A").getextrema() == (255, 255)

    check_each(("mountains", "cat", "cup", "flow", "underwater", "space"), check)
