"""JSON Schemas of the responses about the account: requests, keys, balance, webhooks, providers and recordings."""

from collections.abc import Mapping

from penstock.accounts.key_records import SCOPES
from penstock.accounts.orgs import BILLING_TYPES
from penstock.accounts.requests import KINDS, STATUSES
from penstock.accounts.usage import BUCKETS
from penstock.api.openapi.audit_schemas import AUDIT_SCHEMAS
from penstock.api.openapi.batch_schemas import BATCH_SCHEMAS
from penstock.api.openapi.label_schemas import LABEL_SCHEMAS, LABELS
from penstock.api.openapi.library_schemas import LIBRARY_SCHEMAS
from penstock.api.openapi.provenance_schemas import PUBLIC_VERIFICATION, VERIFICATION
from penstock.api.openapi.schema_parts import (
    CREDENTIALS,
    DELIVERED,
    FLAG,
    INTEGER,
    MONEY,
    NUMBER,
    TEXT,
    TIME,
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
from penstock.api.openapi.trial_schemas import TRIAL_SCHEMAS
from penstock.recordings.files import KINDS as KINDS_OF_RECORDINGS
from penstock.states import KEY, MESSAGE
from penstock.values import IMAGE_FORMS

_ATTEMPT = closed_object(
    {
        "id": or_null(TEXT),
        "provider": TEXT,
        "provider_name": TEXT,
        "model": or_null(TEXT),
        "status": one_of("sent", "running", "completed", "failed", "unknown", "cancelled"),
        "started_at": TIME,
        "ended_at": or_null(TIME),
        "outputs": INTEGER,
        "round": INTEGER,
        "failure": or_null(closed_object({"kind": TEXT, "reason": TEXT, "message": or_null(TEXT)})),
        "http_status": or_null(INTEGER),
        "upstream_id": or_null(TEXT),
    }
)
_OUTPUT = closed_object(
    {
        "id": TEXT,
        "url": TEXT,
        "thumbnail_url": or_null(TEXT),
        "content_type": TEXT,
        "size_bytes": INTEGER,
        "width": or_null(INTEGER),
        "height": or_null(INTEGER),
        "revised_prompt": or_null(TEXT),
        "content_credentials": or_null(CREDENTIALS),
        "expires_at": TIME,
    },
    optional=DELIVERED,
)
_WEBHOOK_MESSAGE = closed_object(
    {
        "id": TEXT,
        "object": always("webhook.message"),
        "request_id": or_null(TEXT),
        "event": TEXT,
        "url": TEXT,
        "status": one_of(*MESSAGE),
        "created_at": TIME,
        "ended_at": or_null(TIME),
        "next_at": or_null(TIME),
        "deliveries": array(
            closed_object(
                {
                    "number": INTEGER,
                    "at": TIME,
                    "duration_ms": INTEGER,
                    "status_code": or_null(INTEGER),
                    "result": TEXT,
                }
            )
        ),
    },
    optional={"body": open_object({})},
)
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
        "labels": LABELS,
        "drill": or_null(TEXT),
        "request_size_bytes": or_null(INTEGER),
        "response_size_bytes": or_null(INTEGER),
        "kind": or_null(one_of(*KINDS)),
        "prompt": or_null(TEXT),
        "key_name": or_null(TEXT),
        "content_credentials": or_null(TEXT),
        "provider": or_null(TEXT),
        "executed_model": or_null(TEXT),
        "progress": or_null(INTEGER),
        "input_tokens": or_null(INTEGER),
        "cached_tokens": or_null(INTEGER),
        "output_tokens": or_null(INTEGER),
        "vendor_cost": or_null(MONEY),
        "cost_lines": array(
            closed_object({"metric": TEXT, "quantity": NUMBER, "unit_price": or_null(NUMBER), "amount": NUMBER})
        ),
        "attempts": array(_ATTEMPT),
        "outputs": array(_OUTPUT),
        "webhook": or_null(ref("WebhookMessage")),
        "purged_at": or_null(TIME),
    }
)
_SUMMARY = closed_object({"total_cost": MONEY, "currency": always("usd"), "count": INTEGER})
_KEY = {
    "id": TEXT,
    "object": always("key"),
    "name": or_null(TEXT),
    "owner": or_null(closed_object({"id": TEXT, "name": or_null(TEXT)})),
    "last_four": or_null(TEXT),
    "status": one_of(*KEY),
    "created_at": TIME,
    "revoked_at": or_null(TIME),
    "scopes": array(one_of(*SCOPES)),
    "requests_per_minute": or_null(INTEGER),
    "concurrent_requests": or_null(INTEGER),
    "usd_per_day": or_null(MONEY),
    "usd_per_month": or_null(MONEY),
    "models": or_null(array(TEXT)),
    "replay_mode": or_null(TEXT),
    "image_response_format": or_null(one_of(*IMAGE_FORMS)),
    "expires_at": or_null(TIME),
    "labels": LABELS,
    "last_used_at": or_null(TIME),
    "spent_today": MONEY,
    "spent_this_month": MONEY,
}
_BALANCE = closed_object(
    {
        "object": always("balance"),
        "billing_type": one_of("prepaid", "postpaid"),
        "available": closed_object({"amount": or_null(NUMBER), "currency": always("usd")}),
        "held": MONEY,
        "pace": closed_object({"days": NUMBER, "spent": MONEY, "per_day": MONEY, "days_left": or_null(NUMBER)}),
    }
)
_FIGURES = {
    "requests": INTEGER,
    "completed": INTEGER,
    "failed": INTEGER,
    "rejected": INTEGER,
    "cancelled": INTEGER,
    "open": INTEGER,
    "success_rate": or_null(NUMBER),
    "cost": MONEY,
    "input_tokens": INTEGER,
    "output_tokens": INTEGER,
    "latency_ms": closed_object({"p50": or_null(INTEGER), "p95": or_null(INTEGER)}),
}
_ONE_OR_TWO = {"anyOf": [or_null(TEXT), array(or_null(TEXT))], "description": "Two in a list, if grouped by two."}
_USAGE_GROUP = closed_object({"group": _ONE_OR_TWO, "name": _ONE_OR_TWO, **_FIGURES})
_USAGE = closed_object(
    {
        "object": always("usage"),
        "bucket": one_of(*BUCKETS),
        "group_by": or_null(TEXT),
        "start": TIME,
        "end": TIME,
        "currency": always("usd"),
        "total": closed_object(_FIGURES),
        "groups": array(_USAGE_GROUP),
        "data": array(closed_object({"start": TIME, "end": TIME, **_FIGURES, "groups": array(_USAGE_GROUP)})),
    }
)
_ORGANIZATION = closed_object(
    {
        "id": TEXT,
        "object": always("organization"),
        "name": TEXT,
        "billing_type": one_of(*BILLING_TYPES),
        "available": NUMBER,
        "held": MONEY,
        "usd_per_month": or_null(MONEY),
        "spent_this_month": MONEY,
        "storage_bytes": or_null(INTEGER),
        "provenance": or_null(TEXT),
        "created_at": TIME,
    }
)
_CREDIT = closed_object(
    {
        "id": TEXT,
        "object": always("credit"),
        "org_id": TEXT,
        "amount": MONEY,
        "note": or_null(TEXT),
        "created_at": TIME,
    }
)
_SETTING = closed_object(
    {
        "name": TEXT,
        "variable": or_null(TEXT),
        "value": {"description": "Null where it may be secret."},
        "is_secret": FLAG,
        "is_set": FLAG,
        "origin": one_of("default", "file", "environment", "command line"),
        "default": TEXT,
        "meaning": TEXT,
    }
)
_FAILURE = closed_object(
    {
        "object": always("failure"),
        "error_code": or_null(TEXT),
        "status": one_of("upstream_failure", "rejected"),
        "model": or_null(TEXT),
        "provider": or_null(TEXT),
        "count": INTEGER,
        "last_at": TIME,
        "last_request_id": TEXT,
        "message": or_null(TEXT),
        "reason": or_null(TEXT),
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
        "kind": one_of(*KINDS_OF_RECORDINGS),
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
        "variables": array(closed_object({"name": TEXT, "purpose": one_of("credential", "base_url"), "is_set": FLAG})),
        "missing": array(TEXT),
        "models": INTEGER,
        "health": array(
            closed_object(
                {
                    "provider": TEXT,
                    "account": or_null(TEXT),
                    "model": TEXT,
                    "healthy": FLAG,
                    "successes": INTEGER,
                    "rejected": INTEGER,
                    "failures": INTEGER,
                    "last_problem": or_null(TEXT),
                    "recovers_in_seconds": NUMBER,
                    "history": array(closed_object({"at": TIME, "is_success": FLAG, "problem": or_null(TEXT)})),
                }
            )
        ),
    }
)

