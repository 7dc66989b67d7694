"""What a field of an endpoint may be, and the check of a value against it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, quoted
from penstock.long_bodies.buffers import Buffer

# -------------------------------------------------------------------------------------------------------------- fields


class UploadedFile(msgspec.Struct, frozen=True):
    """A file that a caller sent in a form."""

    data: Buffer
    filename: str = ""
    content_type: str = ""


# The Python types of decoded values. A boolean does not count as a number.
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "file": (UploadedFile,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an endpoint and its limits; a model may have narrower ones."""

    name: str
    types: tuple[str, ...]
    about: str
    required: bool = False
    default: Any = None
    low: float | None = None
    high: float | None = None
    one_of: tuple[Any, ...] = ()
    max_length: int | None = None
    handling: str | None = None
    alias_of: str | None = None  # the field for which this is another name
    has_parts: bool = False  # an object whose parts are values and lists, also in the brackets of a form
    python_types: frozenset[type] = field(init=False, repr=False)  # of decoded values

    def __post_init__(self) -> None:
        python_types = frozenset(kind for name in self.types for kind in _PYTHON_TYPES[name])
        object.__setattr__(self, "python_types", python_types)

    @property
    def takes_integers_only(self) -> bool:
        return "integer" in self.types and "number" not in self.types


Table = Mapping[str, Field]


def field_table(*rows: Field) -> Table:
    return {row.name: row for row in rows}


def _fields_of_type(kind: str) -> Callable[..., Field]:
    """A function that makes fields of one type, from a name, a description and the limits."""
    return lambda name, about, **limits: Field(name=name, types=(kind,), about=about, **limits)


text_field = _fields_of_type("string")
integer_field = _fields_of_type("integer")
number_field = _fields_of_type("number")
flag_field = _fields_of_type("boolean")
object_field = _fields_of_type("object")
array_field = _fields_of_type("array")


# --------------------------------------------------------------------------------------------------------------- checks

_ARTICLES = {"integer": "an integer", "object": "an object", "array": "an array"}


def check_field(row: Field, value: Any) -> Any:
    """Return the value; raise InvalidRequest, with a message that says what is allowed, if it does not fit the field.

    A whole number that was written as `2.0` is returned as an integer where the field takes no other number.
    """
    kind = type(value)
    if kind is float and value.is_integer() and row.takes_integers_only:
        value = int(value)
        kind = int
    if kind not in row.python_types:
        types = " or ".join(_ARTICLES.get(name, f"a {name}") for name in row.types)
        raise InvalidRequest(f"`{row.name}` must be {types}.", param=row.name)
    if row.one_of and value not in row.one_of:
        raise InvalidRequest(f"`{row.name}` must be one of {quoted(row.one_of)}.", param=row.name)
    if kind is str:
        _check_text(row, value)
    elif (kind is int or kind is float) and (row.low is not None or row.high is not None):
        _check_range(row, value)
    return value


def _check_text(row: Field, value: str) -> None:
    if row.max_length is not None and len(value) > row.max_length:
        raise InvalidRequest(f"`{row.name}` may have at most {row.max_length} characters.", param=row.name)
    if not value.strip() and (row.required or row.name in ("idempotency_key", "webhook_url", "size", "seconds")):
        raise InvalidRequest(f"`{row.name}` must not be empty.", param=row.name)


def _check_range(row: Field, value: float) -> None:
    too_low = row.low is not None and value < row.low
    too_high = row.high is not None and value > row.high
    if too_low or too_high or not value < inf:  # NaN is not, either
        if row.high is None:
            raise InvalidRequest(f"`{row.name}` must be at least {number_text(row.low)}.", param=row.name)
        limits = f"from {number_text(row.low)} to {number_text(row.high)}"
        raise InvalidRequest(f"`{row.name}` must be {limits}.", param=row.name)


def number_text(number: float | None) -> str:
    """A number as people write it: `0.5`, `4294967295`."""
    return str(int(number)) if number is not None and number == int(number) else str(number)
