"""Edits follow the words, stay within the mask, and come out at the asked size."""

from __future__ import annotations

import pytest
from PIL import Image, ImageChops, ImageDraw

from penstock.imaging.convert import BadImage
from penstock_atelier.renderers import retouch
from tests.atelier.drawings import check_each, draw, open_image, png

SIZE = (160, 120)
SOURCE = draw("a lake in the mountains", *SIZE, 4)
BOX = (40, 30, 120, 100)


def edit(
    images: list[Image.Image], prompt: str, mask: bytes | None = None, size: tuple[int, int] = SIZE, seed: int = 0
) -> Image.Image:
    return open_image(retouch.edit_image([png(image) for image in images], prompt, mask, *size, seed).data)


def mask() -> bytes:
    image = Image.new("RGBA", SIZE, "black")
    ImageDraw.Draw(image).rectangle((BOX[0], BOX[1], BOX[2] - 1, BOX[3] - 1), fill=(0, 0, 0, 0))
    return png(image)


def inside_and_outside(image: Image.Image) -> tuple[bytes, bytes]:
    rest = image.convert("RGB")
    inside = rest.crop(BOX).tobytes()
    rest.paste((0, 0, 0), BOX)
    return inside, rest.tobytes()


MASKED_EDITS = (
    "remove the boat",
    "add a moon",
    "add a red fox",
    "add stars and snow and fog",
    "a city at night",
    "blur",
    "pencil sketch",
    "make it blue",
    "pop art",
    "invert",
    "sunset",
    "whatever",
    "add a sun, clouds, a rainbow and three balloons",
    "black and white",
    "fill with forest",
)


def test_pixels_outside_the_mask_are_unchanged() -> None:
    inside_before, outside_before = inside_and_outside(SOURCE)

    def check(prompt: str) -> None:
        edited = edit([SOURCE], prompt, mask())
        assert edited.size == SIZE
        inside, outside = inside_and_outside(edited)
        assert (outside == outside_before) is True
        assert (inside == inside_before) is False

    check_each(MASKED_EDITS, check)


def test_without_a_mask_the_whole_image_changes() -> None:
    def check(prompt: str) -> None:
        edited = edit([SOURCE], prompt)
        assert edited.size == SIZE
        assert (edited.convert("RGB").tobytes() == SOURCE.tobytes()) is False

    check_each(("warmer", "night", "oil painting", "add a boat", "at sunset", "snow", "please"), check)


def test_removing_fills_from_the_surroundings() -> None:
    plain = Image.new("RGB", SIZE, (90, 140, 200))
    spoilt = plain.copy()
    spoilt.paste((255, 0, 0), (60, 50, 100, 80))
    edited = edit([spoilt], "remove it", mask()).convert("RGB")
    differences = [abs(a - b) for a, b in zip(edited.tobytes(), plain.tobytes(), strict=True)]
    assert max(differences) < 20


def test_a_transparent_area_is_a_mask_by_itself() -> None:
    holed = SOURCE.convert("RGBA")
    holed.paste((0, 0, 0, 0), BOX)
    edited = edit([holed], "a red castle")
    assert inside_and_outside(edited)[1] == inside_and_outside(SOURCE)[1]
    assert edited.convert("RGBA").getchannel("A").getextrema() == (255, 255)


def test_transparency_elsewhere_survives() -> None:
    veiled = SOURCE.convert("RGBA")
    veiled.putalpha(128)
    edited = edit([veiled], "warmer")
    assert edited.mode == "RGBA"
    assert edited.getchannel("A").getextrema() == (128, 128)


def test_a_second_image_goes_into_the_mask_of_the_first() -> None:
    red = Image.new("RGB", (50, 50), (250, 10, 10))
    edited = edit([SOURCE, red], "put it there", mask()).convert("RGB")
    assert edited.getpixel((80, 65)) == (250, 10, 10)
    assert inside_and_outside(edited)[1] == inside_and_outside(SOURCE)[1]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_several_images_become_one_sheet(count: int) -> None:
    colours = [(10 * n, 200 - 10 * n, 120) for n in range(count)]
    sources = [Image.new("RGB", (60 + 7 * n, 50), colour) for n, colour in enumerate(colours)]
    sheet = edit(sources, "collage", size=(320, 240)).convert("RGB")
    seen = {colour for _, colour in sheet.getcolors(sheet.width * sheet.height) or []}
    assert set(colours) <= seen


