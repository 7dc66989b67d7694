"""How much to hold for a model whose catalogue has one price for all resolutions, with and without sound."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from penstock.providers.derive.draft import choices
from penstock.providers.derive.resolutions import resolution_side
from penstock.json_schema import Schema
from penstock.providers.spec import Param, Price

_CEILING_MAX = 10
_SOUND_FACTOR = 2


def with_ceilings(schema: Schema, rows: Sequence[Param], prices: Sequence[Price]) -> tuple[Price, ...]:
    """The same prices, held with a ceiling: by area for each resolution that the model offers, and twice with sound.

    `rows` are the table that was made of the schema.
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
    return tuple(
        made
        for price in prices
        for made in (
            *(
                replace(price, ceiling=str(ceiling), when={f"sent.{name}": value})
                for (name, value), ceiling in ceilings.items()
            ),
            replace(price, ceiling=str(highest)),
        )
    )


def _areas(schema: Schema) -> dict[Any, float]:
    """How many times the area of the lowest resolution each one has."""
    sides = {value: side for value in choices(schema) if (side := resolution_side(value))}
    lowest = min(sides.values(), default=1)
    return {value: (side / lowest) ** 2 for value, side in sides.items()}


def _ceiling(factor: float) -> int:
    return min(ceil(factor), _CEILING_MAX)
