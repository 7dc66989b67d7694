"""Responses with missing or invented fields get the documented ones; documented responses stay as they are."""

import json
from typing import Any

import msgspec
import pytest

from penstock.chat.normalise import (
    Completion,
    finish_reason,
    rename_finish_reasons,
    repaired_chunk,
    repaired_completion,
    usage_fields,
)
from penstock.chat.pricing import Usage

GOOD: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}
HEAD = {"id": "c1", "created": 1, "model": "m"}


def read(body: dict[str, Any]) -> Completion:
    return msgspec.json.decode(json.dumps(body), type=Completion)


def without(name: str) -> dict[str, Any]:
    return {other: value for other, value in GOOD.items() if other != name}


def test_a_documented_response_needs_no_repair_and_each_missing_field_does() -> None:
    assert read(GOOD).is_documented
    choice = GOOD["choices"][0]
    sloppy = [
        *(without(name) for name in GOOD if name != "choices"),
        {**GOOD, "created": 1.5},
        {**GOOD, "usage": {"prompt_tokens": 1}},
        *({**GOOD, "choices": [{**choice, name: None}]} for name in choice),
        {**GOOD, "choices": [{**choice, "finish_reason": "eos"}]},
    ]
    assert [body for body in sloppy if read(body).is_documented] == []
    for body in sloppy:
        usage = Usage(prompt_tokens=1, completion_tokens=2)
        assert read(json.loads(repaired_completion(json.dumps(body).encode(), "m", usage, 7))).is_documented, body


def test_what_a_server_adds_stays() -> None:
    body = json.dumps({**GOOD, "object": None, "extra": 1}).encode()
    assert json.loads(repaired_completion(body, "m", Usage(), 7))["extra"] == 1


@pytest.mark.parametrize(
    ("reason", "calls", "expected"),
    [
        ("stop", False, "stop"),
        ("MAX_TOKENS", False, "length"),
        ("tool_use", False, "tool_calls"),
        ("eos", True, "tool_calls"),
        ("eos", False, "stop"),
        (None, False, "stop"),
        (7, True, "tool_calls"),
    ],
)
def test_finish_reasons(reason: Any, calls: bool, expected: str) -> None:
    assert finish_reason(reason, calls) == expected


def test_only_undocumented_reasons_are_renamed() -> None:
    for body in (b'{"finish_reason":"stop"}', b'{"finish_reason":null}', rb'{"content":"\"finish_reason\":\"eos\""}'):
        assert rename_finish_reasons(body, {}) is body
    assert rename_finish_reasons(b'{"finish_reason": "own"}', {b"own": b"length"}) == b'{"finish_reason": "length"}'
    calling = b'{"tool_calls": [{}], "finish_reason":"eos"}'
    assert rename_finish_reasons(calling, {}).endswith(b'"tool_calls"}')


def test_a_chunk_gets_what_all_chunks_have_in_common() -> None:
    chunk = repaired_chunk({"choices": [{"delta": None, "finish_reason": "eos"}]}, HEAD, has_tool_calls=False)
    assert chunk == {
        **HEAD,
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }


def test_usage_has_all_three_numbers() -> None:
    assert usage_fields(Usage(prompt_tokens=3)) == {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
    assert usage_fields(Usage(prompt_tokens=3, total_tokens=5))["completion_tokens"] == 2


def test_texts_that_servers_write_as_something_else() -> None:
    """Mistral's parts of a reasoning model, arguments as an object, and calls without an id."""
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]
    whole = {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}, whole]
    for wrong in ({"content": parts}, {"content": None, "tool_calls": calls}):
        message = {"role": "assistant", **wrong}
        assert not read({**GOOD, "choices": [{**GOOD["choices"][0], "message": message}]}).is_documented, wrong
    message = {"role": "assistant", "content": parts, "tool_calls": calls}
    body = {**GOOD, "choices": [{**GOOD["choices"][0], "message": message}]}
    repaired = json.loads(repaired_completion(json.dumps(body).encode(), "m", Usage(prompt_tokens=1), 7))
    found = repaired["choices"][0]["message"]
    assert (found["content"], found["reasoning_content"]) == ("yes", "hm")
    assert found["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
    assert found["tool_calls"][0]["type"] == "function"
    assert found["tool_calls"][0]["id"].startswith("call_")
    assert found["tool_calls"][1] == whole
