"""How much to hold for a model with one price for all resolutions, with and without sound, and for any input video."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from penstock.providers.derive.draft import choices
from penstock.providers.derive.resolutions import resolution_side
from penstock.json_schema import Schema
from penstock.providers.spec import Param, Price
from penstock.values import INPUT_VIDEOS

_CEILING_MAX = 10
_SOUND_FACTOR = 2
_NAMED_VIDEOS = ("video_url", "input_video_url", "video", "input_video")
_INPUT_VIDEO_FACTOR = 6  # a video that the caller names may have any length; a minute is held for it
_MEASURED_VIDEO_FACTOR = 2  # of a video whose length is known, the input may be billed beside the output
_UPSCALED_VIDEO_FACTOR = 10  # a second of one that is upscaled by a factor is billed by its size


def with_ceilings(schema: Schema, rows: Sequence[Param], prices: Sequence[Price]) -> tuple[Price, ...]:
    """The same prices, held with a ceiling: by area for each resolution that the model offers, and twice with sound.

    A price by the second is held for more seconds if the output is as long as a video that the caller names, or if the
    model takes a video that the gateway measures. `rows` are the table that was made of the schema.
    """
    has_sound = any(row.name == "generate_audio" and row.to for row in rows)
    factor = _SOUND_FACTOR if has_sound else 1
    ceilings = {
        (name, value): _ceiling(factor * area)
        for row in rows
        if row.name == "frame"
        for name in row.to
        for value, area in _areas(schema.get("properties", {}).get(name) or {}).items()
    }
    highest = max(ceilings.values(), default=factor)
    length = _length_factor(rows)
    return tuple(
        replace(made, ceiling=str(int(made.ceiling) * length)) if made.unit == "second" else made
        for price in prices
        for made in (
            *(
                replace(price, ceiling=str(ceiling), when={f"sent.{name}": value})
                for (name, value), ceiling in ceilings.items()
            ),
            replace(price, ceiling=str(highest)),
        )
    )


def _length_factor(rows: Sequence[Param]) -> int:
    names = {row.name for row in rows if row.to}
    if names.intersection(INPUT_VIDEOS):
        return _UPSCALED_VIDEO_FACTOR if "scale_factor" in names else _MEASURED_VIDEO_FACTOR
    return _INPUT_VIDEO_FACTOR if "seconds" not in names and names.intersection(_NAMED_VIDEOS) else 1


def _areas(schema: Schema) -> dict[Any, float]:
    """How many times the area of the lowest resolution each one has."""
    sides = {value: side for value in choices(schema) if (side := resolution_side(value))}
    lowest = min(sides.values(), default=1)
    return {value: (side / lowest) ** 2 for value, side in sides.items()}


def _ceiling(factor: float) -> int:
    return min(ceil(factor), _CEILING_MAX)
