"""How different two pictures look."""

import io
import random

import pytest
from PIL import Image

from penstock.imaging.convert import BadImage, grid
from penstock.imaging.likeness import SIDE, distance


def encoded(image: Image.Image, kind: str = "PNG", **options: int) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def scene(seed: int) -> Image.Image:
    """A picture with some large shapes, different for each seed."""
    chance = random.Random(seed)
    image = Image.new("RGB", (320, 200), tuple(chance.choices(range(256), k=3)))
    for _ in range(12):
        left, top = chance.randrange(280), chance.randrange(160)
        colour = tuple(chance.choices(range(256), k=3))
        image.paste(colour, (left, top, left + chance.randrange(20, 120), top + chance.randrange(20, 90)))
    return image


def far(first: Image.Image, second: Image.Image) -> float:
    return distance(grid(encoded(first), SIDE).data, grid(encoded(second), SIDE).data)


def test_a_grid_is_small_whatever_the_size_of_the_image() -> None:
    assert (
        len(grid(encoded(scene(1)), SIDE).data)
        == len(grid(encoded(scene(1).resize((9, 9))), SIDE).data)
        == SIDE * SIDE * 3
    )
    with pytest.raises(BadImage):
        grid(b"no image", SIDE)


def test_what_is_transparent_is_white() -> None:
    assert set(grid(encoded(Image.new("RGBA", (8, 8), (0, 0, 0, 0))), SIDE).data) == {255}


def test_the_same_picture_is_near_and_others_are_far() -> None:
    image = scene(1)
    small = Image.open(io.BytesIO(encoded(image.resize((160, 100)), "JPEG", quality=60)))
    brighter = image.point(lambda value: min(255, value + 12))
    assert far(image, image) == 0
    assert far(image, small) < 0.1
    assert far(image, brighter) < 0.15
    others = [far(image, scene(seed)) for seed in range(2, 12)]
    assert min(others) > 0.4, others
    assert max(others) <= 1


def test_another_colour_of_the_same_brightness_is_a_difference() -> None:
    red, green = Image.new("RGB", (8, 8), (120, 0, 0)), Image.new("RGB", (8, 8), (0, 61, 0))
    assert far(red, green) > 0.15
