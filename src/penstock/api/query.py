"""Parse query strings and check their values against the query parameters of a route."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from penstock.api.route import Query, Route
from penstock.errors import InvalidRequest, quoted

_MAX_BYTES = 8192
_AZURE_VERSION = "api-version"  # which clients that are set up for Azure add to every call
_MAX_PARAMETERS = 64
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_BOOLEANS = {"true": True, "false": False}
# In a time zone offset, an unescaped `+` arrives as a space.
_LOST_PLUS = re.compile(r"(?<=[0-9]) (?=[0-9]{2}:?[0-9]{2}$)")


def parse(query: bytes) -> dict[str, str]:
    """Return the parameters of a query string; raise InvalidRequest for one that is malformed or repeats a name."""
    if len(query) > _MAX_BYTES:
        raise InvalidRequest(f"The query string is longer than {_MAX_BYTES} bytes.")
    try:
        pairs = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
            separator="&",
        )
    except ValueError:
        raise InvalidRequest(f"The query string must be UTF-8 with at most {_MAX_PARAMETERS} parameters.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if "\0" in name or "\0" in value:
            raise InvalidRequest("The query string contains a NUL character.")
        if name in found:
            raise InvalidRequest(f"`{name}` was given more than once.", param=name)
        found[name] = value
    return found


def read(rows: Sequence[Query], query: Mapping[str, str]) -> dict[str, Any]:
    """Return a value for each row: what the caller sent, checked, or the default.

    An empty value means the default. An empty boolean is refused: who writes `?dryRun` does not mean false.
    """
    return {row.name: _read_row(row, query) for row in rows}


def _read_row(row: Query, query: Mapping[str, str]) -> Any:
    if row.type == "labels":
        return {name.removeprefix(row.name): value for name, value in query.items() if _is_of(row, name) and value}
    return _value(row, query[row.name]) if _is_given(row, query) else row.default


def _is_of(row: Query, name: str) -> bool:
    """Whether a parameter belongs to a row."""
    return name == row.name or (row.type == "labels" and name.startswith(row.name) and name != row.name)


def _is_given(row: Query, query: Mapping[str, str]) -> bool:
    return bool(query.get(row.name)) or (row.type == "boolean" and row.name in query)


def check_names(rows: Sequence[Query], query: Mapping[str, str]) -> None:
    """Raise InvalidRequest for a parameter that no row describes."""
    names = [row.name for row in rows]
    for name in query:
        if name != _AZURE_VERSION and not any(_is_of(row, name) for row in rows):
            allowed = f"allowed are {quoted(names)}" if names else "this path takes none"
            raise InvalidRequest(f"`{name[:64]}` is not a query parameter here; {allowed}.", param=name[:64])


def page_url(path: str, rows: Sequence[Query], query: Mapping[str, str], cursor: str, at: str | None) -> str | None:
    """Return path and query of another page: the same filters, and the cursor at another id; None for no id."""
    if at is None:
        return None
    filters = [row for row in rows if row.name not in ("starting_after", "ending_before")]
    kept = [(name, value) for name, value in query.items() if any(_is_of(row, name) for row in filters)]
    return f"{path}?{urlencode([*kept, (cursor, at)])}"


def _value(row: Query, text: str) -> Any:
    if row.type == "integer":
        return _integer(row, text)
    if row.type == "boolean":
        return _boolean(row, text)
    if row.type == "time":
        return _milliseconds(row, text)
    if row.one_of and text not in row.one_of:
        raise InvalidRequest(f"`{row.name}` must be one of {quoted(row.one_of)}.", param=row.name)
    return text


def _integer(row: Query, text: str) -> int:
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or (row.low is not None and number < row.low) or (row.high is not None and number > row.high):
        raise InvalidRequest(f"`{row.name}` must be a whole number from {row.low} to {row.high}.", param=row.name)
    return number


def _boolean(row: Query, text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise InvalidRequest(f"`{row.name}` must be one of `true`, `false`.", param=row.name) from None


def _milliseconds(row: Query, text: str) -> int:
    """Return a time in milliseconds. Both ends of a range are inclusive, so fractions are rounded into the range."""
    try:
        time = datetime.fromisoformat(_LOST_PLUS.sub("+", text))
        exact = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"`{row.name}` must be an ISO 8601 date and time such as `2026-01-31T12:00:00Z`.", param=row.name
        ) from None
    exact = round(exact, 3)  # a float of this size is exact to less than a microsecond
    return math.ceil(exact) if row.name.endswith("_after") else math.floor(exact)


def read_all(route: Route, query_string: bytes) -> Mapping[str, str]:
    """Return the parameters of a call; raise InvalidRequest if they are not those of its route."""
    found = parse(query_string)
    read(route.query, found)
    if route.refuses_unknown_query:
        check_names(route.query, found)
    return found
