"""Checking a value against its field."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.field_types import Field, UploadedFile, check_field

FILE = UploadedFile(b"x")


def row(*types: str, **limits: Any) -> Field:
    return Field(name="x", types=types, about="", **limits)


@pytest.mark.parametrize(
    ("kind", "allowed", "others"),
    [
        ("string", ["", "a"], [1, 1.5, True, [], {}, FILE]),
        ("integer", [0, -1, 10**30], ["1", 1.5, True, [], {}]),
        ("number", [0, 1.5, -2], ["1", True, [], {}]),
        ("boolean", [True, False], ["true", 1, 0, []]),
        ("object", [{}, {"a": 1}], ["{}", [], 1]),
        ("array", [[], [1]], ["[]", {}, 1, ()]),
        ("file", [FILE], ["x", b"x", {}]),
    ],
)
def test_types_are_those_of_json(kind: str, allowed: list[Any], others: list[Any]) -> None:
    for value in allowed:
        check_field(row(kind), value)
    for value in others:
        with pytest.raises(InvalidRequest) as caught:
            check_field(row(kind), value)
        assert caught.value.param == "x"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (row("string"), 1, "`x` must be a string."),
        (row("integer"), "1", "`x` must be an integer."),
        (row("string", "number"), [], "`x` must be a string or a number."),
        (row("object", "array"), 1, "`x` must be an object or an array."),
        (row("string", one_of=("a", "b")), "c", "`x` must be one of `a`, `b`."),
        (row("string", max_length=3), "four", "`x` may have at most 3 characters."),
        (row("string", required=True), " \n", "`x` must not be empty."),
        (row("number", low=0, high=2), 2.1, "`x` must be from 0 to 2."),
        (row("number", low=0, high=2), float("nan"), "`x` must be from 0 to 2."),
        (row("integer", low=1), 0, "`x` must be at least 1."),
        (row("number", low=1), float("inf"), "`x` must be at least 1."),
        (row("integer", low=1, high=9), 10**400, "`x` must be from 1 to 9."),
    ],
)
def test_the_message_says_what_is_allowed(field: Field, value: Any, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_field(field, value)
    assert caught.value.message == words


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (row("string", one_of=("a", "b")), ["a", "b"]),
        (row("string", max_length=3), ["", "abc", "🦊🦊🦊"]),
        (row("number", low=-2, high=2), [-2, 2, 0.5]),
        (row("integer", low=1), [1, 10**400]),
        (row("string"), ["", " "]),
    ],
)
def test_values_within_the_limits_are_allowed(field: Field, values: list[Any]) -> None:
    for value in values:
        check_field(field, value)
