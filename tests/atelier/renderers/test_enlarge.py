"""Larger, sharp, of the right size, and clean at transparent edges."""

from __future__ import annotations

from itertools import product

import pytest
from PIL import Image

from penstock.imaging.convert import BadImage
from penstock_atelier.renderers import enlarge
from tests.atelier.drawings import check_each, draw, open_image, png


def test_each_side_is_multiplied() -> None:
    fox = draw("a fox", 40, 30)

    def check(case: tuple[float, str]) -> None:
        factor, mode = case
        source = fox.convert(mode)
        source.putpixel((0, 0), 0 if mode == "L" else (0, 0, 0, 0)[: len(mode)])
        enlarged = enlarge.enlarge_image(png(source), factor)
        assert (enlarged.width, enlarged.height) == (round(40 * factor), round(30 * factor))
        image = open_image(enlarged.data)
        assert (image.size, image.mode) == ((enlarged.width, enlarged.height), mode)

    check_each(product([1, 1.1, 1.5, 2, 3.7, 8], ["L", "RGB", "RGBA"]), check)


def test_it_is_still_the_same_image() -> None:
    source = draw("mountains at sunset", 160, 120)
    back = open_image(enlarge.enlarge_image(png(source), 3).data).resize((160, 120), Image.Resampling.BOX)
    differences = [abs(a - b) for a, b in zip(source.tobytes(), back.tobytes(), strict=True)]
    assert sum(differences) / len(differences) < 6


def test_light_is_averaged_not_numbers() -> None:
    """Fine black and white stripes, made smaller, are half the light, which is 188 and not 128."""
    stripes = Image.new("L", (64, 64))
    for x in range(0, 64, 2):
        stripes.paste(255, (x, 0, x + 1, 64))
    assert 182 < enlarge.scale(stripes, (16, 16)).tobytes()[8 * 16 + 8] < 194


def test_transparent_pixels_do_not_bleed() -> None:
    source = Image.new("RGBA", (20, 20), (0, 255, 0, 0))
    source.paste((255, 0, 0, 255), (5, 5, 15, 15))
    large = open_image(enlarge.enlarge_image(png(source), 4).data)
    for x in range(80):
        pixel = large.getpixel((x, 40))
        assert isinstance(pixel, tuple)
        if pixel[3] > 16:
            assert pixel[0] > 200
            assert pixel[1] < 40


def test_bands_leave_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    source = draw("flow", 60, 60)
    whole = enlarge.scale(source, (180, 180)).tobytes()
    monkeypatch.setattr(enlarge, "_BAND_PIXELS", 180 * 7)
    assert enlarge.scale(source, (180, 180)).tobytes() == whole


@pytest.mark.parametrize("factor", [0.99, 8.01, 0, -2])
def test_other_factors_are_refused(factor: float) -> None:
    with pytest.raises(BadImage, match="1 to 8"):
        enlarge.enlarge_image(png(draw("x", 20, 20)), factor)


def test_too_large_a_result_is_refused() -> None:
    with pytest.raises(BadImage, match="40 million"):
        enlarge.enlarge_image(png(Image.new("RGB", (2000, 2000))), 4)
