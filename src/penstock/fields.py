"""Check one value against one row of a parameter table."""

from collections.abc import Mapping
from math import inf
from typing import Any

from penstock.errors import InvalidRequest
from penstock.schema import Field, Sent

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "file": (Sent,),
}
_ARTICLES = {"integer": "an integer", "object": "an object", "array": "an array"}


def check_field(row: Field, value: Any) -> None:
    """One value against one row; the message says what is allowed."""
    if not any(_is(value, kind) for kind in row.types):
        words = " or ".join(_ARTICLES.get(kind, f"a {kind}") for kind in row.types)
        raise InvalidRequest(f"`{row.name}` must be {words}.", param=row.name)
    if row.one_of and value not in row.one_of:
        allowed = ", ".join(f"`{choice}`" for choice in row.one_of)
        raise InvalidRequest(f"`{row.name}` must be one of {allowed}.", param=row.name)
    if isinstance(value, str):
        _check_text(row, value)
    elif isinstance(value, int | float) and (row.low is not None or row.high is not None):
        _check_range(row, value)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return False
    return isinstance(value, _TYPES[kind])


def _check_text(row: Field, value: str) -> None:
    if row.longest is not None and len(value) > row.longest:
        raise InvalidRequest(f"`{row.name}` may have at most {row.longest} characters.", param=row.name)
    if not value.strip() and (row.required or row.name in ("idempotency_key", "webhook_url", "size", "seconds")):
        raise InvalidRequest(f"`{row.name}` must not be empty.", param=row.name)


def _check_range(row: Field, value: float) -> None:
    too_low = row.low is not None and value < row.low
    too_high = row.high is not None and value > row.high
    if too_low or too_high or not value < inf:  # as NaN is, too
        if row.high is None:
            raise InvalidRequest(f"`{row.name}` must be at least {row.low:g}.", param=row.name)
        raise InvalidRequest(f"`{row.name}` must be from {row.low:g} to {row.high:g}.", param=row.name)
