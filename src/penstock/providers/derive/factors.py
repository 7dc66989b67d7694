"""Recognise by how much a model upscales."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.providers.derive.draft import Draft, choices, is_number, limit, row_for
from penstock.providers.spec import Param, converted, emulated

_FACTORS = ("scale_factor", "upscale_factor", "upscaling_factor", "upscale_ratio", "scale", "factor", "upscale")
_VIDEO_FACTOR = 2  # by which a video is upscaled if neither the caller nor the schema says it


def take_factor(draft: Draft, makes: str, *, has_frame: bool) -> list[Param]:
    """The row for `scale_factor`. Of videos it has a default, by which the gateway knows the size of the output; where
    the model has no field for it, that size decides the resolution, if there is a field for that.
    """
    row = _factor(draft)
    if row is None:
        return [emulated("scale_factor", default=_VIDEO_FACTOR)] if makes == "video" and has_frame else []
    if makes == "video" and row.default is None:
        return [replace(row, default=min(row.one_of, default=_VIDEO_FACTOR))]
    return [row]


def _factor(draft: Draft) -> Param | None:
    field = draft.take(_FACTORS, lambda schema: is_number(schema) or bool(_factors(schema)))
    if field is None:
        return None
    known = _factors(field.schema)
    default = _number(field.default)
    if known:
        return converted("scale_factor", to=field.name, convert=known.get, one_of=tuple(known), default=default)
    low, high = limit(field.schema, "minimum"), limit(field.schema, "maximum")
    return row_for("scale_factor", field, low=low, high=high, default=default)


def _factors(schema: Mapping[str, Any]) -> dict[float, Any]:
    """The factors that a schema lists, such as `2`, `"4"` or `"4x"`, and its own words for them."""
    return {factor: value for value in choices(schema) if (factor := _number(value)) is not None}


def _number(value: Any) -> float | None:
    found = re.fullmatch(r"x?(\d+(?:\.\d+)?)x?", str(value).strip().lower())
    return float(found[1]) if found else None


def without_factors(rows: tuple[Param, ...]) -> tuple[Param, ...]:
    """The rows without factors by which a model that is not called to upscale makes its output larger."""
    return tuple(row for row in rows if row.name == "scale_factor" or row.name not in _FACTORS or row.required)
