"""What can be set of an account at a vendor, and what is shown of it."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.models.account_values import account_columns, account_record
from penstock.upstream.vendor_account import VendorAccount


def test_what_is_given_becomes_columns_and_null_the_default() -> None:
    assert account_columns({"weight": None, "concurrent": None, "name": None}) == {
        "weight": 1,
        "concurrent": None,
        "name": "",
    }
    assert account_columns({"usd_per_month": 1.5, "requests_per_minute": 60, "models": ["a*"]}) == {
        "nanos_per_month": 1_500_000_000,
        "requests_per_minute": 60,
        "models": '["a*"]',
    }
    assert account_columns({}) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight", 101),
        ("weight", True),
        ("concurrent", 0),
        ("requests_per_minute", 1.5),
        ("usd_per_month", 0),
        ("usd_per_month", "1"),
        ("usd_per_month", float("nan")),
        ("models", [""]),
        ("status", "draining"),
    ],
)
def test_bad_values_are_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        account_columns({name: value})
    assert caught.value.param == name


def test_the_record_says_what_stands_in_the_way_of_calls() -> None:
    account = VendorAccount("acc_1", "fal", "eu", "secret", concurrent=1)
    assert account_record(account)["health"]["state"] == "works"
    account.limits.begin()
    assert account_record(account)["health"]["state"] == "limited"
    account.nanos_per_month = account.spent = 5
    assert account_record(account)["health"]["state"] == "spent"
    account.failed_status = 402
    assert account_record(account)["health"]["state"] == "refused"
    assert "secret" not in str(account_record(account))
