"""The echo: every form of a chat response, at once and as a stream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock_atelier.renderers import echo

WORDS = "one two three four"


def ask(**body: Any) -> dict[str, Any]:
    return {"model": "echo", "messages": [{"role": "user", "content": WORDS}], **body}


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def choice(**body: Any) -> dict[str, Any]:
    (found,) = echo.completion(ask(**body))["choices"]
    return dict(found)


def joined_stream(**body: Any) -> dict[str, Any]:
    """The stream put together as a client would."""
    content, arguments, call, reason = "", "", None, None
    for chunk in echo.chunks(ask(**body)):
        for choice in chunk["choices"]:
            delta, reason = choice["delta"], choice["finish_reason"] or reason
            content += delta.get("content") or ""
            for part in delta.get("tool_calls", ()):
                call = call or part
                arguments += part["function"]["arguments"]
    return {"content": content, "arguments": arguments, "call": call, "finish_reason": reason}


def test_it_repeats_the_last_message() -> None:
    response = echo.completion(ask())
    assert response["object"] == "chat.completion"
    assert response["choices"][0]["message"] == {"role": "assistant", "content": WORDS}
    assert response["choices"][0]["finish_reason"] == "stop"
    assert response["usage"] == {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}
    assert echo.completion(ask())["id"] != response["id"]


@pytest.mark.parametrize(
    ("messages", "repeated"),
    [
        ([{"role": "system", "content": "be brief"}], "be brief"),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "a"),
        ([{"role": "user", "content": "a"}, {"role": "tool", "content": "42"}], "42"),
        ([{"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url"}]}], "see [image]"),
        ([{"role": "assistant", "content": "b"}], ""),
    ],
)
def test_which_message_is_repeated(messages: list[dict[str, Any]], repeated: str) -> None:
    assert choice(messages=messages)["message"]["content"] == repeated


@pytest.mark.parametrize(
    ("body", "content", "reason"),
    [
        ({"max_tokens": 2}, "one two", "length"),
        ({"max_completion_tokens": 3}, "one two three", "length"),
        ({"max_tokens": 4}, WORDS, "stop"),
        ({"stop": "three"}, "one two ", "stop"),
        ({"stop": ["four", "two"]}, "one ", "stop"),
        ({"stop": ["never"]}, WORDS, "stop"),
        ({"response_format": {"type": "json_object"}}, json.dumps({"echo": WORDS}), "stop"),
    ],
)
def test_limits_and_forms(body: dict[str, Any], content: str, reason: str) -> None:
    whole = choice(**body)
    assert (whole["message"]["content"], whole["finish_reason"]) == (content, reason)
    parts = joined_stream(**body)
    assert (parts["content"], parts["finish_reason"]) == (content, reason)


def test_json_after_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "size": {"enum": ["s", "m"]},
            "fixed": {"const": 7},
            "tags": {"type": "array", "items": {"type": "integer"}},
            "maybe": {"type": ["number", "null"]},
        },
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(choice(response_format=form)["message"]["content"]) == {
        "city": "echo", "size": "s", "fixed": 7, "tags": [1], "maybe": 1.5,
    }  # fmt: skip


def test_schemas_that_say_little() -> None:
    assert echo._sample({"properties": {"any": True, "none": {"enum": []}}}, 0) == {"any": None, "none": {}}


def test_a_schema_within_itself_has_an_end() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["inner"] = schema
    assert echo._sample(schema, 0)["inner"] is not None


KEYWORDS = some.sampled_from(["type", "enum", "const", "properties", "items", "json_schema", "schema", "parameters"])
ANY_JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 9) | some.sampled_from(["object", "array", "string", "x"]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=12,
)


@given(ANY_JSON)
def test_a_malformed_schema_is_answered_like_any_other(schema: Any) -> None:
    form = {"type": "json_schema", "json_schema": schema}
    json.loads(choice(response_format=form)["message"]["content"])
    json.loads(choice(response_format={"type": "json_schema", "json_schema": {"schema": schema}})["message"]["content"])
    call = choice(tools=[tool("look", any=schema, type="object", properties=schema)], tool_choice="required")
    json.loads(call["message"]["tool_calls"][0]["function"]["arguments"])


LOOK = tool("look", type="object", properties={"at": {"type": "string"}})
TALK = tool("talk")
MENTIONS = [{"role": "user", "content": "please talk to me"}]


@pytest.mark.parametrize(
    ("body", "called"),
    [
        ({"tools": [LOOK, TALK]}, None),
        ({"tools": [LOOK, TALK], "messages": MENTIONS}, "talk"),
        ({"tools": [LOOK, TALK], "messages": MENTIONS, "tool_choice": "none"}, None),
        ({"tools": [LOOK, TALK], "tool_choice": "required"}, "look"),
        ({"tools": [LOOK, TALK], "messages": MENTIONS, "tool_choice": "required"}, "talk"),
        ({"tools": [LOOK, TALK], "tool_choice": {"type": "function", "function": {"name": "talk"}}}, "talk"),
        ({"tools": [LOOK], "messages": [*MENTIONS, {"role": "tool", "content": "look"}]}, None),
    ],
)
def test_when_it_calls_a_tool(body: dict[str, Any], called: str | None) -> None:
    whole, parts = choice(**body), joined_stream(**body)
    if called is None:
        assert "tool_calls" not in whole["message"]
        assert parts["call"] is None
        return
    (call,) = whole["message"]["tool_calls"]
    assert (whole["message"]["content"], whole["finish_reason"]) == (None, "tool_calls")
    assert (call["type"], call["function"]["name"]) == ("function", called)
    assert json.loads(call["function"]["arguments"]) == ({"at": "echo"} if called == "look" else {})
    assert parts["call"]["id"] == call["id"]
    assert (parts["arguments"], parts["finish_reason"]) == (call["function"]["arguments"], "tool_calls")


def test_a_stream_begins_with_a_role_and_ends_with_a_reason() -> None:
    chunks = list(echo.chunks(ask()))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 5 + ["stop"]


def test_usage_comes_last_when_asked_for() -> None:
    *_, last = echo.chunks(ask(stream_options={"include_usage": True}))
    assert (last["choices"], last["usage"]) == ([], echo.completion(ask())["usage"])
    assert not any("usage" in chunk for chunk in echo.chunks(ask()))


@pytest.mark.parametrize("alternatives", [0, 3])
def test_every_token_has_probability_1(alternatives: int) -> None:
    logprobs = choice(logprobs=True, top_logprobs=alternatives)["logprobs"]["content"]
    assert [token["token"] for token in logprobs] == ["one", " two", " three", " four"]
    assert all(len(token["top_logprobs"]) == alternatives for token in logprobs)
    assert all(token["logprob"] == 0 for token in logprobs)
    assert bytes(logprobs[1]["bytes"]) == b" two"
    assert choice()["logprobs"] is None
    streamed = [chunk["choices"][0].get("logprobs") for chunk in echo.chunks(ask(logprobs=True))]
    assert [part["content"][0]["token"] for part in streamed if part] == ["one", " two", " three", " four"]


@given(some.text(max_size=60), some.integers(1, 20))
def test_the_stream_says_the_same_as_the_whole_response(text: str, max_tokens: int) -> None:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": max_tokens}
    whole, parts = choice(**body), joined_stream(**body)
    assert (parts["content"], parts["finish_reason"]) == (whole["message"]["content"], whole["finish_reason"])
    assert text.startswith(parts["content"])
