"""Changes of several calls are sorted by table and row, so that transactions do not wait for each other in a circle."""

import pytest

from penstock.store.base import Change
from penstock.store.lock_order import in_lock_order


def test_changes_are_sorted_by_query_and_by_row() -> None:
    changes: list[Change] = [
        ("add_file", {"request_id": "b"}),
        ("end_request", {"id": "b"}),
        ("add_file", {"request_id": "a"}),
        ("end_request", {"id": "a"}),
        ("fill_recording", {"recording_id": "r"}),
    ]
    found = in_lock_order(changes, ["end_request", "fill_recording", "add_file"])
    assert [(name, *values.values()) for name, values in found] == [
        ("end_request", "a"),
        ("end_request", "b"),
        ("fill_recording", "r"),
        ("add_file", "a"),
        ("add_file", "b"),
    ]


def test_changes_of_one_table_are_sorted_by_row_whatever_they_do() -> None:
    changes: list[Change] = [("complete_job", {"id": "b"}), ("add_file", {"id": "a"}), ("fail_job", {"id": "a"})]
    found = in_lock_order(changes, [("complete_job", "fail_job"), "add_file"])
    assert [name for name, _ in found] == ["fail_job", "complete_job", "add_file"]


def test_changes_of_one_row_keep_their_order() -> None:
    changes: list[Change] = [("add_attempt", {"request_id": "a", "number": number}) for number in (2, 1, 3)]
    found = in_lock_order(changes, ["add_attempt"])
    assert [values["number"] for _, values in found] == [2, 1, 3]


def test_a_query_without_a_place_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="unknown"):
        in_lock_order([("unknown", {"id": "a"})], ["end_request"])
