"""Response schemas accept what the interface shows and nothing else."""

from typing import Any

import jsonschema_rs
import pytest

from penstock.api.openapi import schema_parts
from penstock.api.openapi.response_schemas import SCHEMAS

EXAMPLES: dict[str, Any] = {
    "Error": {"error": {"message": "m", "type": "api_error", "code": "INTERNAL_ERROR", "param": "n"}},
    "Balance": {
        "object": "balance",
        "billing_type": "postpaid",
        "available": {"amount": None, "currency": "usd"},
        "held": 0,
        "pace": {"days": 7, "spent": 1.5, "per_day": 0.2, "days_left": None},
    },
    "WebhookSecret": {"key": "whsec_x", "previous_expires_at": None},
    "Purged": {"id": "req_1", "purged": True, "already_purged": False, "media_deleted": 2},
    "Key": {
        "id": "key_1",
        "object": "key",
        "name": None,
        "owner": {"id": "user_1", "name": "Anna"},
        "last_four": "abcd",
        "status": "active",
        "created_at": "2026-01-31T12:00:00Z",
        "revoked_at": None,
        "scopes": ["admin"],
        "requests_per_minute": 60,
        "concurrent_requests": None,
        "usd_per_day": 2.5,
        "usd_per_month": None,
        "models": ["atelier/*"],
        "replay_mode": None,
        "image_response_format": None,
        "expires_at": None,
        "labels": {"customer": "acme"},
        "last_used_at": "2026-01-31T12:00:00Z",
        "spent_today": 0,
        "spent_this_month": 0.5,
    },
    "KeyList": {"object": "list", "data": [], "next_page_url": None, "previous_page_url": "/v1/keys?limit=1"},
    "RequestList": {
        "object": "list",
        "data": [],
        "next_page_url": None,
        "previous_page_url": None,
        "summary": {"total_cost": 0.5, "currency": "usd", "count": 3},
    },
    "ImageResult": {
        "id": "req_1",
        "created": 1,
        "size": "16x16",
        "output_format": "png",
        "data": [{"url": "http://x"}],
        "metadata": {
            "provider_name": "A",
            "provider": "a",
            "upstream_id": "",
            "model": "m",
            "executed_model": "a/m",
            "cost": 0.01,
            "cost_currency": "USD",
        },
    },
}


def valid(name: str, value: Any) -> bool:
    schema = {**SCHEMAS[name], "components": {"schemas": dict(SCHEMAS)}}
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_schema_accepts_its_example_and_no_further_fields(name: str) -> None:
    example = EXAMPLES[name]
    assert valid(name, example)
    assert not valid(name, {**example, "more": 1})
    for field in SCHEMAS[name]["required"]:
        assert not valid(name, {key: value for key, value in example.items() if key != field}), field


def test_nullable_fields_accept_null() -> None:
    assert schema_parts.or_null(schema_parts.TEXT) == {"type": ["string", "null"]}
    assert schema_parts.or_null(schema_parts.one_of("a")) == {"type": ["string", "null"], "enum": ["a", None]}
    assert schema_parts.or_null(schema_parts.ref("Key")) == {"anyOf": [schema_parts.ref("Key"), {"type": "null"}]}


def test_a_videos_metadata_may_have_further_fields() -> None:
    metadata = SCHEMAS["Video"]["properties"]["metadata"]
    assert metadata["additionalProperties"] is True
    assert "provider" in metadata["required"]
