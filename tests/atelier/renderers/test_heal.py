"""A hole is filled from its surroundings, in the direction in which they continue."""

from __future__ import annotations

import random

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageStat

from penstock_atelier.renderers import heal

SIZE = (120, 90)
BOX = (40, 25, 80, 65)


def hole(*boxes: tuple[int, int, int, int]) -> Image.Image:
    image = Image.new("L", SIZE)
    for left, top, right, bottom in boxes:
        ImageDraw.Draw(image).rectangle((left, top, right - 1, bottom - 1), fill=255)
    return image


def striped(*, upright: bool) -> Image.Image:
    """Two colours that meet in the middle of the hole."""
    image = Image.new("RGB", SIZE, (200, 180, 90))
    image.paste((40, 60, 120), (0, 0, 60, SIZE[1]) if upright else (0, 0, SIZE[0], 45))
    return image


def spoilt(image: Image.Image, *boxes: tuple[int, int, int, int]) -> Image.Image:
    copy = image.copy()
    for box in boxes:
        copy.paste((255, 0, 0), box)
    return copy


def mean_difference(first: Image.Image, second: Image.Image, box: tuple[int, int, int, int]) -> float:
    return max(ImageStat.Stat(ImageChops.difference(first, second).crop(box)).mean)


@pytest.mark.parametrize("upright", [False, True])
def test_an_edge_continues_through_the_hole(upright: bool) -> None:
    clean = striped(upright=upright)
    filled = heal.fill(spoilt(clean, BOX), hole(BOX), random.Random(1))
    assert mean_difference(filled, clean, BOX) < 6


def test_several_holes_in_one_row() -> None:
    clean, boxes = striped(upright=False), ((10, 20, 30, 70), (60, 20, 90, 70))
    filled = heal.fill(spoilt(clean, *boxes), hole(*boxes), random.Random(1))
    assert max(mean_difference(filled, clean, box) for box in boxes) < 6


def test_a_hole_at_the_edge_of_the_image() -> None:
    clean, box = striped(upright=False), (90, 0, 120, 90)
    filled = heal.fill(spoilt(clean, box), hole(box), random.Random(1))
    assert mean_difference(filled, clean, box) < 12


def test_everything_outside_stays_as_it_was() -> None:
    clean = striped(upright=False)
    filled = heal.fill(spoilt(clean, BOX), hole(BOX), random.Random(1))
    assert spoilt(filled, BOX).tobytes() == spoilt(clean, BOX).tobytes()


def test_a_mask_with_many_holes_is_filled_coarsely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heal, "_MAX_RUNS", 10)
    clean, boxes = striped(upright=False), [(left, 5, left + 4, 85) for left in range(5, 110, 10)]
    filled = heal.fill(spoilt(clean, *boxes), hole(*boxes), random.Random(1))
    assert max(mean_difference(filled, clean, (left, 5, right, 40)) for left, _, right, _ in boxes) < 20


def test_nothing_but_hole() -> None:
    whole = (0, 0, *SIZE)
    assert heal.fill(striped(upright=True), hole(whole), random.Random(1)).size == SIZE
