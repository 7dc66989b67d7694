"""Parts that the JSON Schemas of the API are made of."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
MONEY: Schema = {"type": "number", "minimum": 0, "description": "US dollars."}
MOMENT: Schema = {"type": "integer", "description": "Unix time in seconds."}
TIME: Schema = {"type": "string", "format": "date-time"}
SIZE: Schema = {"type": "string", "description": "`WIDTHxHEIGHT`, or an aspect ratio such as `16:9`."}


def always(value: str | bool) -> Schema:
    return {"const": value}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def or_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return {**schema, "type": [schema["type"], "null"], "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else {"anyOf": [schema, {"type": "null"}]}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def closed_object(properties: Mapping[str, Schema], *, optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these properties, optionally those, and no others."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **(optional or {})},
        "additionalProperties": False,
    }


def open_object(properties: Mapping[str, Schema], *, optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object that may have further properties, from the caller or a provider."""
    return {**closed_object(properties, optional=optional), "additionalProperties": True}


# Where the copy of an output is, or why there is none.
DELIVERED: Mapping[str, Schema] = {
    "delivered": or_null(closed_object({"url": TEXT, "sha256": TEXT, "etag": or_null(TEXT)})),
    "delivery_error": TEXT,
}
CREDENTIALS: Schema = closed_object(
    {"status": TEXT},
    optional={
        "signer": or_null(TEXT),
        "trusted": or_null(FLAG),
        "manifest": or_null(TEXT),
        "digital_source_type": or_null(TEXT),
        "vendor": closed_object({"signer": or_null(TEXT), "state": TEXT}),
        "inputs_left_out": INTEGER,
    },
)


def list_of(name: str, *, pages: bool = True, optional: Mapping[str, Schema] | None = None) -> Schema:
    ends = {"next_page_url": or_null(TEXT), "previous_page_url": or_null(TEXT)} if pages else {}
    return closed_object({"object": always("list"), "data": array(ref(name)), **ends}, optional=optional)
