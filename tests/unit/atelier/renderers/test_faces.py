"""The table of faces is drawn row by row."""

from __future__ import annotations

import pytest

from penstock.atelier.renderers import faces
from penstock.atelier.renderers.canvas import dice
from penstock.atelier.renderers.pen import Pen


@pytest.mark.parametrize("name", sorted(faces.FACES))
def test_a_face_looks_at_us(name: str) -> None:
    face = faces.FACES[name]
    pen = Pen(200)
    faces.draw(pen, face, None, dice(3))
    image = pen.done(0)
    left = image.crop((60, 80, 95, 105)).convert("L").getextrema()
    right = image.crop((105, 80, 140, 105)).convert("L").getextrema()
    for low, high in (left, right):
        assert isinstance(low, int | float)
        assert isinstance(high, int | float)
        assert low < 70  # the eye
        assert high > low + 60  # and its light


def test_marks_and_ears_are_known() -> None:
    known = {*faces._EAR_SHAPES, *faces._EAR_SIZES, "long", "side", "low"}
    for face in faces.FACES.values():
        assert face.ear in known
        assert not face.marks or face.marks in {*faces.MARKS, "mane", "antlers"}
