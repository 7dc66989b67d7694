"""JSON Schemas of every response; a response contains no fields but these."""

from collections.abc import Mapping
from typing import Any

from penstock.accounts.keys import SCOPES
from penstock.accounts.requests import STATUSES
from penstock.imaging.formats import OUTPUT_FORMATS
from penstock.states import KEY, VIDEO

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
MONEY: Schema = {"type": "number", "minimum": 0, "description": "US dollars."}
MOMENT: Schema = {"type": "integer", "description": "Unix time in seconds."}
TIME: Schema = {"type": "string", "format": "date-time"}
SIZE: Schema = {"type": "string", "description": "`WIDTHxHEIGHT`, or an aspect ratio such as `16:9`."}
ANYTHING: Schema = {}


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


def list_of(name: str, *, pages: bool = True, optional: Mapping[str, Schema] | None = None) -> Schema:
    ends = {"next_page_url": or_null(TEXT), "previous_page_url": or_null(TEXT)} if pages else {}
    return closed_object({"object": always("list"), "data": array(ref(name)), **ends}, optional=optional)


# -------------------------------------------------------------------------------------------------------------- errors

_ERROR = closed_object(
    {"error": closed_object({"message": TEXT, "type": TEXT, "code": TEXT}, optional={"param": TEXT})}
)

# ----------------------------------------------------------------------------------------------------------- generation

_EXECUTION = {
    "provider_name": TEXT,
    "provider": TEXT,
    "upstream_id": TEXT,
    "model": TEXT,
    "executed_model": TEXT,
    "cost_currency": TEXT,
}
_ATTEMPT = closed_object({"provider": TEXT, "model": TEXT, "outcome": TEXT}, optional={"message": TEXT})
_IMAGE = closed_object({}, optional={"url": TEXT, "b64_json": TEXT, "revised_prompt": TEXT})
_IMAGE_RESULT = closed_object(
    {
        "id": TEXT,
        "created": MOMENT,
        "size": SIZE,
        "output_format": one_of(*OUTPUT_FORMATS),
        "data": array(_IMAGE),
        "metadata": closed_object({**_EXECUTION, "cost": MONEY}, optional={"attempts": array(_ATTEMPT)}),
    }
)
_IMAGE_STATUS = closed_object(
    {"id": TEXT, "object": always("image.generation"), "created": MOMENT, "status": one_of(*VIDEO), "model": TEXT},
    optional={"error": closed_object({"code": TEXT, "message": TEXT})},
)
_VIDEO_OUTPUT = closed_object({"url": TEXT, "content_type": TEXT, "size_bytes": INTEGER})
_VIDEO_METADATA = open_object(_EXECUTION, optional={"cost": MONEY, "cost_estimate": MONEY})
_VIDEO_CREATED = {
    "id": TEXT,
    "object": always("video"),
    "created_at": MOMENT,
    "status": one_of(*VIDEO),
    "model": TEXT,
    "seconds": TEXT,
    "size": SIZE,
    "metadata": _VIDEO_METADATA,
}
_VIDEO = closed_object(
    {
        **_VIDEO_CREATED,
        "completed_at": or_null(MOMENT),
        "expires_at": or_null(MOMENT),
        "prompt": TEXT,
        "progress": INTEGER,
        "output": or_null(_VIDEO_OUTPUT),
        "error": or_null(closed_object({"code": TEXT, "message": TEXT})),
    },
    optional={"outputs": array(_VIDEO_OUTPUT)},
)
_ESTIMATE = closed_object(
    {
        "estimated": always(True),
        "model": TEXT,
        "provider": TEXT,
        "total_cost_micros": INTEGER,
        "currency": TEXT,
        "components": array(
            closed_object(
                {
                    "type": one_of("output", "input"),
                    "metric": TEXT,
                    "quantity": NUMBER,
                    "billable_quantity": NUMBER,
                    "unit_price": MONEY,
                    "total_cost": INTEGER,
                }
            )
        ),
    }
)
_COMPLETION = open_object(
    {
        "id": TEXT,
        "object": always("chat.completion"),
        "created": MOMENT,
        "model": TEXT,
        "choices": array(open_object({"index": INTEGER, "message": open_object({"role": always("assistant")})})),
    },
    optional={"usage": open_object({"prompt_tokens": INTEGER, "completion_tokens": INTEGER, "total_tokens": INTEGER})},
)

# -------------------------------------------------------------------------------------------------------------- models

_MODEL = closed_object(
    {
        "id": TEXT,
        "object": always("model"),
        "created": MOMENT,
        "owned_by": TEXT,
        "name": TEXT,
        "description": TEXT,
        "modality": one_of("image", "video", "text"),
        "modes": array(TEXT),
        "providers": array(TEXT),
        "pricing": array(
            closed_object(
                {"provider": TEXT, "task": TEXT, "unit": TEXT, "usd": TEXT},
                optional={"input_usd": TEXT, "when": {"type": "object"}},
            )
        ),
    },
    optional={
        "schema": open_object({"type": always("object"), "required": array(TEXT), "properties": {"type": "object"}})
    },
)

