"""The fields of JSON bodies of the native API."""

from typing import Any

import pytest

from penstock.api.fields import checked_fields
from penstock.errors import InvalidRequest
from penstock.fields import Field

FIELDS = {
    "name": Field(name="name", types=("string",), about="Name.", required=True, max_length=5),
    "count": Field(name="count", types=("integer",), about="Count.", low=1, high=9),
}


def test_known_fields_are_returned_and_null_means_absent() -> None:
    assert checked_fields({"name": "a", "count": 3.0}, FIELDS) == {"name": "a", "count": 3}
    assert checked_fields({"name": "a", "count": None}, FIELDS) == {"name": "a"}
    assert checked_fields({"name": "a", "count": None}, FIELDS, keeps_null=True) == {"name": "a", "count": None}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": None}, "name"),
        ({"name": "a", "count": 0}, "count"),
        ({"name": "a", "hue": 1}, "hue"),
    ],
)
def test_missing_unknown_and_bad_fields_are_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as problem:
        checked_fields(body, FIELDS)
    assert problem.value.param == param
