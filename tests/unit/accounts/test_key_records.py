"""The values of a key: checked, stored and shown."""

from typing import Any

import pytest

from penstock.accounts.key_records import OPTIONS, KeyRow, KeyUsage, granted_scopes, key_columns, key_record
from penstock.errors import InvalidRequest
from penstock.values import Nanos


def test_options_become_columns_and_null_removes_a_limit() -> None:
    assert key_columns({"usd_per_month": "2.5", "models": ["a", "a", "b*"], "expires_at": "2026-01-01"}) == {
        "nanos_per_month": 2_500_000_000,
        "models": '["a","b*"]',
        "expires_at_ms": 1_767_225_600_000,
    }
    assert set(key_columns(dict.fromkeys(set(OPTIONS) - {"scopes"})).values()) == {None}
    assert key_columns({}) == {}


def test_bad_values_are_named() -> None:
    bad: dict[str, list[Any]] = {
        "name": [7, "x" * 201, "a\nb"],
        "scopes": ["admin", ["root"]],
        "requests_per_minute": [0, True, 1.5, 2**31],
        "usd_per_day": ["free", -1, [], 10**12],
        "usd_per_month": ["nan", {}],
        "models": [[], "flux", [7], [""], ["a*b"], ["x"] * 201],
        "expires_at": ["soon", 7, "2026-13-01"],
        "replay_mode": ["rewind"],
        "image_response_format": ["png", 1, ["url"]],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(InvalidRequest) as problem:
                key_columns({name: value})
            assert problem.value.param == name, value


def test_an_operator_reads_the_metrics_too() -> None:
    assert granted_scopes("operator") == {"operator", "metrics"}
    assert granted_scopes("admin metrics") == {"admin", "metrics"}
    assert granted_scopes("admin") == {"admin"}
    assert granted_scopes("") == frozenset()


def test_a_record_shows_limits_in_dollars() -> None:
    row = KeyRow(
        id="key_1",
        name=None,
        last_four="abcd",
        status="active",
        created_at_ms=0,
        revoked_at_ms=None,
        nanos_per_day=1_500_000_000,
        models='["flux"]',
        scopes="admin operator",
    )
    record = key_record(row, KeyUsage(1000, Nanos(5), Nanos(7)))
    assert (float(record["usd_per_day"]), record["usd_per_month"], record["models"]) == (1.5, None, ["flux"])
    assert (record["scopes"], record["last_used_at"]) == (["admin", "operator"], "1970-01-01T00:00:01.000Z")
    assert float(record["spent_this_month"]) == 7e-9