# ------------------------------------------------------------------------------------------------------------- account

_REQUEST = closed_object(
    {
        "id": TEXT,
        "object": always("request"),
        "created_at": TIME,
        "model": or_null(TEXT),
        "modality": or_null(one_of("image", "video", "speech", "vision")),
        "endpoint": or_null(TEXT),
        "status": one_of(*STATUSES),
        "cost": MONEY,
        "currency": always("usd"),
        "duration_ms": or_null(INTEGER),
        "key_id": or_null(TEXT),
        "error_code": or_null(TEXT),
        "error_message": or_null(TEXT),
        "session_id": or_null(TEXT),
        "trace_id": or_null(TEXT),
        "user": or_null(TEXT),
        "request_size_bytes": or_null(INTEGER),
        "response_size_bytes": or_null(INTEGER),
    }
)
_SUMMARY = closed_object({"total_cost": MONEY, "currency": always("usd"), "count": INTEGER})
_KEY = {
    "id": TEXT,
    "object": always("key"),
    "name": or_null(TEXT),
    "last_four": or_null(TEXT),
    "status": one_of(*KEY),
    "created_at": TIME,
    "revoked_at": or_null(TIME),
}
_BALANCE = closed_object(
    {
        "object": always("balance"),
        "billing_type": one_of("prepaid", "postpaid"),
        "available": closed_object({"amount": or_null(NUMBER), "currency": always("usd")}),
    }
)
_PAYLOADS = closed_object(
    {
        "id": TEXT,
        "object": always("request.payloads"),
        "request": or_null(open_object({})),
        "response": {"description": "A JSON object; the text of a streamed chat; null when nothing is stored."},
    }
)
_PURGED = closed_object({"id": TEXT, "purged": always(True), "already_purged": FLAG, "media_deleted": INTEGER})

_RECORDING = closed_object(
    {
        "id": TEXT,
        "object": always("recording"),
        "created_at": TIME,
        "kind": one_of("image", "edit", "video"),
        "model": TEXT,
        "request_id": or_null(TEXT),
        "imported_id": or_null(TEXT),
        "duration_ms": INTEGER,
        "request": or_null(open_object({})),
    }
)
_RECORDING_FILE = open_object(
    {
        "penstock_recording": INTEGER,
        "id": TEXT,
        "kind": TEXT,
        "task": TEXT,
        "model": TEXT,
        "recorded_at": TIME,
        "duration_ms": INTEGER,
        "request": open_object({}),
        "provider": TEXT,
        "provider_name": TEXT,
        "executed_model": TEXT,
        "files": array(open_object({"content_type": TEXT, "data": TEXT})),
        "standard": TEXT,
        "strict": TEXT,
    }
)
_PROVIDER = closed_object(
    {
        "id": TEXT,
        "object": always("provider"),
        "name": TEXT,
        "on": FLAG,
        "reason": or_null(TEXT),
        "credential": or_null(TEXT),
        "models": INTEGER,
        "health": array(
            closed_object(
                {
                    "provider": TEXT,
                    "model": TEXT,
                    "well": FLAG,
                    "good": INTEGER,
                    "bad": INTEGER,
                    "last_problem": or_null(TEXT),
                    "well_in_seconds": NUMBER,
                }
            )
        ),
    }
)

SCHEMAS: Mapping[str, Schema] = {
    "Error": _ERROR,
    "ImageResult": _IMAGE_RESULT,
    "ImageStatus": {"anyOf": [_IMAGE_RESULT, _IMAGE_STATUS]},
    "Video": _VIDEO,
    "VideoCreated": closed_object(_VIDEO_CREATED),
    "VideoList": closed_object(
        {
            "object": always("list"),
            "data": array(ref("Video")),
            "first_id": or_null(TEXT),
            "last_id": or_null(TEXT),
            "has_more": FLAG,
        }
    ),
    "Estimate": _ESTIMATE,
    "ChatCompletion": _COMPLETION,
    "Model": _MODEL,
    "ModelList": list_of("Model", pages=False),
    "Request": _REQUEST,
    "RequestList": list_of("Request", optional={"summary": _SUMMARY}),
    "Key": closed_object(_KEY),
    "NewKey": closed_object({**_KEY, "key": TEXT}),
    "OwnKey": closed_object({**_KEY, "scopes": array(one_of(*SCOPES))}),
    "KeyList": list_of("Key"),
    "Balance": _BALANCE,
    "WebhookSecret": closed_object({"key": {"type": "string", "pattern": "^whsec_"}}),
    "Payloads": _PAYLOADS,
    "Purged": _PURGED,
    "Provider": _PROVIDER,
    "ProviderList": list_of("Provider", pages=False),
    "Recording": _RECORDING,
    "RecordingList": list_of("Recording"),
    "RecordingDeleted": closed_object(
        {"id": TEXT, "object": always("recording"), "deleted": always(True), "media_deleted": INTEGER}
    ),
    "RecordingFile": _RECORDING_FILE,
    "Health": closed_object({"status": one_of("ok", "ready")}),
    "Document": {"type": "object"},
}
