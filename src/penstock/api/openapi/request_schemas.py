"""JSON Schemas of request bodies: from the parameter tables, and written here for values that have parts."""

from collections.abc import Mapping

from penstock.accounts.key_records import GRANTED_BY_API
from penstock.api.multipart import NAME_CHARS
from penstock.api.openapi.schema_parts import FLAG, TEXT, Schema, array, closed_object, one_of, open_object
from penstock.fields import Field, Table
from penstock.models.preferences import FIELD, LIMITS, MAX_NAMES, MAX_USD, SORTS

_NOT_BLANK = r"\S"
_PIXELS = r"(1[6-9]|[2-9]\d|[1-9]\d\d|[1-7]\d{3}|80\d\d|81[0-8]\d|819[0-2])"
_RATIO = r"[1-9]\d{0,3}:[1-9]\d{0,3}"
_DOMAIN = r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]{0,61}[A-Za-z0-9]"
# Patterns of texts whose length is not the only limit.
_PATTERNS = {
    "size": rf"^({_PIXELS}x{_PIXELS}|{_RATIO}|auto)$",
    "aspect_ratio": rf"^{_RATIO}$",
    "media_retention": r"^(0|[1-9]\d{0,5}[hd])$",
    "webhook_url": rf"^https://{_DOMAIN}(:443|:8443)?(/\S*)?$",
    "idempotency_key": _NOT_BLANK,
    "model": _NOT_BLANK,
}
_SECONDS: Schema = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
        {"type": "string", "pattern": r"^0*[1-9]\d{0,2}(\.\d+)?$"},
        {"type": "null"},
    ]
}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


# -------------------------------------------------------------------------------------------------------------- images

_URL: Schema = {"type": "string", "pattern": "^(https://|data:)"}


def _image(more: Mapping[str, Schema]) -> Schema:
    """An input image: a URL, or an object with a URL and perhaps these fields."""
    named = open_object({"image_url": {"anyOf": [_URL, open_object({"url": _URL})]}}, optional=more)
    return {"anyOf": [_URL, named, open_object({"url": _URL}, optional=more)]}


_IMAGE = _image({})
_VIDEO_REFERENCE = open_object(
    {"video_url": {"anyOf": [_URL, open_object({"url": _URL})]}}, optional={"role": {"enum": ["edit", "extend", None]}}
)
_REFERENCE: Schema = {
    "anyOf": [*_image({"role": {"enum": ["first_frame", "last_frame", "reference", None]}})["anyOf"], _VIDEO_REFERENCE]
}

_OPENROUTER_IMAGE = {"type": {"const": "image_url"}, "image_url": open_object({"url": _URL})}
_OPENROUTER_VIDEO = {"type": {"const": "video_url"}, "video_url": open_object({"url": _URL})}
_PROVENANCE: Schema = {
    "anyOf": [
        {"type": "string", "enum": ["off", "keep", "sign", "required", "keep; required", "sign; required"]},
        closed_object(
            {},
            optional={
                "mode": {"enum": ["off", "keep", "sign"]},
                "required": FLAG,
                "include": {"type": "array", "items": {"enum": ["prompt"]}, "maxItems": 1},
            },
        ),
        {"type": "null"},
    ]
}

# ---------------------------------------------------------------------------------------------------------------- chat

_NAME: Schema = {"type": "string", "minLength": 1}
_CHAT_IMAGE = "^(https://|data:image/(png|jpe?g|webp|gif|avif|heic|heif);base64,)"
_PART_KINDS = [
    open_object({"type": {"const": "text"}, "text": TEXT}),
    open_object(
        {
            "type": {"const": "image_url"},
            "image_url": open_object({"url": {"type": "string", "pattern": _CHAT_IMAGE}}),
        }
    ),
]
_SOUND = {"type": "object", "properties": {"data": _NAME, "format": TEXT}, "required": ["data", "format"]}
_HEARD_PART = open_object({"type": {"const": "input_audio"}, "input_audio": {**_SOUND, "additionalProperties": False}})
_REFUSAL = open_object({"type": {"const": "refusal"}, "refusal": TEXT})
_CONTENT: Schema = {"anyOf": [TEXT, array({"anyOf": _PART_KINDS})]}
_SAID: Schema = {"anyOf": [TEXT, array({"anyOf": [*_PART_KINDS, _HEARD_PART]})]}
_RESPONSE: Schema = {"anyOf": [TEXT, array({"anyOf": [*_PART_KINDS, _REFUSAL]}), {"type": "null"}]}
_NAMED = {"name": _or_null(TEXT)}
_NO_TOOL = {"tool_call_id": {"type": "null"}}
_NO_CALLS = {"tool_calls": {"type": "null"}}
_ASSISTANT: Schema = {"const": "assistant"}
_CALLS: Schema = {"type": "array", "items": {"type": "object"}}
_MESSAGE: Schema = {
    "anyOf": [
        open_object(
            {"role": {"const": "user"}, "content": _SAID},
            optional={**_NAMED, **_NO_TOOL, **_NO_CALLS},
        ),
        open_object(
            {"role": one_of("system", "developer", "function"), "content": _CONTENT},
            optional={**_NAMED, **_NO_TOOL, **_NO_CALLS},
        ),
        open_object(
            {"role": {"const": "tool"}, "content": _CONTENT},
            optional={**_NAMED, "tool_call_id": _or_null(TEXT), **_NO_CALLS},
        ),
        open_object(
            {"role": _ASSISTANT},
            optional={**_NAMED, **_NO_TOOL, "content": _RESPONSE, "tool_calls": _or_null(_CALLS)},
        ),
    ]
}
_FUNCTION = open_object(
    {"name": _NAME}, optional={"description": _or_null(TEXT), "parameters": _or_null({"type": "object"})}
)
_TOOL = open_object({"type": {"const": "function"}, "function": _FUNCTION})
_CHOICE: Schema = {
    "anyOf": [
        one_of("none", "auto", "required"),
        open_object({"type": {"const": "function"}, "function": open_object({"name": TEXT})}),
        {"type": "null"},
    ]
}
_STOPS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "maxItems": 4}, {"type": "null"}]}

