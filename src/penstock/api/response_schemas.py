"""What the API answers with, as JSON Schemas; nothing else may appear in an answer."""

from collections.abc import Mapping
from typing import Any

from penstock.accounts.requests import STATUSES
from penstock.imaging.formats import OUTPUT_FORMATS
from penstock.states import KEY, VIDEO

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
MONEY: Schema = {"type": "number", "minimum": 0, "description": "US dollars."}
MOMENT: Schema = {"type": "integer", "description": "Unix time in seconds."}
TIME: Schema = {"type": "string", "format": "date-time"}
SIZE: Schema = {"type": "string", "description": "`WIDTHxHEIGHT`, or a proportion such as `16:9`."}
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


def closed(properties: Mapping[str, Schema], *, maybe: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these properties, perhaps those, and no others."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **(maybe or {})},
        "additionalProperties": False,
    }


def opened(properties: Mapping[str, Schema], *, maybe: Mapping[str, Schema] | None = None) -> Schema:
    """An object to which somebody else may add: the caller, or a provider."""
    return {**closed(properties, maybe=maybe), "additionalProperties": True}


def listed(name: str, *, pages: bool = True, maybe: Mapping[str, Schema] | None = None) -> Schema:
    ends = {"next_page_url": or_null(TEXT), "previous_page_url": or_null(TEXT)} if pages else {}
    return closed({"object": always("list"), "data": array(ref(name)), **ends}, maybe=maybe)


# -------------------------------------------------------------------------------------------------------------- errors

_ERROR = closed({"error": closed({"message": TEXT, "type": TEXT, "code": TEXT}, maybe={"param": TEXT})})

# ----------------------------------------------------------------------------------------------------------- generation

_EXECUTION = {
    "provider_name": TEXT,
    "provider": TEXT,
    "upstream_id": TEXT,
    "model": TEXT,
    "executed_model": TEXT,
    "cost_currency": TEXT,
}
_ATTEMPT = closed({"provider": TEXT, "model": TEXT, "outcome": TEXT}, maybe={"message": TEXT})
_IMAGE = closed({}, maybe={"url": TEXT, "b64_json": TEXT, "revised_prompt": TEXT})
_IMAGE_RESULT = closed(
    {
        "id": TEXT,
        "created": MOMENT,
        "size": SIZE,
        "output_format": one_of(*OUTPUT_FORMATS),
        "data": array(_IMAGE),
        "metadata": closed({**_EXECUTION, "cost": MONEY}, maybe={"attempts": array(_ATTEMPT)}),
    }
)
_IMAGE_STATUS = closed(
    {"id": TEXT, "object": always("image.generation"), "created": MOMENT, "status": one_of(*VIDEO), "model": TEXT},
    maybe={"error": closed({"code": TEXT, "message": TEXT})},
)
_VIDEO_OUTPUT = closed({"url": TEXT, "content_type": TEXT, "size_bytes": WHOLE})
_VIDEO_METADATA = opened(_EXECUTION, maybe={"cost": MONEY, "cost_estimate": MONEY})
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
_VIDEO = closed(
    {
        **_VIDEO_CREATED,
        "completed_at": or_null(MOMENT),
        "expires_at": or_null(MOMENT),
        "prompt": TEXT,
        "progress": WHOLE,
        "output": or_null(_VIDEO_OUTPUT),
        "error": or_null(closed({"code": TEXT, "message": TEXT})),
    },
    maybe={"outputs": array(_VIDEO_OUTPUT)},
)
_ESTIMATE = closed(
    {
        "estimated": always(True),
        "model": TEXT,
        "provider": TEXT,
        "total_cost_micros": WHOLE,
        "currency": TEXT,
        "components": array(
            closed(
                {
                    "type": one_of("output", "input"),
                    "metric": TEXT,
                    "quantity": NUMBER,
                    "billable_quantity": NUMBER,
                    "unit_price": MONEY,
                    "total_cost": WHOLE,
                }
            )
        ),
    }
)
_COMPLETION = opened(
    {
        "id": TEXT,
        "object": always("chat.completion"),
        "created": MOMENT,
        "model": TEXT,
        "choices": array(opened({"index": WHOLE, "message": opened({"role": always("assistant")})})),
    },
    maybe={"usage": opened({"prompt_tokens": WHOLE, "completion_tokens": WHOLE, "total_tokens": WHOLE})},
)

