"""Which query lists the requests of some filters, and with which parameters."""

from typing import Any

import pytest

from penstock.accounts.request_filters import Filters, encode_words
from penstock.errors import InvalidRequest


@pytest.mark.parametrize(
    ("given", "suffix"),
    [
        ({}, ""),
        ({"key_id": "k"}, "_of_key"),
        ({"key_id": "k", "status": "completed"}, "_of_key_and_status"),
        ({"user": "u", "session_id": "s", "labels": {"a": "b"}, "model": "m"}, "_of_user"),
        ({"session_id": "s", "labels": {"a": "b"}, "model": "m"}, "_of_session"),
        ({"labels": {"a": "b"}, "model": "m", "kind": "image"}, "_of_label"),
        ({"content_credentials": "failed", "model": "m"}, "_of_credentials"),
        ({"model": "m", "provider": "p"}, "_of_model"),
        ({"kind": "image"}, "_of_kind"),
        ({"kind": "chat"}, "_matching"),
        ({"search": "x"}, "_matching"),
    ],
)
def test_the_most_selective_filter_chooses_the_query(given: dict[str, Any], suffix: str) -> None:
    assert Filters(**given).query_suffix == suffix


def test_a_word_is_looked_for_in_lower_case_and_in_forms_that_a_database_does_not_know() -> None:
    assert encode_words("Red  FOX") == '[["red"],["fox"]]'
    assert encode_words("Füchse") == '[["fÜchse","füchse"]]'
    assert encode_words(" ") is None


def test_a_list_by_label_begins_with_its_first_one() -> None:
    columns = Filters(labels={"a": 'x"y', "b": "z"}).list_columns
    assert (columns["label_name"], columns["label_value"]) == ("a", 'x"y')
    assert (columns["has_label"], columns["has_second"]) == (r'"a":"x\"y"', '"b":"z"')
    assert "label_name" not in Filters(user="u", labels={"a": "b"}).list_columns
    with pytest.raises(InvalidRequest):
        _ = Filters(labels={"a": "1", "b": "2", "c": "3"}).columns
