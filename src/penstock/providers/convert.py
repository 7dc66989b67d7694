"""Conversions that provider tables share; one value in, one value out."""

import base64
from collections.abc import Callable, Sequence
from math import ceil, floor, log
from typing import Any

from penstock.values import SHORT_SIDES, Frame, InputImage

# --------------------------------------------------------------------------------------------------------------- shape


def closest(*choices: str) -> Callable[[Frame], str]:
    """The choice nearest in shape and, among equals, in area; for lists such as `16:9` or `1024x1024`."""
    frames = {choice: Frame.parse(choice) for choice in choices}
    return lambda frame: min(frames, key=lambda choice: _distance(frames[choice], frame))


def relabelled(choices: dict[str, str]) -> Callable[[Frame], str]:
    """As `closest`, for providers with words of their own for their shapes: {`16:9`: `landscape`}."""
    pick = closest(*choices)
    return lambda frame: choices[pick(frame)]


def _distance(choice: Frame, wanted: Frame) -> tuple[float, float]:
    shape = abs(log(choice.width / choice.height) - log(wanted.width / wanted.height))
    if not (choice.exact and (wanted.exact or wanted.resolution)):
        return round(shape, 6), 0.0
    aim = wanted.scaled(1024)
    return round(shape, 6), abs(log(choice.width * choice.height) - log(aim.width * aim.height))


def pixels(
    short_side: int = 1024,
    multiple: int = 1,
    smallest: int = 16,
    largest: int = 16_384,
    most: int | None = None,
    least: int = 1,
) -> Callable[[Frame], tuple[int, int]]:
    """Width and height, rounded to a multiple and moved into the limits in the same shape; the area is at least `least`
    and at most `most`.

    Where shape and limits cannot both be had, the limits are kept.
    """
    low, high = ceil(smallest / multiple) * multiple, largest // multiple * multiple

    def fit(frame: Frame) -> tuple[int, int]:
        width, height = frame.scaled(short_side).sides
        scale = min(1.0, high / max(width, height))
        if most:
            scale = min(scale, (most / (width * height)) ** 0.5)
        scale = max(scale, low / min(width, height), (least / (width * height)) ** 0.5)

        def snapped(by: Callable[[float], int]) -> tuple[int, int]:
            wide, tall = (min(max(by(side * scale / multiple) * multiple, low), high) for side in (width, height))
            return wide, tall

        wide, tall = snapped(round)
        if wide * tall < least:
            wide, tall = snapped(ceil)
        if most and wide * tall > most:
            wide, tall = snapped(floor)
        if most and wide * tall > most:  # one side is as short as it may be: the other has to give
            rest = max(low, most // min(wide, tall) // multiple * multiple)
            wide, tall = (rest, tall) if wide > tall else (wide, rest)
        return wide, tall

    return fit


def joined(by: Callable[[Frame], tuple[int, int]], separator: str = "x") -> Callable[[Frame], str]:
    """Pixels as one word: `1024x768`, `1024*768`."""
    return lambda frame: separator.join(map(str, by(frame)))


def tier(*names: str, default: str | None = None) -> Callable[[Frame], str | None]:
    """The provider's word for a resolution, such as `720p`, `1080P` or `2K`, nearest to what was asked for."""
    # Pictures come in 1K, 2K and 4K of square pixels; for films 4K is the word for 2160p.
    four = 4096 if {"1k", "2k"} & {name.lower() for name in names} else 2160
    sides = {name: four if name.lower() == "4k" else _short_side(name) for name in names}

    def pick(frame: Frame) -> str | None:
        if frame.resolution:
            wanted = SHORT_SIDES[frame.resolution]
        elif frame.exact:
            wanted = min(frame.sides)
        else:
            return default
        return min(sides, key=lambda name: abs(log(sides[name]) - log(wanted)))

    return pick


def _short_side(name: str) -> int:
    words = {"0.5k": 512, "512": 512, "1k": 1024, "2k": 2048, "hd": 720, "fhd": 1080, "qhd": 1440, "uhd": 2160}
    return words.get(name.lower()) or int(name.lower().rstrip("p"))


# ------------------------------------------------------------------------------------------------------------ duration


def legal_seconds(*choices: float, form: Callable[[float], Any] = round) -> Callable[[float], Any]:
    """The shortest legal duration that is not shorter than the one asked for; the longest when all are."""
    ordered = sorted(choices)
    return lambda seconds: form(next((choice for choice in ordered if choice >= seconds - 1e-9), ordered[-1]))


def seconds_between(low: float, high: float, form: Callable[[float], Any] = round) -> Callable[[float], Any]:
    return lambda seconds: form(min(max(seconds, low), high))


def number_word(value: float) -> str:
    """`5`, `7.5`: a number as providers that want text write it."""
    return f"{value:g}"


def with_unit(unit: str) -> Callable[[float], str]:
    return lambda value: f"{value:g}{unit}"


# ---------------------------------------------------------------------------------------------------------- references


def data_uri(reference: InputImage) -> str:
    return f"data:{reference.content_type};base64,{plain_base64(reference)}"


def plain_base64(reference: InputImage) -> str:
    return base64.b64encode(reference.data).decode("ascii")


def first(by: Callable[[InputImage], Any]) -> Callable[[Sequence[InputImage]], Any]:
    return lambda references: by(references[0])


def each(by: Callable[[InputImage], Any]) -> Callable[[Sequence[InputImage]], list[Any]]:
    return lambda references: [by(reference) for reference in references]


def inline_part(reference: InputImage) -> dict[str, str]:
    """Google's form of a picture inside a message."""
    return {"mimeType": reference.content_type, "data": plain_base64(reference)}


def ends(by: Callable[[InputImage], Any]) -> Callable[[Sequence[InputImage]], tuple[Any, Any]]:
    """The picture a film begins with and, if there is a second one, the picture it ends with."""
    return lambda references: (by(references[0]), by(references[1]) if len(references) > 1 else None)


# --------------------------------------------------------------------------------------------------------------- words


def on_off(on: Any, off: Any) -> Callable[[str], Any]:
    return lambda value: on if value == "on" else off


def word(table: dict[Any, Any]) -> Callable[[Any], Any]:
    """The provider's word for ours; a value without one is not sent."""
    return table.get


def both(one: Callable[[Any], Any], other: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Any]]:
    """Two fields out of one value."""
    return lambda value: (one(value), other(value))
