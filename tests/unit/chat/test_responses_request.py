"""A call of the Responses API becomes a chat call; what has no translation is refused by its name."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from penstock.chat.responses_request import ResponsesRequest, read_responses_request
from penstock.errors import InvalidRequest
from penstock.schema import Call, Caller
from penstock.values import OrgId

TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}


def read(**body: Any) -> ResponsesRequest:
    call = Call(
        id="req_1",
        caller=Caller(OrgId("org_1"), "key_1"),
        endpoint="/",
        at_ms=0,
        started=0.0,
        json={"model": "m", "input": "hi", **body},
        size_bytes=len(json.dumps(body)),
    )
    return read_responses_request(call)


@pytest.mark.parametrize(
    ("body", "chat"),
    [
        ({}, {}),
        ({"stream": True, "temperature": 0.5, "top_p": 1}, {"stream": True, "temperature": 0.5, "top_p": 1}),
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"reasoning": {"effort": "high", "summary": "auto"}}, {"reasoning_effort": "high"}),
        ({"safety_identifier": "u"}, {"user": "u"}),
        ({"safety_identifier": "u", "user": "v"}, {"user": "v"}),
        ({"include": ["message.output_text.logprobs"], "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"include": ["reasoning.encrypted_content"], "store": True, "metadata": {"a": "b"}}, {}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
        ({"seed": 7, "service_tier": "auto"}, {"seed": 7, "service_tier": "auto"}),
        ({"background": False, "previous_response_id": None, "truncation": "disabled"}, {}),
    ],
)
def test_fields_are_translated(body: dict[str, Any], chat: dict[str, Any]) -> None:
    assert read(**body).chat == {"model": "m", "messages": [{"role": "user", "content": "hi"}], **chat}


def test_a_schema_moves_to_where_chat_has_it() -> None:
    schema = {"name": "s", "schema": {"type": "object"}, "strict": True}
    translated = read(text={"format": {"type": "json_schema", **schema}}).chat["response_format"]
    assert translated == {"type": "json_schema", "json_schema": schema}


def test_tools_and_choices_are_translated() -> None:
    function = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}
    chat = read(tools=[TOOL], tool_choice={"type": "function", "name": "f"}, parallel_tool_calls=False).chat
    assert (chat["tools"], chat["parallel_tool_calls"]) == ([function], False)
    assert chat["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    both = [TOOL, {"type": "image_generation", "size": "64x64"}]
    request = read(tools=both, tool_choice={"type": "image_generation"})
    assert request.image_tool == both[1]
    assert request.chat["tool_choice"]["function"]["name"] == "image_generation"
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}
    chosen = read(tools=both, tool_choice=allowed).chat
    assert (chosen["tools"], chosen["tool_choice"]) == ([function], "required")
    assert "tool_choice" not in read(tool_choice="auto").chat


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": [7]}, "input[0]"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 7}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}, "input[0].arguments"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": 7}]}, "input[0].output"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": ["f"]}, "tools[0].type"),
        ({"tools": [TOOL], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"model": None}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        *(({"max_tool_calls": wrong}, "max_tool_calls") for wrong in (-1, 0.5, "3", True, [3])),
        ({"metadata": {f"n{number}": "x" for number in range(17)}}, "metadata"),
        ({"metadata": {"n" * 65: "x"}}, "metadata"),
        ({"metadata": {"n": "x" * 513}}, "metadata.n"),
        ({"metadata": {"n": 7}}, "metadata.n"),
        (
            {"input": [{"role": "assistant", "content": [{"type": "input_image", "image_url": "x"}]}]},
            "input[0].content",
        ),
        ({"input": [{"role": "user", "content": "x", "file_url": "y"}]}, "input[0].file_url"),
        ({"tools": [{"type": "custom"}]}, "tools[0].name"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
        ({"input": [{"type": ["message"]}]}, "input[0].type"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "tools": None}}, "tool_choice.tools"),
        ({"tools": [{"type": "image_generation", "model": {"id": "m"}}]}, "tools[0].model"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"stream_options": {"include_obfuscation": False}}, "stream_options"),
        ({"stream": True, "stream_options": 3}, "stream_options"),
        ({"prompt_cache_key": 3}, "prompt_cache_key"),
        ({"safety_identifier": ["x"]}, "safety_identifier"),
        ({"n": 3}, "n"),
        ({"truncation": "middle"}, "truncation"),
        ({"tools": [{"type": "image_generation", "action": ["edit"]}]}, "tools[0].action"),
        ({"tools": [{"type": "image_generation", "input_image_mask": "x"}]}, "tools[0].input_image_mask"),
    ],
)
def test_what_cannot_be_translated_is_refused_by_its_name(body: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**body)
    assert caught.value.param == param


def test_a_body_must_be_an_object() -> None:
    with pytest.raises(InvalidRequest):
        read_responses_request(
            Call(id="req_1", caller=Caller(OrgId("o"), "k"), endpoint="/", at_ms=0, started=0.0, json=["x"])
        )


def test_metadata_has_the_limits_of_openai() -> None:
    metadata = {f"n{number}": "x" for number in range(15)} | {"n" * 64: "x" * 512}
    assert read(metadata=metadata).body["metadata"] == metadata


def test_references_to_reasoning_are_left_out() -> None:
    asked = {"role": "user", "content": "x"}
    assert read(input=[{"type": "item_reference", "id": "rs_1"}, asked]).chat["messages"] == [asked]


def test_custom_tools_have_no_translation() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": "y"}
    assert read(input=[call, output]).not_in_chat == "input[0]"
    tool = {"type": "custom", "name": "f", "format": {"type": "text"}}
    assert read(tools=[TOOL, tool], tool_choice={"type": "custom", "name": "f"}).not_in_chat == "tools[1]"
    assert read(tools=[TOOL]).not_in_chat is None


def test_images_of_ours_are_made_by_our_models() -> None:
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"}
    assert not read(input=[image, {"role": "user", "content": "brighter"}]).may_pass_through
    assert not read(tools=[{"type": "image_generation"}]).may_pass_through
    assert read(tools=[TOOL]).may_pass_through


IMAGE_PART = {"type": "input_image", "image_url": "https://files.test/a.png", "detail": "low"}
FULL_BODY: dict[str, Any] = {
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}, IMAGE_PART]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"},
        {"type": "item_reference", "id": "rs_1"},
        {"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "output_format": "png"},
        {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "x"},
    ],
    "instructions": "x",
    "tools": [TOOL, {"type": "custom", "name": "g", "format": {"type": "text"}},
              {"type": "image_generation", "model": "m", "action": "edit", "input_image_mask": {"image_url": "x"}}],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
    "text": {"format": {"type": "json_schema", "name": "s", "schema": {}}, "verbosity": "low"},
    "reasoning": {"effort": "low"},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 2,
    "metadata": {"a": "b"},
    "safety_identifier": "u",
}  # fmt: skip
OTHER_VALUES: tuple[Any, ...] = (None, True, 7, 1.5, "", "x", [], ["x"], [[]], [{}], {}, {"x": []})


def variants(value: Any) -> Iterator[Any]:
    """The same value with one part of it, at any depth, replaced by something else or left out."""
    yield from OTHER_VALUES
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {other: part for other, part in value.items() if other != name}
            for variant in variants(inner):
                yield {**value, name: variant}
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            for variant in variants(inner):
                yield [*value[:number], variant, *value[number + 1 :]]


def test_a_wrong_value_anywhere_is_translated_or_refused_with_a_message() -> None:
    assert read(**FULL_BODY).chat["messages"]
    for name, value in FULL_BODY.items():
        for variant in variants(value):
            with suppress(InvalidRequest):
                read(**{**FULL_BODY, name: variant})


@pytest.mark.parametrize(
    "large",
    [
        lambda text: {"instructions": text},
        lambda text: {"text": {"format": {"type": "text"}, "x": text}},
        lambda text: {"reasoning": {"x": text}},
        lambda text: {"tools": [TOOL], "tool_choice": text},
        lambda text: {"tools": [{**TOOL, "x": text}]},
    ],
)
def test_what_the_response_repeats_is_limited(large: Callable[[str], dict[str, Any]]) -> None:
    """A stream repeats it three times, and most of it reaches no provider that would bill it."""
    read(**large("x" * 1_000_000))
    read(input="x" * 2_000_000)
    with pytest.raises(InvalidRequest, match="may have 1048576 bytes together"):
        read(**large("x" * 1_100_000))