# -------------------------------------------------------------------------------------------------------------- models

_MODEL = closed(
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
            closed(
                {"provider": TEXT, "task": TEXT, "unit": TEXT, "usd": TEXT},
                maybe={"input_usd": TEXT, "when": {"type": "object"}},
            )
        ),
    },
    maybe={"schema": opened({"type": always("object"), "required": array(TEXT), "properties": {"type": "object"}})},
)

# ------------------------------------------------------------------------------------------------------------- account

_REQUEST = closed(
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
        "duration_ms": or_null(WHOLE),
        "key_id": or_null(TEXT),
        "error_code": or_null(TEXT),
        "error_message": or_null(TEXT),
        "session_id": or_null(TEXT),
        "trace_id": or_null(TEXT),
        "user": or_null(TEXT),
        "request_size_bytes": or_null(WHOLE),
        "response_size_bytes": or_null(WHOLE),
    }
)
_SUMMARY = closed({"total_cost": MONEY, "currency": always("usd"), "count": WHOLE})
_KEY = {
    "id": TEXT,
    "object": always("key"),
    "name": or_null(TEXT),
    "last_four": or_null(TEXT),
    "status": one_of(*KEY),
    "created_at": TIME,
    "revoked_at": or_null(TIME),
}
_BALANCE = closed(
    {
        "object": always("balance"),
        "billing_type": one_of("prepaid", "postpaid"),
        "available": closed({"amount": or_null(NUMBER), "currency": always("usd")}),
    }
)
_PURGED = closed({"id": TEXT, "purged": always(True), "already_purged": FLAG, "media_deleted": WHOLE})

_RECORDING = closed(
    {
        "id": TEXT,
        "object": always("recording"),
        "created_at": TIME,
        "kind": one_of("image", "edit", "video"),
        "model": TEXT,
        "request_id": or_null(TEXT),
        "duration_ms": WHOLE,
        "request": opened({}),
    }
)
_TRANSCRIPT = opened(
    {
        "penstock_recording": WHOLE,
        "id": TEXT,
        "kind": TEXT,
        "task": TEXT,
        "model": TEXT,
        "recorded_at": TIME,
        "duration_ms": WHOLE,
        "request": opened({}),
        "provider": TEXT,
        "provider_name": TEXT,
        "executed_model": TEXT,
        "files": array(opened({"content_type": TEXT, "data": TEXT})),
        "standard": TEXT,
        "strict": TEXT,
    }
)
_PROVIDER = closed(
    {
        "id": TEXT,
        "object": always("provider"),
        "name": TEXT,
        "on": FLAG,
        "reason": or_null(TEXT),
        "credential": or_null(TEXT),
        "models": WHOLE,
        "health": array(
            closed(
                {
                    "provider": TEXT,
                    "model": TEXT,
                    "well": FLAG,
                    "good": WHOLE,
                    "bad": WHOLE,
                    "last_problem": or_null(TEXT),
                    "well_in_seconds": NUMBER,
                }
            )
        ),
    }
)

SHAPES: Mapping[str, Schema] = {
    "Error": _ERROR,
    "ImageResult": _IMAGE_RESULT,
    "ImageStatus": {"anyOf": [_IMAGE_RESULT, _IMAGE_STATUS]},
    "Video": _VIDEO,
    "VideoCreated": closed(_VIDEO_CREATED),
    "VideoList": closed(
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
    "ModelList": listed("Model", pages=False),
    "Request": _REQUEST,
    "RequestList": listed("Request", maybe={"summary": _SUMMARY}),
    "Key": closed(_KEY),
    "NewKey": closed({**_KEY, "key": TEXT}),
    "KeyList": listed("Key"),
    "Balance": _BALANCE,
    "WebhookSecret": closed({"key": {"type": "string", "pattern": "^whsec_"}}),
    "Purged": _PURGED,
    "Provider": _PROVIDER,
    "ProviderList": listed("Provider", pages=False),
    "Recording": _RECORDING,
    "RecordingList": listed("Recording"),
    "RecordingDeleted": closed(
        {"id": TEXT, "object": always("recording"), "deleted": always(True), "media_deleted": WHOLE}
    ),
    "Transcript": _TRANSCRIPT,
    "Health": closed({"status": one_of("ok", "ready")}),
    "Document": {"type": "object"},
}
