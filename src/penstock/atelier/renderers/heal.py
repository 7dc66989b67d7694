"""Fill a hole in a picture from what surrounds it, along whichever direction its two edges agree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from PIL import Image, ImageChops, ImageFilter, ImageOps

_MARGIN = 4  # pixels beyond an edge whose mean is its colour
_MOST_RUNS = 20_000  # a mask like a sieve would take for ever; its many small holes need no such care
_TURN = Image.Transpose.TRANSPOSE
_SURE = 2  # how many times as far apart edges must look before the other direction has its way alone


def fill(image: Image.Image, hole: Image.Image, chance: random.Random) -> Image.Image:
    """The hole is white; everything else stays. A table's edge goes on behind what stood on it, a horizon likewise."""
    wide = hole.filter(ImageFilter.MaxFilter(5))
    vague = _vaguely(image, wide)
    across, across_doubt = _spanned(image, vague, wide)
    down, down_doubt = (
        one.transpose(_TURN) for one in _spanned(*(one.transpose(_TURN) for one in (image, vague, wide)))
    )
    leaning = ImageChops.subtract(down_doubt, across_doubt, 1 / _SURE, 128)
    leaning = leaning.filter(ImageFilter.GaussianBlur(max(1.0, min(image.size) / 100)))
    filled = Image.composite(across, down, leaning).filter(ImageFilter.GaussianBlur(1))
    return Image.composite(grained(filled, chance), image, hole)


def grained(image: Image.Image, chance: random.Random) -> Image.Image:
    """Real pictures are never quite smooth."""
    speckle = Image.frombytes("L", image.size, chance.randbytes(image.width * image.height))
    grain = speckle.point([round(128 + (value - 128) * 0.06) for value in range(256)])
    return ImageChops.overlay(image, Image.merge("RGB", (grain, grain, grain)))


def _spanned(image: Image.Image, vague: Image.Image, hole: Image.Image) -> tuple[Image.Image, Image.Image]:
    """Each row of the hole as a run from one edge's colour to the other's, and how unlike the two are."""
    result, doubt = vague.copy(), Image.new("L", image.size, 255)
    for y, start, end in islice(_runs(hole), _MOST_RUNS):
        left = _colour(image, hole, max(0, start - _MARGIN), start, y)
        right = _colour(image, hole, end, min(image.width, end + _MARGIN), y)
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
    """Where the hole begins and ends in each row; it may do so several times."""
    for y in range(hole.height):
        row = hole.crop((0, y, hole.width, y + 1)).tobytes()
        start = row.find(b"\xff")
        while start >= 0:
            end = row.find(b"\x00", start)
            yield y, start, end if end >= 0 else len(row)
            start = row.find(b"\xff", end) if end >= 0 else -1


def _colour(image: Image.Image, hole: Image.Image, start: int, end: int, y: int) -> tuple[int, int, int] | None:
    """The mean of what is known of some pixels in a row; nothing at the picture's own edge."""
    strip = hole.crop((start, y, end, y + 1)).tobytes() if end > start else b""
    known = [start + at for at, value in enumerate(strip) if not value]
    if not known:
        return None
    red, green, blue = image.crop((known[0], y, known[-1] + 1, y + 1)).resize((1, 1), Image.Resampling.BOX).tobytes()
    return red, green, blue


def _vaguely(image: Image.Image, hole: Image.Image) -> Image.Image:
    """Ever coarser copies reach ever further in; for what has no edges at all."""
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