@pytest.mark.parametrize("size", [(300, 300), (600, 150), (150, 600)])
def test_a_sheet_of_any_shape_shows_all_of_every_image(size: tuple[int, int]) -> None:
    colours = ((200, 30, 30), (30, 200, 30), (30, 30, 200))
    sources = []
    for colour in colours:
        framed = Image.new("RGB", (60, 50), "black")
        framed.paste(colour, (6, 6, 54, 44))
        sources.append(framed)
    sheet = edit(sources, "collage", size=size).convert("RGB")
    for colour in colours:
        distance = ImageChops.difference(sheet, Image.new("RGB", size, colour)).split()
        largest = ImageChops.lighter(ImageChops.lighter(distance[0], distance[1]), distance[2])
        here = largest.point(lambda value: 255 if value < 40 else 0)
        left, top, right, bottom = here.getbbox() or (0, 0, 0, 0)
        assert left > 0 < top
        assert right < size[0]
        assert bottom < size[1]
        assert (right - left) / (bottom - top) == pytest.approx(48 / 38, rel=0.15)


def test_a_second_image_is_set_into_the_first() -> None:
    red = Image.new("RGB", (50, 50), (250, 10, 10))
    edited = edit([SOURCE, red], "put it there").convert("RGB")
    assert edited.getpixel((80, 90)) == (250, 10, 10)
    assert edited.crop((0, 0, 160, 30)).tobytes() == SOURCE.crop((0, 0, 160, 30)).tobytes()


def test_another_background_leaves_the_middle() -> None:
    plain = Image.new("RGB", SIZE, (250, 10, 10))
    edited = edit([plain], "replace the background with a desert").convert("RGB")
    assert edited.getpixel((80, 80)) == (250, 10, 10)
    assert edited.getpixel((4, 4)) != (250, 10, 10)


def test_images_can_be_blended() -> None:
    black, white = (Image.new("RGB", (40, 40), colour) for colour in ("black", "white"))
    blended = edit([black, white], "blend them", size=(40, 40))
    assert blended.convert("L").getpixel((20, 20)) in range(120, 136)


@pytest.mark.parametrize("size", [(160, 220), (260, 120)])
def test_another_shape_loses_nothing_of_the_image(size: tuple[int, int]) -> None:
    edited = edit([SOURCE], "blur", mask(), size).convert("RGB")
    left, top = (size[0] - 160) // 2, (size[1] - 120) // 2
    seam = 4  # where the image fades into its continuation
    inner = edited.crop((left, top, left + 160, top + 120))
    for box in ((seam, seam, 40, 116), (120, seam, 156, 116), (seam, seam, 156, 30)):
        assert inner.crop(box).tobytes() == SOURCE.crop(box).tobytes()
    beside = edited.getpixel((left // 2, size[1] // 2)) if left else edited.getpixel((size[0] // 2, top // 2))
    edge = SOURCE.getpixel((0, 60)) if left else SOURCE.getpixel((80, 0))
    assert isinstance(beside, tuple)
    assert isinstance(edge, tuple)
    assert max(abs(a - b) for a, b in zip(beside, edge, strict=True)) < 40


@pytest.mark.parametrize("size", [(64, 64), (300, 100), (16, 90), (17, 16), (16, 4096)])
def test_the_asked_size(size: tuple[int, int]) -> None:
    edited = retouch.edit_image([png(SOURCE)], "warmer", None, *size, seed=0)
    assert open_image(edited.data).size == (edited.width, edited.height) == size


def test_the_same_twice() -> None:
    first, second = (edit([SOURCE], "add a fox", mask(), seed=3).tobytes() for _ in range(2))
    assert first == second
    assert edit([SOURCE], "add a bird", seed=4).tobytes() != edit([SOURCE], "add a bird").tobytes()


def test_images_and_masks_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(BadImage, match="same dimensions"):
        edit([SOURCE.resize((50, 50))], "x", mask())
    with pytest.raises(BadImage, match="no transparency"):
        edit([SOURCE], "x", png(Image.new("RGB", SIZE)))
    with pytest.raises(BadImage, match="16 to 4096"):
        edit([SOURCE], "x", size=(5000, 5000))
    with pytest.raises(BadImage, match="not one of"):
        retouch.edit_image([b"nothing"], "x", None, *SIZE, seed=0)
