"""Read numbers that a provider reports beside its outputs; a wrong one must not hide what was made and charged."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

_NOT_A_NUMBER = Decimal("nan")
_LARGEST = Decimal("1e15")
_SMALLEST = Decimal("1e-15")  # but zero
_NUMBER_CHARACTERS_MAX = 40


def value_at(reply: Any, *path: str | int) -> Any:
    """The value at a place in a reply: names of fields and numbers of items; None if there is nothing."""
    value = reply
    for name in path:
        if isinstance(name, str):
            value = value.get(name) if isinstance(value, dict) else None
        else:
            value = value[name] if isinstance(value, list) and len(value) > name >= -len(value) else None
    return value


def number_at(reply: Any, *path: str | int) -> Decimal | None:
    """The number at a place in a reply; None if there is nothing.

    What is there and is not a plausible number becomes NaN, with which one can calculate: a cost that is NaN is not
    charged, and a log line says so.
    """
    value = value_at(reply, *path)
    if value is None:
        return None
    text = str(value) if isinstance(value, int | float | str) else ""
    if len(text) > _NUMBER_CHARACTERS_MAX:
        return _NOT_A_NUMBER
    try:
        number = Decimal(text)
    except ArithmeticError:
        return _NOT_A_NUMBER
    if not number:
        return Decimal(0)
    is_plausible = number.is_finite() and _SMALLEST < number.copy_abs() < _LARGEST
    return number if is_plausible else _NOT_A_NUMBER


def fraction_at(reply: Any, *path: str | int) -> float | None:
    """The percentage at a place in a reply, as a part of 1; None if there is none."""
    percent = number_at(reply, *path)
    return None if percent is None or percent.is_nan() else float(percent) / 100


def usage_or_nothing(read: Callable[[Mapping[str, Any]], dict[str, int]], reported: Any) -> dict[str, int]:
    """The usage that `read` finds in what is reported; nothing if there is none or it is malformed."""
    try:
        return read(reported) if reported else {}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}
