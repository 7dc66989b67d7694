"""Every row of the table of faces is drawn with two eyes."""

from __future__ import annotations

from penstock_atelier.renderers import faces
from penstock_atelier.renderers.canvas import seeded_rng
from penstock_atelier.renderers.pen import Pen
from tests.atelier.drawings import check_each


def test_faces_have_two_eyes() -> None:
    def check(name: str) -> None:
        pen = Pen(200)
        faces.draw(pen, faces.FACES[name], None, seeded_rng(3))
        image = pen.render()
        for box in ((60, 80, 95, 105), (105, 80, 140, 105)):
            low, high = image.crop(box).convert("L").getextrema()
            assert isinstance(low, int | float)
            assert isinstance(high, int | float)
            assert low < 70, "the eye"
            assert high > low + 60, "the light in it"

    check_each(faces.FACES, check)


def test_marks_and_ears_are_known() -> None:
    known = {*faces._EAR_SHAPES, *faces._EAR_SIZES, "long", "side", "low"}
    for face in faces.FACES.values():
        assert face.ear in known
        assert not face.marks or face.marks in {*faces.MARKS, "mane", "antlers"}
