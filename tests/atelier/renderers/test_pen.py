"""Shapes cover the places that their coordinates name."""

from __future__ import annotations

import pytest
from PIL import Image

from penstock_atelier.renderers.pen import Pen, corners, smooth


def alpha(pen: Pen, x: int, y: int) -> int:
    return pen.render().getchannel("A").tobytes()[y * pen.side + x]


def test_shapes_may_be_written_as_text() -> None:
    assert corners("20,35 50,80") == [(0.2, 0.35), (0.5, 0.8)]
    assert corners([(0.1, 0.2)]) == [(0.1, 0.2)]


@pytest.mark.parametrize("side", [8, 100, 1500])
def test_a_sheet_has_the_asked_size(side: int) -> None:
    pen = Pen(side)
    pen.oval((0.5, 0.5), 0.4, 0.4, (10, 20, 30))
    assert pen.render().size == (side, side)


def test_very_large_sheets_stay_small_in_memory() -> None:
    assert Pen(4000)._sheet.width <= 4200


def test_ovals_boxes_and_strokes_cover_their_place() -> None:
    pen = Pen(100)
    pen.oval((0.2, 0.2), 0.1, 0.1, (255, 0, 0))
    pen.box(0.6, 0.6, 0.8, 0.8, (0, 255, 0))
    pen.stroke("10,90 90,90", 0.04, (0, 0, 255), curved=False)
    assert alpha(pen, 20, 20) == alpha(pen, 70, 70) == alpha(pen, 50, 90) == 255
    assert alpha(pen, 50, 50) == 0


def test_pairs_and_symmetric_shapes_are_symmetrical() -> None:
    pen = Pen(100)
    pen.blob_pair("10,10 30,10 20,40", (1, 1, 1))
    pen.symmetric_blob("50,50 30,60 50,90", (1, 1, 1))
    image = pen.render().getchannel("A")
    mirrored = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    differing = sum(abs(a - b) > 140 for a, b in zip(image.tobytes(), mirrored.tobytes(), strict=True))
    assert differing < 60  # an edge may fall on the other side of a pixel


def test_smooth_curves_pass_through_their_points() -> None:
    points = [(0.1, 0.1), (0.9, 0.2), (0.5, 0.8)]
    curve = smooth(points)
    assert all(point in curve for point in points)
    assert smooth(points, closed=False)[-1] == points[-1]
