"""Conversions that provider tables share; each takes one value and returns one value."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import ceil, floor, log
from typing import Any

from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.values import Frame, InputFile

# --------------------------------------------------------------------------------------------------------------- frame


def closest(*choices: str) -> Callable[[Frame], str]:
    """The choice closest in aspect ratio and then in area; choices are written as `16:9` or `1024x1024`."""
    frames = {choice: Frame.parse(choice) for choice in choices}
    return lambda frame: min(frames, key=lambda choice: _distance(frames[choice], frame))


def closest_label(choices: dict[str, str]) -> Callable[[Frame], str]:
    """As `closest`, for providers that have names for aspect ratios: {`16:9`: `landscape`}."""
    pick = closest(*choices)
    return lambda frame: choices[pick(frame)]


def or_of_input(convert: Callable[[Frame], Any], value: Any) -> Callable[[Frame], Any]:
    """As `convert`, but this value for a shape that is only that of the input image; None is not sent."""
    return lambda frame: value if frame.from_input else convert(frame)


def _distance(choice: Frame, wanted: Frame) -> tuple[float, float]:
    ratio = abs(log(choice.width / choice.height) - log(wanted.width / wanted.height))
    if not (choice.exact and (wanted.exact or wanted.resolution)):
        return round(ratio, 6), 0.0
    target = wanted.scaled(1024)
    return round(ratio, 6), abs(log(choice.width * choice.height) - log(target.width * target.height))


def pixels(
    short_side: int = 1024,
    multiple: int = 1,
    min_side: int = 16,
    max_side: int = 16_384,
    max_area: int | None = None,
    min_area: int = 1,
) -> Callable[[Frame], tuple[int, int]]:
    """Width and height: rounded to a multiple, and scaled into the limits with the same aspect ratio.

    Where the aspect ratio does not fit into the limits, the limits are kept and the ratio changes.
    """
    low = ceil(min_side / multiple) * multiple
    high = max_side // multiple * multiple

    @lru_cache(64)  # callers ask for the same few
    def fit(frame: Frame) -> tuple[int, int]:
        width, height = frame.scaled(short_side).sides
        scale = min(1.0, high / max(width, height))
        if max_area:
            scale = min(scale, (max_area / (width * height)) ** 0.5)
        scale = max(scale, low / min(width, height), (min_area / (width * height)) ** 0.5)

        def rounded(by: Callable[[float], int]) -> tuple[int, int]:
            wide, tall = (min(max(by(side * scale / multiple) * multiple, low), high) for side in (width, height))
            return wide, tall

        wide, tall = rounded(round)
        if wide * tall < min_area:
            wide, tall = rounded(ceil)
        if max_area and wide * tall > max_area:
            wide, tall = rounded(floor)
        if max_area and wide * tall > max_area:  # the short side is at its limit: shorten the long one
            rest = max(low, max_area // min(wide, tall) // multiple * multiple)
            wide, tall = (rest, tall) if wide > tall else (wide, rest)
        return wide, tall

    return fit


def size_text(convert: Callable[[Frame], tuple[int, int]], separator: str = "x") -> Callable[[Frame], str]:
    """Width and height as one text: `1024x768`, `1024*768`."""
    return lambda frame: separator.join(map(str, convert(frame)))


def closest_resolution(*names: str, default: str | None = None) -> Callable[[Frame], str | None]:
    """The provider's name for the closest resolution, such as `720p`, `1080P` or `2K`; else the default."""
    # For images, 1K, 2K and 4K are sides of a square; for videos, 4K means 2160p.
    side_of_4k = 4096 if {"1k", "2k"} & {name.lower() for name in names} else 2160
    return closest_short_side(
        {name: side_of_4k if name.lower() == "4k" else _short_side(name) for name in names}, default
    )


def closest_short_side(sides: Mapping[str, int], default: str | None = None) -> Callable[[Frame], str | None]:
    """As `closest_resolution`, for providers whose names stand for other short sides than usual, given in pixels."""

    def pick(frame: Frame) -> str | None:
        wanted = frame.short_side
        return min(sides, key=lambda name: abs(log(sides[name]) - log(wanted))) if wanted else default

    return pick


def _short_side(name: str) -> int:
    sides = {"0.5k": 512, "512": 512, "1k": 1024, "2k": 2048, "hd": 720, "fhd": 1080, "qhd": 1440, "uhd": 2160}
    return sides.get(name.lower()) or int(name.lower().rstrip("p"))


# ------------------------------------------------------------------------------------------------------------ duration


def allowed_seconds(*choices: float, convert: Callable[[float], Any] = round) -> Callable[[float], Any]:
    """The shortest allowed duration that is at least as long as the wanted one; the longest if there is none."""
    ordered = sorted(choices)
    return lambda seconds: convert(next((choice for choice in ordered if choice >= seconds - 1e-9), ordered[-1]))


def seconds_between(low: float, high: float, convert: Callable[[float], Any] = round) -> Callable[[float], Any]:
    return lambda seconds: convert(min(max(seconds, low), high))


def number_text(value: float) -> str:
    """A number as text: `5`, `7.5`."""
    return f"{value:g}"


def with_unit(unit: str) -> Callable[[float], str]:
    return lambda value: f"{value:g}{unit}"


# -------------------------------------------------------------------------------------------------------- input images


_LONG_BYTES = 128 * 1024  # of a file


def data_uri(image: InputFile) -> str | FileAsBase64:
    return _base64(image, f"data:{image.content_type};base64,")


def plain_base64(image: InputFile) -> str | FileAsBase64:
    return _base64(image)


def _base64(image: InputFile, head: str = "") -> str | FileAsBase64:
    """A text with the file in base64; that of a large one is encoded when it is sent."""
    text = FileAsBase64(image.data, head)
    return text if len(image.data) > _LONG_BYTES else str(text)


def file_url(file: InputFile) -> str:
    """Where the provider can fetch a file, for rows that are `by_url`."""
    return file.url


def inline_image(image: InputFile) -> dict[str, object]:
    """An image as Google's APIs take it inside a message."""
    return {"mimeType": image.content_type, "data": plain_base64(image)}


def first_image(convert: Callable[[InputFile], Any]) -> Callable[[Sequence[InputFile]], Any]:
    """The first image, converted."""
    return lambda images: convert(images[0])


def spread_images(convert: Callable[[InputFile], Any], count: int) -> Callable[[Sequence[InputFile]], tuple[Any, ...]]:
    """A value for each of `count` fields, the last of which may get none."""
    return lambda images: (*map(convert, images), *[None] * (count - len(images)))


def each_image(convert: Callable[[InputFile], Any]) -> Callable[[Sequence[InputFile]], list[Any]]:
    """A list of all images, converted."""
    return lambda images: [convert(image) for image in images]


def first_and_last(convert: Callable[[InputFile], Any]) -> Callable[[Sequence[InputFile]], tuple[Any, Any]]:
    """The image that a video begins with, and the one that it ends with or None."""
    return lambda images: (convert(images[0]), convert(images[1]) if len(images) > 1 else None)


# -------------------------------------------------------------------------------------------------------- other values


def on_off(on: Any, off: Any) -> Callable[[str], Any]:
    return lambda value: on if value == "on" else off


def lookup(table: dict[Any, Any]) -> Callable[[Any], Any]:
    """The provider's value for ours; a value that is not in the table is not sent."""
    return table.get


def both(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Any]]:
    """Two values for two fields, converted from the same value."""
    return lambda value: (first(value), second(value))


def nest_under(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function for `adjust_body` that puts all fields into one object with this name."""
    return lambda fields: {name: fields}
