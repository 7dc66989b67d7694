"""Fill a hole in an image from what surrounds it, in the direction in which its two edges are more alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from PIL import Image, ImageChops, ImageFilter, ImageOps

_MARGIN = 4  # pixels beyond an edge whose mean is its colour
_MAX_RUNS = 20_000  # a mask with very many small holes would take too long; the rest is filled coarsely
_TURN = Image.Transpose.TRANSPOSE
_SURE = 2  # how strongly the difference of the edges decides between the two directions


def fill(image: Image.Image, hole: Image.Image, rng: random.Random) -> Image.Image:
    """Fill the white area of the hole; everything else stays."""
    wide = hole.filter(ImageFilter.MaxFilter(5))
    vague = _fill_coarsely(image, wide)
    across, across_doubt = _span_rows(image, vague, wide)
    down, down_doubt = (
        part.transpose(_TURN) for part in _span_rows(*(part.transpose(_TURN) for part in (image, vague, wide)))
    )
    leaning = ImageChops.subtract(down_doubt, across_doubt, 1 / _SURE, 128)
    leaning = leaning.filter(ImageFilter.GaussianBlur(max(1.0, min(image.size) / 100)))
    filled = Image.composite(across, down, leaning).filter(ImageFilter.GaussianBlur(1))
    return Image.composite(add_grain(filled, rng), image, hole)


def add_grain(image: Image.Image, rng: random.Random) -> Image.Image:
    """Add fine grain, so that a filled area does not look too smooth."""
    speckle = Image.frombytes("L", image.size, rng.randbytes(image.width * image.height))
    grain = speckle.point([round(128 + (value - 128) * 0.06) for value in range(256)])
    return ImageChops.overlay(image, Image.merge("RGB", (grain, grain, grain)))


def _span_rows(image: Image.Image, vague: Image.Image, hole: Image.Image) -> tuple[Image.Image, Image.Image]:
    """Fill each row from the colour of one edge to that of the other; and a mask of how different the two are."""
    result = vague.copy()
    doubt = Image.new("L", image.size, 255)
    for y, start, end in islice(_runs(hole), _MAX_RUNS):
        left = _edge_colour(image, hole, max(0, start - _MARGIN), start, y)
        right = _edge_colour(image, hole, end, min(image.width, end + _MARGIN), y)
        if left is None and right is None:
            continue
        first, last = left or right or (0, 0, 0), right or left or (0, 0, 0)
        ends = Image.new("RGB", (2, 1))
        ends.putpixel((0, 0), first)
        ends.putpixel((1, 0), last)
        result.paste(ends.resize((end - start, 1), Image.Resampling.BILINEAR), (start, y))
        apart = max(abs(one - other) for one, other in zip(first, last, strict=True))
        doubt.paste(160 if left is None or right is None else apart, (start, y, end, y + 1))
    return result, doubt


def _runs(hole: Image.Image) -> Iterator[tuple[int, int, int]]:
    """Row, start and end of each run of the hole; a row may have several."""
    for y in range(hole.height):
        row = hole.crop((0, y, hole.width, y + 1)).tobytes()
        start = row.find(b"\xff")
        while start >= 0:
            end = row.find(b"\x00", start)
            yield y, start, end if end >= 0 else len(row)
            start = row.find(b"\xff", end) if end >= 0 else -1


def _edge_colour(image: Image.Image, hole: Image.Image, start: int, end: int, y: int) -> tuple[int, int, int] | None:
    """The mean colour of the pixels of a row outside the hole; None where there are none."""
    strip = hole.crop((start, y, end, y + 1)).tobytes() if end > start else b""
    known = [start + at for at, value in enumerate(strip) if not value]
    if not known:
        return None
    red, green, blue = image.crop((known[0], y, known[-1] + 1, y + 1)).resize((1, 1), Image.Resampling.BOX).tobytes()
    return red, green, blue


def _fill_coarsely(image: Image.Image, hole: Image.Image) -> Image.Image:
    """Fill the hole from smaller and smaller copies of the image, which reach further into it."""
    known = image.convert("RGBA")
    known.putalpha(ImageOps.invert(hole))
    levels = [known]
    while min(levels[-1].size) > 1 and levels[-1].getchannel("A").getextrema()[0] == 0:
        levels.append(levels[-1].reduce(2))
    filled = levels[-1].convert("RGB")
    for level in reversed(levels[:-1]):
        wide = filled.resize(level.size, Image.Resampling.BICUBIC)
        sure = level.getchannel("A").point(lambda value: min(255, value * 2))
        filled = Image.composite(level.convert("RGB"), wide, sure)
    return filled.filter(ImageFilter.GaussianBlur(max(1.0, min(image.size) / 140)))
