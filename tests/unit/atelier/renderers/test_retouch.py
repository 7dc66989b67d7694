"""Edits follow the words, stay within the mask, and come out at the asked size."""

from __future__ import annotations

import hashlib
import io

import pytest
from PIL import Image, ImageDraw

from penstock.atelier.renderers import retouch
from penstock.atelier.renderers.sketch import picture
from penstock.imaging import convert
from penstock.imaging.convert import BadImage

SIZE = (160, 120)
SOURCE = picture("a lake in the mountains", *SIZE, 4)
BOX = (40, 30, 120, 100)


def png(image: Image.Image) -> bytes:
    return convert.encode(image, "png").data


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def mask() -> bytes:
    image = Image.new("RGBA", SIZE, "black")
    ImageDraw.Draw(image).rectangle((BOX[0], BOX[1], BOX[2] - 1, BOX[3] - 1), fill=(0, 0, 0, 0))
    return png(image)


def inside_and_outside(image: Image.Image) -> tuple[bytes, bytes]:
    rest = image.convert("RGB")
    inside = rest.crop(BOX).tobytes()
    rest.paste((0, 0, 0), BOX)
    return inside, rest.tobytes()


@pytest.mark.parametrize(
    "prompt",
    [
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
    ],
)
def test_pixels_outside_the_mask_are_untouched(prompt: str) -> None:
    made = opened(retouch.edit([png(SOURCE)], prompt, mask()).data)
    assert made.size == SIZE
    inside, outside = inside_and_outside(made)
    was_inside, was_outside = inside_and_outside(SOURCE)
    assert outside == was_outside
    assert inside != was_inside


@pytest.mark.parametrize("prompt", ["warmer", "night", "oil painting", "add a boat", "at sunset", "snow", "please"])
def test_without_a_mask_the_whole_picture_changes(prompt: str) -> None:
    made = opened(retouch.edit([png(SOURCE)], prompt).data)
    assert made.size == SIZE
    assert made.convert("RGB").tobytes() != SOURCE.tobytes()


def test_removing_fills_from_the_surroundings() -> None:
    plain = Image.new("RGB", SIZE, (90, 140, 200))
    spoilt = plain.copy()
    spoilt.paste((255, 0, 0), (60, 50, 100, 80))
    made = opened(retouch.edit([png(spoilt)], "remove it", mask()).data).convert("RGB")
    differences = [abs(a - b) for a, b in zip(made.tobytes(), plain.tobytes(), strict=True)]
    assert max(differences) < 20


def test_a_transparent_area_is_a_mask_by_itself() -> None:
    holed = SOURCE.convert("RGBA")
    holed.paste((0, 0, 0, 0), BOX)
    made = opened(retouch.edit([png(holed)], "a red castle").data)
    assert inside_and_outside(made)[1] == inside_and_outside(SOURCE)[1]
    assert made.convert("RGBA").getchannel("A").getextrema() == (255, 255)


def test_transparency_elsewhere_survives() -> None:
    veiled = SOURCE.convert("RGBA")
    veiled.putalpha(128)
    made = opened(retouch.edit([png(veiled)], "warmer").data)
    assert made.mode == "RGBA"
    assert made.getchannel("A").getextrema() == (128, 128)


def test_a_second_picture_goes_into_the_mask_of_the_first() -> None:
    red = Image.new("RGB", (50, 50), (250, 10, 10))
    made = opened(retouch.edit([png(SOURCE), png(red)], "put it there", mask()).data).convert("RGB")
    assert made.getpixel((80, 65)) == (250, 10, 10)
    assert inside_and_outside(made)[1] == inside_and_outside(SOURCE)[1]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 16])
def test_several_pictures_become_one_sheet(count: int) -> None:
    colours = [(10 * n, 200 - 10 * n, 120) for n in range(count)]
    sources = [png(Image.new("RGB", (60 + 7 * n, 50), colour)) for n, colour in enumerate(colours)]
    sheet = opened(retouch.edit(sources, "collage").data).convert("RGB")
    seen = {colour for _, colour in sheet.getcolors(sheet.width * sheet.height) or []}
    assert set(colours) <= seen


