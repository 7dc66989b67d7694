"""Recognise words for a resolution, such as `720p`, `2K` or `1 MP`, and choose the one that a caller wants."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any

from penstock.values import SHORT_SIDES, Frame

# Words beside resolutions that name none.
_NO_RESOLUTION = frozenset("auto none custom original match_input match_input_image same_as_input default".split())
_VIDEO_SIDES = {"hd": 720, "fhd": 1080, "2k": 1440, "qhd": 1440, "4k": 2160, "uhd": 2160}


def resolution_sides(values: Sequence[Any], makes: str) -> dict[Any, float]:
    """The short side in pixels of each value; empty unless all of them name one, except words such as `auto`."""
    sides = {value: side for value in values if (side := resolution_side(value, makes))}
    return sides if len(sides) == len([value for value in values if str(value).lower() not in _NO_RESOLUTION]) else {}


def megapixel_sides(values: Sequence[Any]) -> dict[Any, float]:
    """The same for a field that counts megapixels, whose values may be plain numbers such as `0.25`."""
    named = [value for value in values if str(value).lower() not in _NO_RESOLUTION]
    found = {value: re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:mp)?", str(value).strip().lower()) for value in named}
    sides = {value: (float(number[1]) * 1_000_000) ** 0.5 for value, number in found.items() if number}
    return sides if len(sides) == len(named) and all(sides.values()) else {}


def resolution_side(value: Any, makes: str = "video") -> float | None:
    """The short side of `720p`, `2K`, `1 MP` or `1024`; None for anything else. For videos, 2K is 1440p."""
    text = str(value).strip().lower()
    if found := re.fullmatch(r"(\d{3,4})p?", text):
        return int(found[1])
    if makes == "video" and text in _VIDEO_SIDES:
        return _VIDEO_SIDES[text]
    if found := re.fullmatch(r"(\d+(?:\.\d+)?) ?k", text):
        return float(found[1]) * 1024
    if found := re.fullmatch(r"(\d+(?:\.\d+)?) ?mp", text):
        return float((float(found[1]) * 1_000_000) ** 0.5)
    return None


def closest_side(sides: Mapping[Any, float], unnamed: Any = None) -> Callable[[Frame], Any]:
    """The resolution closest to the wanted one; `unnamed`, of which None is not sent, if the caller named none."""

    def pick(frame: Frame) -> Any:
        if not frame.resolution and not frame.exact:
            return unnamed
        wanted = SHORT_SIDES[frame.resolution] if frame.resolution else min(frame.sides)
        return min(sides, key=lambda value: abs(log(sides[value]) - log(wanted)))

    return pick
