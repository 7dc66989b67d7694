"""Query strings: parsing, checked values, and URLs of other pages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import query
from penstock.api.route import Query
from penstock.errors import InvalidRequest

LIMIT = Query(name="limit", type="integer", default=20, low=1, high=100, about="How many.")
STATE = Query(name="status", one_of=("active", "revoked"), about="State.")
SUMMARY = Query(name="summary", type="boolean", default=False, about="Summary.")
AFTER = Query(name="created_after", type="time", about="From.")
BEFORE = Query(name="created_before", type="time", about="Until.")
CURSOR = Query(name="starting_after", about="Cursor.")
ROWS = (LIMIT, STATE, SUMMARY, AFTER, BEFORE, CURSOR)


def value(name: str, text: str) -> Any:
    return query.read(ROWS, {name: text})[name]


def refused(name: str, text: str) -> str:
    with pytest.raises(InvalidRequest) as problem:
        query.read(ROWS, {name: text})
    assert problem.value.param == name
    return problem.value.message


def test_query_parameters_are_decoded() -> None:
    assert query.parse(b"a=1&b=x%20y+z&c=&d=%C3%A9") == {"a": "1", "b": "x y z", "c": "", "d": "é"}


@pytest.mark.parametrize("sent", [b"a=%00", b"%00=a", b"a=%ff", b"a=1&a=2", b"&".join(b"x%d=1" % n for n in range(65))])
def test_an_ambiguous_query_string_is_refused(sent: bytes) -> None:
    with pytest.raises(InvalidRequest):
        query.parse(sent)


def test_a_query_string_has_a_maximum_length() -> None:
    query.parse(b"a=" + b"x" * 8000)
    with pytest.raises(InvalidRequest, match="8192"):
        query.parse(b"a=" + b"x" * 8192)


@given(st.binary(max_size=200))
def test_random_bytes_are_parsed_or_refused(sent: bytes) -> None:
    try:
        found = query.parse(sent.decode("ascii", "ignore").encode())
        query.read(ROWS, found)
    except InvalidRequest:
        return


def test_a_missing_parameter_has_its_default() -> None:
    assert query.read(ROWS, {"other": "x"}) == {
        "limit": 20,
        "status": None,
        "summary": False,
        "created_after": None,
        "created_before": None,
        "starting_after": None,
    }


def test_integers_must_be_in_range() -> None:
    assert (value("limit", "1"), value("limit", "100")) == (1, 100)
    for text in ("0", "101", "-1", "1.0", "1e1", " 1", "+1", "0x1", "ten", "null", "١", "9" * 5000):
        assert refused("limit", text) == "`limit` must be a whole number from 1 to 100."


def test_booleans_must_be_true_or_false() -> None:
    assert [value("summary", text) for text in ("true", "false", "True", "FALSE")] == [True, False, True, False]
    for text in ("1", "0", "yes", "null", "truee"):
        assert refused("summary", text) == "`summary` must be one of `true`, `false`."


def test_the_message_about_a_bad_value_lists_the_allowed_values() -> None:
    assert value("status", "active") == "active"
    for text in ("Active", "deleted", "active,revoked"):
        assert refused("status", text) == "`status` must be one of `active`, `revoked`."


def test_an_empty_boolean_is_refused() -> None:
    """`?dryRun` without a value must not make, and charge, what was to be estimated."""
    assert refused("summary", "") == "`summary` must be one of `true`, `false`."


def test_an_empty_value_is_the_default() -> None:
    assert value("starting_after", "req_1") == "req_1"
    assert value("starting_after", "") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T12:00:00", 1_769_860_800_000),  # no zone: UTC
        ("2026-01-31T13:00:00+01:00", 1_769_860_800_000),
        ("2026-01-31T13:00:00 01:00", 1_769_860_800_000),  # the plus was not escaped
        ("2026-01-31", 1_769_817_600_000),
        ("2026-01-31T12:00:00.123Z", 1_769_860_800_123),
        ("1969-12-31T23:59:59Z", -1000),
        ("0001-01-01T00:00:00+23:59", -62_135_596_800_000 - 86_340_000),
        ("9999-12-31T23:59:59-23:59", 253_402_300_799_000 + 86_340_000),
    ],
)
def test_times_are_iso_8601(text: str, expected: int) -> None:
    assert value("created_after", text) == expected
    assert value("created_before", text) == expected


def test_times_are_rounded_into_their_range() -> None:
    assert value("created_after", "2026-01-31T12:00:00.1231Z") == 1_769_860_800_124
    assert value("created_before", "2026-01-31T12:00:00.1239Z") == 1_769_860_800_123


@pytest.mark.parametrize(
    "text", ["yesterday", "1769860800", "2026-13-01", "2026-01-31T25:00:00Z", "2026-01-31T12:00:00ZZ"]
)
def test_a_bad_time_is_refused_with_an_example(text: str) -> None:
    assert "2026-01-31T12:00:00Z" in refused("created_after", text)


def test_a_page_url_keeps_the_filters_and_moves_the_cursor() -> None:
    asked = {
        "limit": "5",
        "status": "active",
        "starting_after": "key_1",
        "unknown": "x",
        "created_after": "2026-01-01T00:00:00+01:00",
    }
    assert query.page_url("/v1/keys", ROWS, asked, "starting_after", "key_9") == (
        "/v1/keys?limit=5&status=active&created_after=2026-01-01T00%3A00%3A00%2B01%3A00&starting_after=key_9"
    )
    assert query.page_url("/v1/keys", ROWS, {}, "ending_before", "key_2") == "/v1/keys?ending_before=key_2"
    assert query.page_url("/v1/keys", ROWS, asked, "starting_after", None) is None
