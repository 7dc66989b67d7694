"""Numbers that providers report: wrong ones are not charged, and do not hide what was made."""

from decimal import Decimal
from typing import Any

import pytest

from penstock.providers.reported import fraction_at, number_at, usage_or_nothing, value_at


def test_a_value_is_found_by_its_path() -> None:
    reply = {"usage": {"costs": [{"usd": 3}]}}
    assert value_at(reply, "usage", "costs", -1, "usd") == 3
    for path in (("usage", "costs", 1), ("usage", "costs", -2), ("usage", 0), ("costs",), ("usage", "costs", "usd")):
        assert value_at(reply, *path) is None, path


@pytest.mark.parametrize("value", [4, 0.25, "0.25", "4", -1, 0, 0.0, "0e-999999999", 1e-9])
def test_numbers_of_any_form_are_read(value: Any) -> None:
    assert number_at({"cost": value}, "cost") == Decimal(str(value))


@pytest.mark.parametrize(
    "value",
    ["x", "", [], {}, True, "nan", "snan", "inf", float("inf"), float("nan"), 1e30, 10**400, "1e999999999",
     "1e-999999999", "1" + "0" * 10_000_000],
)  # fmt: skip
def test_what_is_not_a_plausible_number_is_nan_and_short(value: Any) -> None:
    """One can calculate with it, and a text of it has a few characters."""
    number = number_at({"cost": value}, "cost")
    assert number is not None
    assert f"{number * 2 + 1:f}" == "NaN"


def test_no_number_is_none() -> None:
    assert number_at({"cost": None}, "cost") is None
    assert number_at({}, "cost") is None
    assert number_at("x", "cost") is None


@pytest.mark.parametrize(("percent", "fraction"), [(40, 0.4), ("40", 0.4), (None, None), ("x", None), ([], None)])
def test_percentages(percent: Any, fraction: float | None) -> None:
    assert fraction_at({"progress": percent}, "progress") == fraction


@pytest.mark.parametrize("reported", [None, {}, [], "x", 7, {"tokens": {}}, {"tokens": None}, {"tokens": "x"}])
def test_malformed_usage_is_left_out(reported: Any) -> None:
    assert usage_or_nothing(lambda usage: {"output": usage["tokens"]["image"] + 0}, reported) == {}
    assert usage_or_nothing(lambda usage: {"output": usage["tokens"]}, {"tokens": 7}) == {"output": 7}
