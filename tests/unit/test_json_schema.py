"""Schemas of strangers are read within limits, and say in words what is wrong with a value."""

from typing import Any

import pytest

from penstock.json_schema import problem, read_schema

DEFINITIONS: dict[str, Any] = {
    "Size": {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}}},
    "Loop": {"type": "object", "properties": {"again": {"$ref": "#/components/schemas/Loop"}}},
    "Kind": {"type": "string", "enum": ["a", "b"]},
}


def test_references_nulls_and_orders_are_resolved() -> None:
    read = read_schema(
        {
            "type": "object",
            "x-fal-order-properties": ["size", "kind"],
            "properties": {
                "kind": {"allOf": [{"$ref": "#/components/schemas/Kind"}], "default": "a", "x-order": 0},
                "size": {"anyOf": [{"$ref": "#/components/schemas/Size"}, {"type": "null"}], "title": " a \n size "},
                "both": {"anyOf": [{"$ref": "#/components/schemas/Kind"}, {"enum": ["c"], "type": "string"}]},
                "maybe": {"type": ["null", "integer"], "pattern": "(a+)+$"},
            },
            "required": ["kind"],
        },
        DEFINITIONS,
    )
    assert list(read["properties"]) == ["size", "kind", "both", "maybe"]
    assert read["properties"]["kind"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    assert read["properties"]["size"] == {**DEFINITIONS["Size"], "title": "a size"}
    assert read["properties"]["both"]["enum"] == ["a", "b", "c"]
    assert read["properties"]["maybe"] == {"type": "integer"}
    assert read["required"] == ["kind"]


@pytest.mark.parametrize(
    "written",
    [
        {"$ref": "#/components/schemas/Loop"},
        {"$ref": "#/components/schemas/Nowhere"},
        {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(5000)}},
        {"properties": ["a"]},
        "a schema",
    ],
)
def test_endless_large_and_broken_schemas_are_refused(written: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_schema(written, DEFINITIONS)


def test_problems_name_what_is_allowed() -> None:
    cases: list[tuple[dict[str, Any], Any, str | None]] = [
        ({"type": "integer", "minimum": 1, "maximum": 4}, 5, "must be from 1 to 4"),
        ({"type": "integer", "minimum": 1}, 0, "must be at least 1"),
        ({"type": "number", "maximum": 4}, 4.5, "must be at most 4"),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "must be above 0"),
        ({"type": "integer"}, 2.0, None),
        ({"type": "integer"}, 2.5, "must be an integer"),
        ({"type": "integer"}, True, "must be an integer"),
        ({"type": "boolean"}, 1, "must be a boolean"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "must be one of `a`, `b`"),
        ({"type": "string", "maxLength": 2}, "abc", "may have at most 2 characters"),
        ({"type": "array", "minItems": 1, "items": {"type": "string"}}, [], "must have at least 1 items"),
        ({"type": "array", "items": {"type": "string"}}, ["a", 1], "has a wrong item 1, which must be a string"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, [], "must be a string or must be an integer"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 3, None),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {}, "lacks `a`"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"a": 1},
            "has a wrong `a`, which must be a string",
        ),
        ({}, object, None),
    ]
    assert [problem(schema, value) for schema, value, _ in cases] == [wanted for _, _, wanted in cases]
