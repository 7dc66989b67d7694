"""How much to hold for a model with one price for all resolutions, with and without sound, and for any input video."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from math import ceil
from typing import Any

from penstock.json_schema import Schema
from penstock.providers.derive.draft import choices
from penstock.providers.derive.resolutions import resolution_side
from penstock.providers.prices import SENT
from penstock.providers.spec import Param, Price
from penstock.values import INPUT_VIDEOS

_CEILING_MAX = 10
_SOUND_FACTOR = 2
_NAMED_VIDEOS = ("video_url", "input_video_url", "video", "input_video")
_INPUT_VIDEO_FACTOR = 6  # a video that the caller names may have any length; a minute is held for it
_MEASURED_VIDEO_FACTOR = 2  # of a video whose length is known, the input may be billed beside the output
_UPSCALED_VIDEO_FACTOR = 10  # a second of one that is upscaled by a factor is billed by its size
_FRAME_RATE_FACTOR = 2  # a video may have 60 frames a second; 30 are counted
_COUNTED_SIDE = 1024  # of the square that is counted for a video whose size is not sent
_WIDE = 16 / 9
# A listed price may be a fraction of what one output costs, of which the provider then bills many. Below these prices
# the second row says what is held at least: dollars for an image, or for a second of a video.
_LOW_USD: Mapping[bool, Mapping[str, str]] = {
    False: {"image": "0.02", "call": "0.02", "compute_second": "0.0003"},
    True: {"second": "0.02", "call": "0.10", "compute_second": "0.0003"},
}
_IMAGE_LEAST_USD = Decimal("0.10")
_SECOND_LEAST_USD = "0.30"


def with_ceilings(schema: Schema, rows: Sequence[Param], prices: Sequence[Price]) -> tuple[Price, ...]:
    """The same prices, held with a ceiling: by area for each resolution that the model offers, and twice with sound.

    A price by the second is held for more seconds if the output is as long as a video that the caller names, or if the
    model takes a video that the gateway measures. One by the megapixels of all frames is held for twice as many frames;
    where the size is not sent, for the highest resolution. `rows` are the table that was made of the schema.
    """
    if any(price.unit == "video_megapixel" for price in prices):
        return _with_frame_ceilings(schema, rows, prices)
    has_sound = any(row.name == "generate_audio" and row.to for row in rows)
    factor = _SOUND_FACTOR if has_sound else 1
    ceilings = {
        (name, value): _ceiling(factor * area)
        for row in rows
        if row.name == "frame"
        for name in row.to
        for value, area in _areas(_property(schema, name)).items()
    }
    highest = max(ceilings.values(), default=factor)
    length = _length_factor(rows)
    return tuple(
        replace(made, ceiling=str(int(made.ceiling) * length)) if made.unit == "second" else made
        for price in prices
        for made in (
            *(
                replace(price, ceiling=str(ceiling), when={f"{SENT}{name}": value})
                for (name, value), ceiling in ceilings.items()
            ),
            replace(price, ceiling=str(highest)),
        )
    )


def with_least(prices: Sequence[Price], *, is_video: bool) -> tuple[Price, ...]:
    """The same prices, of which those that are too low to be what an output costs are held with an amount for that."""
    low = _LOW_USD[is_video]
    return tuple(
        _with_least(price, is_video=is_video) if Decimal(price.usd) < Decimal(low.get(price.unit, "0")) else price
        for price in prices
    )


def _with_least(price: Price, *, is_video: bool) -> Price:
    if is_video:
        return replace(price, least_second_usd=_SECOND_LEAST_USD)
    if price.unit == "compute_second":  # how long it computes is not known before
        return replace(price, least_usd=str(_IMAGE_LEAST_USD))
    return replace(price, least_usd=str(min(_IMAGE_LEAST_USD, _CEILING_MAX * Decimal(price.usd))))


def _with_frame_ceilings(schema: Schema, rows: Sequence[Param], prices: Sequence[Price]) -> tuple[Price, ...]:
    to = [name for row in rows if row.name == "frame" for name in row.to]
    listed = {(name, value): side for name in to for value, side in _sides(_property(schema, name)).items()}
    factor = _FRAME_RATE_FACTOR * (_INPUT_VIDEO_FACTOR if _is_as_long_as_named_video(rows) else 1)
    largest = max(1.0, _WIDE * (max(listed.values(), default=0) / _COUNTED_SIDE) ** 2)
    return tuple(
        made
        for price in prices
        for made in (
            *(replace(price, ceiling=str(factor), when={f"{SENT}{name}": value}) for name, value in listed),
            replace(price, ceiling=str(ceil(factor * largest))),
        )
    )


def _property(schema: Schema, name: str) -> Schema:
    found: Schema = schema.get("properties", {}).get(name) or {}
    return found


def _is_as_long_as_named_video(rows: Sequence[Param]) -> bool:
    """Whether a caller may name a video that decides how long the output is."""
    names = {row.name for row in rows if row.to}
    return "seconds" not in names and bool(names.intersection(_NAMED_VIDEOS))


def _length_factor(rows: Sequence[Param]) -> int:
    names = {row.name for row in rows if row.to}
    if names.intersection(INPUT_VIDEOS):
        return _UPSCALED_VIDEO_FACTOR if "scale_factor" in names else _MEASURED_VIDEO_FACTOR
    return _INPUT_VIDEO_FACTOR if _is_as_long_as_named_video(rows) else 1


def _sides(schema: Schema) -> dict[Any, float]:
    """The short side of each resolution that a schema lists, in pixels."""
    return {value: side for value in choices(schema) if (side := resolution_side(value))}


def _areas(schema: Schema) -> dict[Any, float]:
    """How many times the area of the lowest resolution each one has."""
    sides = _sides(schema)
    lowest = min(sides.values(), default=1)
    return {value: (side / lowest) ** 2 for value, side in sides.items()}


def _ceiling(factor: float) -> int:
    return min(ceil(factor), _CEILING_MAX)
