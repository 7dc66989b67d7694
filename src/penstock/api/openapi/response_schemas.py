"""JSON Schemas of every response; a response contains no fields but these."""

from collections.abc import Mapping

from penstock.api.openapi.account_schemas import ACCOUNT_SCHEMAS
from penstock.api.openapi.batch_schemas import FAULT
from penstock.api.openapi.schema_parts import (
    CREDENTIALS,
    DELIVERED,
    FLAG,
    INTEGER,
    MOMENT,
    MONEY,
    NUMBER,
    SIZE,
    TEXT,
    Schema,
    always,
    array,
    closed_object,
    list_of,
    one_of,
    open_object,
    or_null,
    ref,
)
from penstock.imaging.formats import ALL_FORMATS
from penstock.sound.formats import SOUND_FORMATS
from penstock.states import VIDEO

# -------------------------------------------------------------------------------------------------------------- errors

_ERROR = closed_object(
    {
        "error": closed_object(
            {"message": TEXT, "type": TEXT, "code": TEXT}, optional={"param": TEXT, "rows": array(FAULT)}
        )
    }
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
_ATTEMPT = closed_object(
    {"provider": TEXT, "model": TEXT, "outcome": TEXT},
    optional={"message": TEXT, "count": INTEGER, "upstream_id": TEXT},
)
_IMAGE = closed_object(
    {},
    optional={"url": TEXT, "b64_json": TEXT, "revised_prompt": TEXT, "content_credentials": CREDENTIALS, **DELIVERED},
)
_IMAGE_METADATA = closed_object(
    {**_EXECUTION, "cost": MONEY},
    optional={
        "attempts": array(_ATTEMPT),
        "missing": INTEGER,
        "url_expires_at": MOMENT,
        "content_credentials": TEXT,
    },
)
_IMAGE_RESULT = closed_object(
    {
        "id": TEXT,
        "created": MOMENT,
        "size": SIZE,
        "output_format": one_of(*ALL_FORMATS),
        "data": array(_IMAGE),
        "metadata": _IMAGE_METADATA,
    }
)
_IMAGE_STATUS = closed_object(
    {"id": TEXT, "object": always("image.generation"), "created": MOMENT, "status": one_of(*VIDEO), "model": TEXT},
    optional={"error": closed_object({"code": TEXT, "message": TEXT})},
)
_VIDEO_OUTPUT = closed_object(
    {"url": TEXT, "content_type": TEXT, "size_bytes": INTEGER},
    optional={"revised_prompt": TEXT, "content_credentials": CREDENTIALS, **DELIVERED},
)
_VIDEO_METADATA = open_object(
    _EXECUTION,
    optional={"cost": MONEY, "cost_estimate": MONEY, "missing": INTEGER, "attempts": array(_ATTEMPT)},
)
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
_OPENROUTER_MODEL = closed_object(
    {
        **dict.fromkeys(("id", "canonical_slug", "name", "description"), TEXT),
        "created": MOMENT,
        **{
            f"supported_{name}": or_null({"type": "array"})
            for name in ("aspect_ratios", "durations", "frame_images", "resolutions", "sizes")
        },
        **dict.fromkeys(("generate_audio", "seed"), FLAG),
        **{name: {"type": "null"} for name in ("creativity", "upscale_factor")},
        "allowed_passthrough_parameters": array(TEXT),
        "pricing_skus": {"type": "object", "additionalProperties": TEXT},
    }
)
_SOUND_OUTPUT = closed_object(
    {"url": TEXT, "content_type": TEXT, "size_bytes": INTEGER},
    optional={"seconds": NUMBER, "lyrics": TEXT, "content_credentials": CREDENTIALS, **DELIVERED},
)
_SOUND = closed_object(
    {
        "id": TEXT,
        "object": always("audio"),
        "created_at": MOMENT,
        "completed_at": or_null(MOMENT),
        "expires_at": or_null(MOMENT),
        "status": one_of(*VIDEO),
        "model": TEXT,
        "prompt": TEXT,
        "seconds": TEXT,
        "progress": INTEGER,
        "output": or_null(_SOUND_OUTPUT),
        "error": or_null(closed_object({"code": TEXT, "message": TEXT})),
        "metadata": _VIDEO_METADATA,
    },
    optional={"outputs": array(_SOUND_OUTPUT)},
)
_SPEECH = closed_object(
    {
        "id": TEXT,
        "object": always("audio.speech"),
        "created": MOMENT,
        "model": TEXT,
        "voice": or_null(TEXT),
        "seconds": or_null(NUMBER),
        "output_format": one_of(*SOUND_FORMATS),
        "data": array(
            closed_object({}, optional={"url": TEXT, "b64_json": TEXT, "content_credentials": CREDENTIALS, **DELIVERED})
        ),
        "metadata": _IMAGE_METADATA,
    }
)
_TRANSCRIPTION = closed_object(
    {
        "text": TEXT,
        "usage": closed_object(
            {"type": one_of("duration", "tokens")},
            optional={"seconds": NUMBER, "input_tokens": INTEGER, "output_tokens": INTEGER, "total_tokens": INTEGER},
        ),
    },
    optional={
        "task": one_of("transcribe", "translate"),
        "language": TEXT,
        "duration": NUMBER,
        "segments": array(open_object({"start": NUMBER, "end": NUMBER, "text": TEXT})),
        "words": array(closed_object({"word": TEXT, "start": NUMBER, "end": NUMBER})),
        "logprobs": array(open_object({})),
    },
)
_VOICE = closed_object(
    {
        "id": TEXT,
        "object": always("audio.voice"),
        "name": TEXT,
        "provider": TEXT,
        "models": array(TEXT),
        "languages": array(TEXT),
        "gender": or_null(TEXT),
        "description": or_null(TEXT),
        "openai_names": array(TEXT),
        "preview_url": or_null(TEXT),
        "type": one_of("preset", "account"),
    }
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
        "candidates": array(
            closed_object({"provider": TEXT, "model": TEXT, "total_cost_micros": INTEGER, "reason": TEXT})
        ),
        "left_out": array(closed_object({"provider": TEXT, "model": TEXT, "reason": TEXT})),
    },
    optional={
        "content_credentials": always("expected"),
        "output_guards": array(closed_object({"name": TEXT, "charge_refused": FLAG})),
    },
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

_RESPONSE = open_object(
    {
        "id": TEXT,
        "object": always("response"),
        "created_at": MOMENT,
        "status": one_of("completed", "incomplete", "failed", "in_progress"),
        "model": TEXT,
        "output": array(
            open_object({"id": TEXT, "type": one_of("message", "reasoning", "function_call", "image_generation_call")})
        ),
        "usage": or_null(
            open_object({"input_tokens": INTEGER, "output_tokens": INTEGER, "total_tokens": INTEGER, "cost": MONEY})
        ),
    }
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
        "shutdown_date": or_null(TEXT),
        "modality": or_null(one_of("image", "video", "text", "speech", "audio")),
        "modes": array(TEXT),
        "providers": array(TEXT),
        "pricing": array(
            closed_object(
                {
                    "provider": TEXT,
                    "task": TEXT,
                    "unit": TEXT,
                    "usd": TEXT,
                    "source": TEXT,
                    "as_of": or_null(TEXT),
                    "second_hand": FLAG,
                },
                optional={
                    "input_usd": TEXT,
                    "each_usd": TEXT,
                    "prompt_usd": TEXT,
                    "other_usd": {"type": "object"},
                    "when": {"type": "object"},
                    "above": INTEGER,
                    "from": TEXT,
                },
            )
        ),
    },
    optional={
        "alias_of": TEXT,
        "missing": {"type": "object", "additionalProperties": array(TEXT)},
        "serving": array(
            closed_object(
                {
                    "provider": TEXT,
                    "provider_name": TEXT,
                    "model": TEXT,
                    "kind": TEXT,
                    "priority": NUMBER,
                    "weight": NUMBER,
                    "shutdown_date": or_null(TEXT),
                    "healthy": FLAG,
                }
            )
        ),
        "example": or_null(
            closed_object(
                {
                    "request_id": TEXT,
                    "url": TEXT,
                    "thumbnail_url": or_null(TEXT),
                    "content_type": TEXT,
                    "width": or_null(INTEGER),
                    "height": or_null(INTEGER),
                }
            )
        ),
        "schema": open_object({"type": always("object"), "required": array(TEXT), "properties": {"type": "object"}}),
    },
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
    "OpenRouterJob": closed_object(
        {
            "id": TEXT,
            "generation_id": TEXT,
            "polling_url": TEXT,
            "status": one_of("pending", "in_progress", "completed", "failed", "cancelled"),
            "model": TEXT,
        },
        optional={
            "error": TEXT,
            "usage": closed_object({"cost": NUMBER, "is_byok": FLAG}),
            "unsigned_urls": array(TEXT),
            "urls": array(TEXT),
            "expires_at": MOMENT,
        },
    ),
    "OpenRouterModels": closed_object({"data": array(_OPENROUTER_MODEL)}),
    "VideoDeleted": closed_object({"id": TEXT, "object": always("video.deleted"), "deleted": FLAG}),
    "Speech": _SPEECH,
    "Transcription": _TRANSCRIPTION,
    "Sound": _SOUND,
    "SoundList": closed_object(
        {
            "object": always("list"),
            "data": array(ref("Sound")),
            "first_id": or_null(TEXT),
            "last_id": or_null(TEXT),
            "has_more": FLAG,
        }
    ),
    "SoundDeleted": closed_object({"id": TEXT, "object": always("audio.deleted"), "deleted": FLAG}),
    "VoiceList": closed_object(
        {
            "object": always("list"),
            "data": array(_VOICE),
            "voices": array(closed_object({"id": TEXT, "name": TEXT})),
            "has_more": FLAG,
        }
    ),
    "SpeechModelList": closed_object({"models": array(closed_object({"id": TEXT}))}),
    "Estimate": _ESTIMATE,
    "ChatCompletion": _COMPLETION,
    "ModelResponse": _RESPONSE,
    "Model": _MODEL,
    "ModelList": list_of("Model", pages=False),
    **ACCOUNT_SCHEMAS,
    "Health": closed_object({"status": one_of("ok", "ready")}, optional={"warnings": array(TEXT)}),
    "Document": {"type": "object"},
}