# ------------------------------------------------------------------------------------------------------------ providers

_SLUGS: Schema = {"type": ["array", "null"], "items": TEXT, "maxItems": MAX_NAMES}
_DOLLARS: Schema = {"type": "number", "minimum": 0, "maximum": MAX_USD}
_PREFERENCES = {
    "order": {**_SLUGS, "description": "Tried first, in this order."},
    "only": {**_SLUGS, "minItems": 1, "description": "No others are tried."},
    "ignore": {**_SLUGS, "description": "Not tried."},
    "allow_fallbacks": {
        "type": ["boolean", "null"],
        "description": "False: try only those in `order`, or without it only the first.",
    },
    "sort": {"enum": [*SORTS, None], "description": "What decides the order."},
    "max_price": {
        "anyOf": [
            _DOLLARS,
            {
                "type": "object",
                "properties": {name: _DOLLARS for names in LIMITS.values() for name in names},
                "additionalProperties": False,
            },
            {"type": "null"},
        ],
        "description": "In dollars: of the whole call, or by what is priced.",
    },
}

# -------------------------------------------------------------------------------------------------------------- fields

# Fields whose values have parts.
_NESTED: Mapping[str, Schema] = {
    "seconds": _SECONDS,
    "duration": _SECONDS,
    "image": {"anyOf": [_IMAGE, {"type": "array", "items": _IMAGE, "minItems": 1}]},
    "mask": _or_null(_IMAGE),
    "file": _or_null({"type": "string", "pattern": "^data:"}),
    "provenance": _PROVENANCE,
    "deliver_to": {"anyOf": [TEXT, closed_object({"bucket": TEXT}, optional={"path": TEXT}), {"type": "null"}]},
    "video": {"anyOf": [_URL, open_object({"id": TEXT})]},
    "frame_images": _or_null(
        array(open_object({**_OPENROUTER_IMAGE, "frame_type": one_of("first_frame", "last_frame")}))
    ),
    "input_references": _or_null(array({"anyOf": [open_object(_OPENROUTER_IMAGE), open_object(_OPENROUTER_VIDEO)]})),
    "input_reference": {"anyOf": [_REFERENCE, array(_REFERENCE), {"type": "null"}]},
    "metadata": {
        "type": ["object", "null"],
        "maxProperties": 64,
        "propertyNames": {"maxLength": 64},
        "additionalProperties": {"type": "string", "maxLength": 512},
    },
    FIELD: {"type": ["object", "null"], "properties": _PREFERENCES},
    "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
    "tools": _or_null(array(_TOOL)),
    "tool_choice": _CHOICE,
    "stop": _STOPS,
    "response_format": _or_null(open_object({"type": TEXT})),
    "stream_options": _or_null(open_object({}, optional={"include_usage": FLAG})),
    "scopes": _or_null({"type": "array", "items": {"type": "string", "enum": [*GRANTED_BY_API]}}),
    "models": {
        "type": ["array", "null"],
        "items": {"type": "string", "pattern": r"^[!-)+-~]{0,255}[!-~]$"},
        "minItems": 1,
        "maxItems": 200,
    },
    "expires_at": {"type": ["string", "null"], "format": "date-time"},
}

# -------------------------------------------------------------------------------------------------------------- bodies


def body(fields: Table, *, is_form: bool, is_open: bool) -> Schema:
    """Return the schema of a whole body. An open one allows further fields, which are passed on to the provider."""
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
    """Return the schema of a form field: a file, or a text that is read like the JSON value."""
    if "file" in row.types:
        file: Schema = {"type": "string", "format": "binary"}
        return {"anyOf": [file, array(file)]} if "array" in row.types else file
    kind = row.types[0] if row.types[0] in ("integer", "number", "boolean") else "string"
    return _with_limits(row, {"type": kind}, is_optional=False)


def _in_json(row: Field) -> Schema:
    """Return the schema of a JSON value; a field that may be absent may also be null."""
    is_name = row.name == FIELD and "object" not in row.types  # of a recording's provider, not preferences
    if row.name in _NESTED and not row.one_of and not is_name:
        return dict(_NESTED[row.name])
    types = [*row.types, *([] if row.required else ["null"])]
    return _with_limits(row, {"type": types[0] if len(types) == 1 else types}, is_optional=not row.required)


def _with_limits(row: Field, schema: Schema, *, is_optional: bool) -> Schema:
    limits = {"minimum": row.low, "maximum": row.high, "maxLength": row.max_length}
    schema |= {name: limit for name, limit in limits.items() if limit is not None}
    if row.one_of:
        schema["enum"] = [*row.one_of, *([None] if is_optional else [])]
    elif pattern := _PATTERNS.get(row.name) or (_NOT_BLANK if row.required and "string" in row.types else None):
        schema["pattern"] = pattern
    return schema
