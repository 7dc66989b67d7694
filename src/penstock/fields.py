"""Check one value against one row of a parameter table."""

from math import inf
from typing import Any

from penstock.errors import InvalidRequest
from penstock.schema import Field

_ARTICLES = {"integer": "an integer", "object": "an object", "array": "an array"}


def check_field(row: Field, value: Any) -> None:
    """One value against one row; the message says what is allowed."""
    kind = type(value)
    if kind not in row.accepts:
        words = " or ".join(_ARTICLES.get(word, f"a {word}") for word in row.types)
        raise InvalidRequest(f"`{row.name}` must be {words}.", param=row.name)
    if row.one_of and value not in row.one_of:
        allowed = ", ".join(f"`{choice}`" for choice in row.one_of)
        raise InvalidRequest(f"`{row.name}` must be one of {allowed}.", param=row.name)
    if kind is str:
        _check_text(row, value)
    elif (kind is int or kind is float) and (row.low is not None or row.high is not None):
        _check_range(row, value)


def _check_text(row: Field, value: str) -> None:
    if row.max_length is not None and len(value) > row.max_length:
        raise InvalidRequest(f"`{row.name}` may have at most {row.max_length} characters.", param=row.name)
    if not value.strip() and (row.required or row.name in ("idempotency_key", "webhook_url", "size", "seconds")):
        raise InvalidRequest(f"`{row.name}` must not be empty.", param=row.name)


def _check_range(row: Field, value: float) -> None:
    too_low = row.low is not None and value < row.low
    too_high = row.high is not None and value > row.high
    if too_low or too_high or not value < inf:  # as NaN is, too
        if row.high is None:
            raise InvalidRequest(f"`{row.name}` must be at least {row.low:g}.", param=row.name)
        raise InvalidRequest(f"`{row.name}` must be from {row.low:g} to {row.high:g}.", param=row.name)