@pytest.mark.parametrize("size", [(300, 300), (600, 150), (150, 600)])
def test_a_sheet_of_any_shape_shows_all_of_every_picture(size: tuple[int, int]) -> None:
    colours = ((200, 30, 30), (30, 200, 30), (30, 30, 200))
    sources = []
    for colour in colours:
        framed = Image.new("RGB", (60, 50), "black")
        framed.paste(colour, (6, 6, 54, 44))
        sources.append(png(framed))
    sheet = opened(retouch.edit(sources, "collage", None, *size).data).convert("RGB")
    for colour in colours:
        match = [abs(a - b) < 40 for a, b in zip(sheet.tobytes(), colour * (size[0] * size[1]), strict=True)]
        here = Image.frombytes("L", size, bytes(255 * all(match[at : at + 3]) for at in range(0, len(match), 3)))
        left, top, right, bottom = here.getbbox() or (0, 0, 0, 0)
        assert left > 0 < top
        assert right < size[0]
        assert bottom < size[1]
        assert (right - left) / (bottom - top) == pytest.approx(48 / 38, rel=0.15)


def test_a_second_picture_is_set_into_the_first() -> None:
    red = Image.new("RGB", (50, 50), (250, 10, 10))
    made = opened(retouch.edit([png(SOURCE), png(red)], "put it there").data).convert("RGB")
    assert made.getpixel((80, 90)) == (250, 10, 10)
    assert made.crop((0, 0, 160, 30)).tobytes() == SOURCE.crop((0, 0, 160, 30)).tobytes()


def test_another_background_leaves_the_middle() -> None:
    plain = Image.new("RGB", SIZE, (250, 10, 10))
    made = opened(retouch.edit([png(plain)], "replace the background with a desert").data).convert("RGB")
    assert made.getpixel((80, 80)) == (250, 10, 10)
    assert made.getpixel((4, 4)) != (250, 10, 10)


def test_pictures_can_be_blended() -> None:
    black, white = (png(Image.new("RGB", (40, 40), colour)) for colour in ("black", "white"))
    assert opened(retouch.edit([black, white], "blend them").data).convert("L").getpixel((20, 20)) in range(120, 136)


@pytest.mark.parametrize("size", [(160, 220), (260, 120)])
def test_another_shape_loses_nothing_of_the_picture(size: tuple[int, int]) -> None:
    made = opened(retouch.edit([png(SOURCE)], "blur", mask(), *size).data).convert("RGB")
    left, top = (size[0] - 160) // 2, (size[1] - 120) // 2
    seam = 4  # where the picture fades into what goes on beside it
    inner = made.crop((left, top, left + 160, top + 120))
    for box in ((seam, seam, 40, 116), (120, seam, 156, 116), (seam, seam, 156, 30)):
        assert inner.crop(box).tobytes() == SOURCE.crop(box).tobytes()
    beside = made.getpixel((left // 2, size[1] // 2)) if left else made.getpixel((size[0] // 2, top // 2))
    edge = SOURCE.getpixel((0, 60)) if left else SOURCE.getpixel((80, 0))
    assert isinstance(beside, tuple)
    assert isinstance(edge, tuple)
    assert max(abs(one - other) for one, other in zip(beside, edge, strict=True)) < 40


@pytest.mark.parametrize("size", [(64, 64), (300, 100), (16, 90), (17, 16), (16, 4096)])
def test_the_asked_size(size: tuple[int, int]) -> None:
    made = retouch.edit([png(SOURCE)], "warmer", None, *size)
    assert opened(made.data).size == (made.width, made.height) == size


def test_the_same_twice() -> None:
    digests = {hashlib.sha256(retouch.edit([png(SOURCE)], "add a fox", mask(), seed=3).data).digest() for _ in range(2)}
    assert len(digests) == 1
    assert retouch.edit([png(SOURCE)], "add a bird", seed=4).data != retouch.edit([png(SOURCE)], "add a bird").data


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(BadImage, match="same dimensions"):
        retouch.edit([png(SOURCE.resize((50, 50)))], "x", mask())
    with pytest.raises(BadImage, match="no transparency"):
        retouch.edit([png(SOURCE)], "x", png(Image.new("RGB", SIZE)))
    with pytest.raises(BadImage, match="1 to 16"):
        retouch.edit([], "x")
    with pytest.raises(BadImage, match="16 to 4096"):
        retouch.edit([png(SOURCE)], "x", None, 5000, 5000)
    with pytest.raises(BadImage, match="not one of"):
        retouch.edit([b"nothing"], "x")