ACCOUNT_SCHEMAS: Mapping[str, Schema] = {
    "Verification": VERIFICATION,
    "PublicVerification": PUBLIC_VERIFICATION,
    **AUDIT_SCHEMAS,
    **BATCH_SCHEMAS,
    **TRIAL_SCHEMAS,
    **LABEL_SCHEMAS,
    "Request": _REQUEST,
    "WebhookMessage": _WEBHOOK_MESSAGE,
    "RequestList": list_of("Request", optional={"summary": _SUMMARY}),
    **LIBRARY_SCHEMAS,
    "Key": closed_object(_KEY),
    "NewKey": closed_object({**_KEY, "key": or_null(TEXT)}),
    "KeyList": list_of("Key"),
    "OwnKeyList": list_of("Key", pages=False),
    "OwnKeyLimits": closed_object(
        {
            "object": always("own_key_limits"),
            "keys": INTEGER,
            "days": INTEGER,
            "requests_per_minute": or_null(INTEGER),
            "concurrent_requests": or_null(INTEGER),
            "usd_per_day": or_null(MONEY),
            "usd_per_month": or_null(MONEY),
            "models": or_null(array(TEXT)),
        }
    ),
    "Balance": _BALANCE,
    "Usage": _USAGE,
    "Organization": _ORGANIZATION,
    "OrganizationList": list_of("Organization", pages=False),
    "Credit": _CREDIT,
    "CreditList": list_of("Credit", pages=False),
    "Setting": _SETTING,
    "SettingList": list_of("Setting", pages=False),
    "Failure": _FAILURE,
    "FailureList": list_of("Failure", pages=False),
    "WebhookSecret": closed_object(
        {"key": or_null({"type": "string", "pattern": "^whsec_"}), "previous_expires_at": or_null(TIME)}
    ),
    "WebhookMessageList": list_of("WebhookMessage"),
    "AlertSecret": closed_object({"key": or_null({"type": "string", "pattern": "^whsec_"})}),
    "WebhookRedelivery": closed_object({"object": always("webhook.redelivery"), "count": INTEGER}),
    "WebhookTest": closed_object(
        {
            "object": always("webhook.test"),
            "message_id": TEXT,
            "url": TEXT,
            "delivered": FLAG,
            "status_code": or_null(INTEGER),
            "result": TEXT,
            "duration_ms": INTEGER,
        }
    ),
    "Payloads": _PAYLOADS,
    "Purged": _PURGED,
    "Provider": _PROVIDER,
    "ProviderCheck": closed_object(
        {
            "object": always("provider.check"),
            "provider": TEXT,
            "model": TEXT,
            "kind": one_of(*KINDS),
            "status": one_of("works", "failed", "started", "estimated"),
            "estimate": MONEY,
            "request_id": or_null(TEXT),
            "cost": or_null(MONEY),
            "duration_ms": or_null(INTEGER),
            "error": or_null(closed_object({"code": TEXT, "message": TEXT})),
        }
    ),
    "ProviderList": list_of("Provider", pages=False),
    "Recording": _RECORDING,
    "RecordingList": list_of("Recording"),
    "RecordingDeleted": closed_object(
        {"id": TEXT, "object": always("recording"), "deleted": always(True), "media_deleted": INTEGER}
    ),
    "RecordingFile": _RECORDING_FILE,
}
