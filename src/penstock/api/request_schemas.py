"""What callers may send, as JSON Schemas: the parameter tables, and the parts that a table has no words for."""

from collections.abc import Mapping

from penstock.accounts.keys import ADMIN
from penstock.api.multipart import NAME_CHARS
from penstock.api.response_schemas import FLAG, TEXT, Schema, array, one_of, opened
from penstock.schema import Field, Table

_NOT_BLANK = r"\S"
_PIXELS = r"(1[6-9]|[2-9]\d|[1-9]\d\d|[1-7]\d{3}|80\d\d|81[0-8]\d|819[0-2])"
_RATIO = r"[1-9]\d{0,3}:[1-9]\d{0,3}"
_DOMAIN = r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]{0,61}[A-Za-z0-9]"
# What a text must look like, where that is more than its length.
_PATTERNS = {
    "size": rf"^({_PIXELS}x{_PIXELS}|{_RATIO}|auto)$",
    "aspect_ratio": rf"^{_RATIO}$",
    "media_retention": r"^[1-9]\d{0,5}[hd]$",
    "webhook_url": rf"^https://{_DOMAIN}(:443|:8443)?(/\S*)?$",
    "idempotency_key": _NOT_BLANK,
}
_SECONDS: Schema = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
        {"type": "string", "pattern": r"^0*[1-9]\d{0,2}(\.\d+)?$"},
        {"type": "null"},
    ]
}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


# ------------------------------------------------------------------------------------------------------------ pictures

_ADDRESS: Schema = {"type": "string", "pattern": "^(https://|data:)"}
_PICTURE: Schema = {
    "anyOf": [
        _ADDRESS,
        opened({"image_url": {"anyOf": [_ADDRESS, opened({"url": _ADDRESS})]}}),
        opened({"url": _ADDRESS}),
    ]
}

# ---------------------------------------------------------------------------------------------------------------- chat

_NAME: Schema = {"type": "string", "minLength": 1}
_PARTS = array(
    {
        "anyOf": [
            opened({"type": {"const": "text"}, "text": TEXT}),
            opened(
                {
                    "type": {"const": "image_url"},
                    "image_url": opened({"url": {"type": "string", "pattern": "^(https://|data:image/)"}}),
                }
            ),
        ]
    }
)
_CONTENT: Schema = {"anyOf": [TEXT, _PARTS]}
_NAMED = {"name": _maybe(TEXT)}
_NO_TOOL = {"tool_call_id": {"type": "null"}}
_NO_CALLS = {"tool_calls": {"type": "null"}}
_ASSISTANT: Schema = {"const": "assistant"}
_CALLS: Schema = {"type": "array", "items": {"type": "object"}}
_MESSAGE: Schema = {
    "anyOf": [
        opened(
            {"role": one_of("system", "developer", "user", "function"), "content": _CONTENT},
            maybe={**_NAMED, **_NO_TOOL, **_NO_CALLS},
        ),
        opened(
            {"role": {"const": "tool"}, "content": _CONTENT},
            maybe={**_NAMED, "tool_call_id": _maybe(TEXT), **_NO_CALLS},
        ),
        opened({"role": _ASSISTANT, "content": _CONTENT}, maybe={**_NAMED, **_NO_TOOL, "tool_calls": _maybe(_CALLS)}),
        opened(
            {"role": _ASSISTANT, "tool_calls": {**_CALLS, "minItems": 1}},
            maybe={**_NAMED, **_NO_TOOL, "content": _maybe(_CONTENT)},
        ),
    ]
}
_FUNCTION = opened({"name": _NAME}, maybe={"description": _maybe(TEXT), "parameters": _maybe({"type": "object"})})
_TOOL = opened({"type": {"const": "function"}, "function": _FUNCTION})
_CHOICE: Schema = {
    "anyOf": [
        one_of("none", "auto", "required"),
        opened({"type": {"const": "function"}, "function": opened({"name": TEXT})}),
        {"type": "null"},
    ]
}
_STOPS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 4}, {"type": "null"}]}

# Fields whose values have parts of their own.
_NESTED: Mapping[str, Schema] = {
    "seconds": _SECONDS,
    "duration": _SECONDS,
    "image": {"anyOf": [_PICTURE, {"type": "array", "items": _PICTURE, "minItems": 1}]},
    "mask": _maybe(_PICTURE),
    "input_reference": {"anyOf": [_PICTURE, array(_PICTURE), {"type": "null"}]},
    "metadata": {
        "type": ["object", "null"],
        "maxProperties": 64,
        "propertyNames": {"maxLength": 64},
        "additionalProperties": {"type": "string", "maxLength": 512},
    },
    "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
    "tools": _maybe(array(_TOOL)),
    "tool_choice": _CHOICE,
    "stop": _STOPS,
    "response_format": _maybe(opened({"type": TEXT})),
    "stream_options": _maybe(opened({}, maybe={"include_usage": FLAG})),
    "scopes": _maybe({"type": "array", "items": {"type": "string", "enum": [ADMIN]}}),
}

# -------------------------------------------------------------------------------------------------------------- bodies


def body(fields: Table, *, is_form: bool, is_open: bool) -> Schema:
    """The schema of a whole body. An open one has room for fields that are meant for the provider."""
    schema: Schema = {
        "type": "object",
        "required": [row.name for row in fields.values() if row.required],
        "properties": {row.name: field(row, is_form=is_form) for row in fields.values()},
        "additionalProperties": is_open,
    }
    return {**schema, "propertyNames": {"minLength": 1, "maxLength": NAME_CHARS}} if is_form else schema


def field(row: Field, *, is_form: bool) -> Schema:
    schema: Schema = {"description": row.about}
    schema |= _in_form(row) if is_form else _in_json(row)
    if row.default is not None:
        schema["default"] = row.default
    if row.handling:
        schema["x-handling"] = row.handling
    return schema


def _in_form(row: Field) -> Schema:
    """A form has texts and files; what is written in a text is read as in JSON."""
    if "file" in row.types:
        file: Schema = {"type": "string", "format": "binary"}
        return {"anyOf": [file, array(file)]} if "array" in row.types else file
    kind = row.types[0] if row.types[0] in ("integer", "number", "boolean") else "string"
    return _limited(row, {"type": kind}, is_optional=False)


def _in_json(row: Field) -> Schema:
    """What may be left away may also be null."""
    if row.name in _NESTED and not row.one_of:
        return dict(_NESTED[row.name])
    types = [*row.types, *([] if row.required else ["null"])]
    return _limited(row, {"type": types[0] if len(types) == 1 else types}, is_optional=not row.required)


def _limited(row: Field, schema: Schema, *, is_optional: bool) -> Schema:
    limits = {"minimum": row.low, "maximum": row.high, "maxLength": row.max_length}
    schema |= {name: limit for name, limit in limits.items() if limit is not None}
    if row.one_of:
        schema["enum"] = [*row.one_of, *([None] if is_optional else [])]
    elif pattern := _PATTERNS.get(row.name) or (_NOT_BLANK if row.required and "string" in row.types else None):
        schema["pattern"] = pattern
    return schema
