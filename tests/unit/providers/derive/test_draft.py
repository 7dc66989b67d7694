"""Fields are taken out of a draft once, and those that must not be sent are never in it."""

import re

from penstock.providers.derive.draft import (
    Draft,
    choices,
    is_any,
    is_list_of_text,
    is_number,
    is_switch,
    is_text,
    kinds,
    limit,
)

EITHER = {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "string", "enum": ["auto"]}]}


def test_a_field_is_taken_once() -> None:
    draft = Draft(
        {
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "sync_mode": {}, "face_img": {}},
            "required": ["b", "face_img"],
        }
    )
    assert draft.find(("x", "a"), is_text) == draft.take(("x", "a"), is_text) == ("a", {"type": "string"}, False)
    assert draft.take(("a",), is_text) is None
    assert draft.take(("b",), is_text) is None
    found = draft.take_required(re.compile("img"), is_any)
    assert found is not None
    assert found.name == "face_img"
    assert [(field.name, field.is_required) for field in draft.take_rest()] == [("b", True)]
    assert draft.take_rest() == []


def test_what_a_schema_says() -> None:
    assert kinds(EITHER) == {"integer", "string"}
    assert (is_number(EITHER), is_text(EITHER), is_switch({"type": "boolean"})) == (True, False, True)
    assert (choices(EITHER), limit(EITHER, "maximum"), limit(EITHER, "minimum")) == (["auto"], 9, None)
    assert is_list_of_text({"type": "array", "items": {"type": "string"}})
    assert not is_list_of_text({"type": "array", "items": {"type": "object"}})
