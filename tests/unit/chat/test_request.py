"""The checks of a chat call, its maximum of tokens, and the body that the provider gets."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.chat.provider_body import check_supported
from penstock.chat.request import read_chat_request
from penstock.errors import InvalidRequest
from penstock.fields import CHAT
from penstock.long_bodies import json_encoding
from penstock.providers.chat_models import chat_operation
from penstock.providers.spec import Model
from tests.unit.chat.small_request import (
    CALL,
    HELLO,
    IMAGE,
    PUBLIC,
    SETTINGS,
    TEXT,
    call_with,
    chat_request,
    error_for,
    is_described,
)

TOOL = {"type": "function", "function": {"name": "look"}}

# ----------------------------------------------------------------------------------------------------------- parameters


VALID_FIELDS: list[dict[str, Any]] = [
    {"stream": True, "stream_options": {"include_usage": True}},
    {"stream": True, "stream_options": {}},
    {"temperature": 0},
    {"temperature": 2},
    {"max_tokens": 1},
    {"max_completion_tokens": 1},
    {"top_p": 0.5},
    {"frequency_penalty": -2, "presence_penalty": 2.0},
    {"stop": "end"},
    {"stop": ["a", "b", "c", "d"]},
    {"tools": [TOOL]},
    {"tools": [{**TOOL, "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}]},
    {"tools": [{**TOOL, "function": {"name": "look", "description": None, "parameters": None}}]},
    {"tools": [TOOL], "tool_choice": "none"},
    {"tools": [TOOL], "tool_choice": "auto"},
    {"tools": [TOOL], "tool_choice": "required"},
    {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}},
    {"response_format": {"type": "json_object"}},
    {"seed": -7},
    {"user": "u1", "session_id": "s1"},
    {"logprobs": True, "top_logprobs": 0},
    {"logprobs": True, "top_logprobs": 20},
    {"n": 2},
    dict.fromkeys(set(CHAT) - {"model", "messages"}),
    {"reasoning_effort": "low"},
]


def test_valid_fields_are_accepted() -> None:
    for fields in VALID_FIELDS:
        assert chat_request(**fields).body.items() >= fields.items(), fields
    assert [fields for fields in VALID_FIELDS if not is_described(**fields)] == []


@pytest.mark.parametrize(
    ("name", "neutral", "other"),
    [
        ("service_tier", "auto", "priority"),
        ("service_tier", "default", "flex"),
        ("stop", [], ["end"]),
        ("modalities", ["text"], ["text", "audio"]),
        ("functions", [], [{"name": "look"}]),
        ("prediction", {"type": "content", "content": "hello"}, "hello"),
    ],
)
def test_values_that_change_nothing_are_not_passed_on(name: str, neutral: Any, other: Any) -> None:
    request = chat_request(**{name: neutral})
    assert name not in request.body
    assert name not in request.extras
    assert chat_request(**{name: other}).body[name] == other


INVALID_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "is required"),
    ({"model": 5}, "model", "must be a string"),
    ({"model": " "}, "model", "must not be empty"),
    ({"messages": None}, "messages", "is required"),
    ({"messages": "hello"}, "messages", "must be an array"),
    ({"stream": "yes"}, "stream", "must be a boolean"),
    ({"temperature": -0.1}, "temperature", "from 0 to 2"),
    ({"temperature": 2.1}, "temperature", "from 0 to 2"),
    ({"temperature": "1"}, "temperature", "must be a number"),
    ({"temperature": True}, "temperature", "must be a number"),
    ({"max_tokens": 0}, "max_tokens", "at least 1"),
    ({"max_tokens": 1.5}, "max_tokens", "must be an integer"),
    ({"max_completion_tokens": 0}, "max_completion_tokens", "at least 1"),
    ({"max_completion_tokens": -5}, "max_completion_tokens", "at least 1"),
    ({"max_completion_tokens": "9"}, "max_completion_tokens", "must be an integer"),
    ({"n": 0}, "n", "from 1 to 128"),
    ({"n": "3"}, "n", "must be an integer"),
    ({"top_p": 1.1}, "top_p", "from 0 to 1"),
    ({"frequency_penalty": 2.1}, "frequency_penalty", "from -2 to 2"),
    ({"presence_penalty": -2.1}, "presence_penalty", "from -2 to 2"),
    ({"stop": ["a"] * 5}, "stop", "1 to 4 strings"),
    ({"stop": ["a", 1]}, "stop", "1 to 4 strings"),
    ({"stop": 1}, "stop", "must be a string or an array"),
    ({"tools": TOOL}, "tools", "must be an array"),
    ({"tools": [TOOL, "look"]}, "tools[1]", "`type` `function`"),
    ({"tools": [{**TOOL, "type": "retrieval"}]}, "tools[0]", "`type` `function`"),
    ({"tools": [{"type": "function"}]}, "tools[0]", "a `function`"),
    ({"tools": [{**TOOL, "function": {}}]}, "tools[0].function.name", "is required"),
    ({"tools": [{**TOOL, "function": {"name": ""}}]}, "tools[0].function.name", "is required"),
    (
        {"tools": [{**TOOL, "function": {"name": "look", "description": 1}}]},
        "tools[0].function.description",
        "must be a string",
    ),
    (
        {"tools": [{**TOOL, "function": {"name": "look", "parameters": []}}]},
        "tools[0].function.parameters",
        "a JSON Schema object",
    ),
    ({"tool_choice": "maybe"}, "tool_choice", "`none`, `auto`, `required`"),
    ({"tool_choice": {"type": "function"}}, "tool_choice", "a function's `name`"),
    ({"tool_choice": {"type": "tool", "function": {"name": "look"}}}, "tool_choice", "`type` `function`"),
    ({"tool_choice": "required"}, "tool_choice", "needs `tools`"),
    ({"tool_choice": "required", "tools": []}, "tool_choice", "needs `tools`"),
    ({"tool_choice": {"type": "function", "function": {"name": "look"}}}, "tool_choice", "`look`, which `tools`"),
    (
        {"tool_choice": {"type": "function", "function": {"name": "gaze"}}, "tools": [TOOL]},
        "tool_choice",
        "`gaze`, which `tools`",
    ),
    (
        {"tool_choice": {"type": "function", "function": {"name": "gaze"}}, "tools": [7, {"function": {"name": []}}]},
        "tool_choice",
        "`gaze`, which `tools`",
    ),
    ({"response_format": "json"}, "response_format", "must be an object"),
    ({"response_format": {}}, "response_format", "`json_object`"),
    ({"seed": 1.5}, "seed", "must be an integer"),
    ({"user": 1}, "user", "must be a string"),
    ({"logprobs": 1}, "logprobs", "must be a boolean"),
    ({"top_logprobs": 3}, "top_logprobs", "needs `logprobs` to be true"),
    ({"top_logprobs": 3, "logprobs": False}, "top_logprobs", "needs `logprobs` to be true"),
    ({"top_logprobs": 21, "logprobs": True}, "top_logprobs", "from 0 to 20"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "needs `stream` to be true"),
    ({"stream": True, "stream_options": True}, "stream_options", "must be an object"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage", "a boolean"),
]


def test_an_invalid_field_is_refused_by_its_name() -> None:
    wrong = []
    for body, param, rule in INVALID_FIELDS:
        problem = error_for(**body)
        if problem.param != param or f"`{param}`" not in problem.message or rule not in problem.message:
            wrong.append((body, problem.param, problem.message))
    assert wrong == []


def test_the_body_must_be_an_object() -> None:
    with pytest.raises(InvalidRequest, match="must be a JSON object"):
        read_chat_request(call_with([HELLO]), SETTINGS)


# ---------------------------------------------------------------------------------------------------- maximum of tokens


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, 4096),
        ({"max_tokens": 10}, 10),
        ({"max_completion_tokens": 20}, 20),
        ({"max_tokens": 800, "max_completion_tokens": 900}, 800),
        ({"n": 3}, 3 * 4096),
        ({"n": 3, "max_tokens": 10}, 30),
    ],
)
def test_the_maximum_of_output_tokens_counts_every_choice(body: dict[str, Any], tokens: int) -> None:
    assert chat_request(**body).max_output_tokens(4096) == tokens


LONG = "wörter " * 1000


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": LONG}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": LONG}]}]},
        {"messages": [HELLO, {"role": "assistant", "tool_calls": [{**CALL, "function": {"arguments": LONG}}]}]},
        {"tools": [{"type": "function", "function": {"name": "look", "description": LONG}}]},
        {"messages": [{**HELLO, "name": LONG}]},
        {"messages": [{"role": "assistant", "content": "yes", "reasoning_content": LONG}]},
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": LONG}]},
        {"messages": [{"role": "assistant", "content": None, "refusal": LONG}]},
        {"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": LONG}]}]},
        {"messages": [{"role": "user", "content": [{**TEXT, "title": LONG}]}]},
        {"messages": [{"role": "user", "content": [{**IMAGE, "caption": LONG}]}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"description": LONG}}}},
        {"functions": [{"name": "look", "description": LONG}]},
        {"stop": [LONG]},
        {"guided_grammar": LONG},
    ],
)
def test_all_text_of_the_body_counts_a_token_for_each_byte(body: dict[str, Any]) -> None:
    added = chat_request(**body).max_text_tokens - chat_request().max_text_tokens
    assert len(LONG.encode()) - len("hello") <= added <= len(LONG.encode()) + 1200


def test_what_providers_add_to_messages_and_tools_counts() -> None:
    one = chat_request().max_text_tokens
    assert chat_request(messages=[HELLO] * 3).max_text_tokens == one + 2 * (len("hello") + 16)
    function = {"name": "look"}
    for tools in ({"tools": [{"type": "function", "function": function}]}, {"functions": [function]}):
        assert chat_request(**tools).max_text_tokens >= one + 1000


def test_only_what_a_model_reads_counts_as_its_prompt() -> None:
    plain = chat_request()
    assert plain.prompt_bytes == len("hello")
    unread = chat_request(user=LONG[:500], stop=[LONG], temperature=0.5, max_tokens=20, stream=True)
    assert unread.prompt_bytes == plain.prompt_bytes
    tools = [{"type": "function", "function": {"name": "look", "description": LONG}}]
    assert chat_request(tools=tools).prompt_bytes >= len(LONG.encode())


def test_the_bytes_of_images_are_no_text() -> None:
    """What an image costs depends on the model: see `max_image_tokens`."""
    plain = chat_request()
    with_images = chat_request(messages=[{"role": "user", "content": [TEXT, IMAGE, IMAGE]}])
    assert (len(plain.images), len(with_images.images)) == (0, 2)
    assert with_images.max_text_tokens - plain.max_text_tokens < 200


# ---------------------------------------------------------------------------------------------------------- long bodies

MANY = "long " * 1_000_000
LONG_FIELDS: dict[str, dict[str, Any]] = {
    "tools": {"tools": [{"type": "function", "function": {"name": "look", "description": MANY}}]},
    "response_format": {"response_format": {"type": "json_schema", "json_schema": {"description": MANY}}},
    "stop": {"stop": [MANY]},
    "the name of a message": {"messages": [{**HELLO, "name": MANY}]},
    "a call of a tool": {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "id": MANY}]}]},
    "a part of a message": {"messages": [{"role": "user", "content": [{**TEXT, "more": MANY}]}]},
    "the detail of an image": {
        "messages": [{"role": "user", "content": [{**IMAGE, "image_url": {"url": PUBLIC, "detail": MANY}}]}]
    },
}


@pytest.mark.parametrize("fields", LONG_FIELDS.values(), ids=LONG_FIELDS)
def test_a_long_call_is_measured_in_small_steps(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """No other thread runs during a step, also not the event loop."""
    sizes: list[int] = []

    def encode(value: Any) -> bytes:
        encoded = msgspec.json.Encoder().encode(value)
        sizes.append(len(encoded))
        return encoded

    monkeypatch.setattr(msgspec.json, "encode", encode)
    monkeypatch.setattr(json_encoding, "_encode", encode)
    body = {"model": "lab/chat", "messages": [HELLO], **fields}
    call = msgspec.structs.replace(call_with(body), size_bytes=len(MANY))
    chat = read_chat_request(call, SETTINGS)
    assert chat.max_text_tokens > len(MANY)
    small = Model(id="lab/chat", upstream="x", op=replace(chat_operation(), max_body_bytes=9000), prices=())
    with pytest.raises(InvalidRequest, match="at most 9000 bytes of JSON"):
        check_supported(chat, small)
    with pytest.raises(InvalidRequest, match="Extra parameters may have 65536 bytes at most"):
        read_chat_request(msgspec.structs.replace(call, json={**body, "more": fields}), SETTINGS)
    assert max(sizes) < 1024**2
