"""Schemas of request bodies accept and refuse what the gateway accepts and refuses."""

from typing import Any

import jsonschema_rs
import pytest

from penstock.api.endpoints.keys import KEY_FIELDS
from penstock.api.openapi import request_schemas
from penstock.fields import CHAT, EDIT, IMAGE, VIDEO, Table

PIXEL = "data:image/png;base64,iVBORw0KGgo="
IMAGES = {"prompt": "fox", "model": "m"}
VIDEOS = {"prompt": "fox", "model": "m"}
EDITS = {"image": PIXEL, "model": "m"}
CHAT_BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def valid(table: Table, value: Any, *, is_open: bool = True) -> bool:
    schema = request_schemas.body(table, is_form=False, is_open=is_open)
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


def test_schemas_of_fields_have_their_limits() -> None:
    fields = request_schemas.body(IMAGE, is_form=False, is_open=True)["properties"]
    assert fields["n"] == {
        "description": "How many images.",
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 10,
        "default": 1,
        "x-handling": "emulated",
    }
    assert fields["response_format"]["enum"] == ["url", "b64_json", None]
    assert fields["prompt"]["type"] == "string"


def test_files_are_binary_in_a_form_and_strings_in_json() -> None:
    file = {"type": "string", "format": "binary"}
    fields = request_schemas.body(EDIT, is_form=True, is_open=True)["properties"]
    assert fields["image"]["anyOf"] == [file, {"type": "array", "items": file}]
    assert (fields["mask"]["type"], fields["mask"]["format"]) == ("string", "binary")
    assert (fields["n"]["type"], fields["response_format"]["enum"]) == ("integer", ["url", "b64_json"])
    assert request_schemas.body(VIDEO, is_form=True, is_open=True)["properties"]["metadata"]["type"] == "string"


GOOD: list[tuple[Table, Any]] = [
    (IMAGE, {**IMAGES, "n": 10, "size": "1024x1792", "thinking": None, "guidance": 7}),
    (IMAGE, {**IMAGES, "size": "16:9", "webhook_url": "https://hooks.example.com:8443/x?y=1", "media_retention": "7d"}),
    (EDIT, {**EDITS, "mask": {"image_url": PIXEL}, "scale_factor": 2}),
    (EDIT, {**EDITS, "image": ["https://x.example/a.png", {"image_url": {"url": PIXEL}}]}),
    (VIDEO, {**VIDEOS, "seconds": "4", "input_reference": {"image_url": PIXEL}, "metadata": {"a": "b"}}),
    (VIDEO, {**VIDEOS, "duration": 4.5, "input_reference": [PIXEL, PIXEL], "idempotency_key": "k"}),
    (CHAT, CHAT_BODY),
    (CHAT, {**CHAT_BODY, "stop": ["a", "b"], "tool_choice": "auto", "response_format": {"type": "json_object"}}),
    (CHAT, {**CHAT_BODY, "stream": True, "stream_options": {"include_usage": True}}),
    (CHAT, {**CHAT_BODY, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}),
    (CHAT, {**CHAT_BODY, "tool_choice": {"type": "function", "function": {"name": "f"}}}),
    (CHAT, {"model": "m", "messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]}),
    (
        CHAT,
        {
            "model": "m",
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": PIXEL}}],
                }
            ],
        },
    ),
    (KEY_FIELDS, {}),
    (KEY_FIELDS, {"name": "k", "scopes": ["admin"], "usd_per_day": 1.5}),
]
BAD: list[tuple[Table, Any]] = [
    (IMAGE, {"prompt": "fox"}),
    (IMAGE, {**IMAGES, "prompt": "  "}),
    (IMAGE, {**IMAGES, "n": 11}),
    (IMAGE, {**IMAGES, "n": "1"}),
    (IMAGE, {**IMAGES, "size": "large"}),
    (IMAGE, {**IMAGES, "size": "9000x16"}),
    (IMAGE, {**IMAGES, "size": "15x16"}),
    (IMAGE, {**IMAGES, "quality": "best"}),
    (IMAGE, {**IMAGES, "webhook_url": "http://hooks.example.com/"}),
    (IMAGE, {**IMAGES, "webhook_url": "https://localhost/"}),
    (IMAGE, {**IMAGES, "webhook_url": "https://127.0.0.1/"}),
    (IMAGE, {**IMAGES, "webhook_url": "https://x.example:444/"}),
    (IMAGE, {**IMAGES, "media_retention": "1w"}),
    (EDIT, {"model": "m", "prompt": "x"}),
    (EDIT, {**EDITS, "image": 7}),
    (EDIT, {**EDITS, "image": []}),
    (VIDEO, {**VIDEOS, "seconds": 0}),
    (VIDEO, {**VIDEOS, "seconds": "long"}),
    (VIDEO, {**VIDEOS, "metadata": {"a": 1}}),
    (VIDEO, {**VIDEOS, "idempotency_key": ""}),
    (VIDEO, {**VIDEOS, "idempotency_key": "k" * 257}),
    (VIDEO, {**VIDEOS, "input_reference": {"image": PIXEL}}),
    (CHAT, {"model": "m", "messages": []}),
    (CHAT, {"model": "m", "messages": [{"role": "user"}]}),
    (CHAT, {"model": "m", "messages": [{"role": "user", "content": None}]}),
    (CHAT, {"model": "m", "messages": [{"role": "robot", "content": "x"}]}),
    (CHAT, {"model": "m", "messages": [{"role": "user", "content": "x", "tool_calls": []}]}),
    (CHAT, {"model": "m", "messages": [{"role": "user", "content": [{"type": "audio"}]}]}),
    (CHAT, {**CHAT_BODY, "stop": ["a"] * 5}),
    (CHAT, {**CHAT_BODY, "tool_choice": "always"}),
    (CHAT, {**CHAT_BODY, "tools": [{"type": "browser"}]}),
    (CHAT, {**CHAT_BODY, "temperature": 2.1}),
    (CHAT, {**CHAT_BODY, "response_format": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "value"), GOOD)
def test_schemas_accept_what_the_gateway_accepts(table: Table, value: Any) -> None:
    assert valid(table, value)


@pytest.mark.parametrize(("table", "value"), BAD)
def test_schemas_refuse_what_the_gateway_refuses(table: Table, value: Any) -> None:
    assert not valid(table, value)


def test_a_closed_body_allows_no_further_fields() -> None:
    assert valid(KEY_FIELDS, {"org_id": "x"})
    assert not valid(KEY_FIELDS, {"org_id": "x"}, is_open=False)
