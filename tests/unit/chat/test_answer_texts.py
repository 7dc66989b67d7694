"""Whatever a model wrote is found in a response, whole or streamed, in either API."""

import json
from typing import Any

from penstock.chat.answer_texts import streamed_text, whole_text
from tests.unit.chat.chat_calls import chunk_event


def stream(*deltas: Any) -> bytes:
    return b"".join(map(chunk_event, deltas)) + b"data: [DONE]\n\n"


def test_texts_thoughts_and_arguments_of_a_completion() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "g\\u0075n"}'}}
    message = {"role": "assistant", "content": "one", "reasoning_content": "two", "tool_calls": [call], "refusal": None}
    audio = {"choices": [{"message": {"audio": {"id": "a", "data": "AAAA", "transcript": "three"}}}]}
    found = whole_text(json.dumps({"model": "m", "choices": [{"message": message}]}).encode())
    assert found.split("\n") == ["one", "two", "find", '{"q": "g\\u0075n"}', "gun"]
    assert whole_text(json.dumps(audio).encode()) == "three"


def test_escapes_in_arguments_that_are_written_over_several_lines_hide_no_word() -> None:
    function = {"name": "find", "arguments": '\n{\n  "q": "g\\u0075n"\n}'}
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]}
    assert "gun" in whole_text(json.dumps({"choices": [{"message": message}]}).encode()).split()


def test_items_of_a_response() -> None:
    items = [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "one"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "two", "annotations": []}]},
        {"type": "image_generation_call", "result": "AAAA", "revised_prompt": "three"},
        {"type": "custom_tool_call", "name": "patch", "input": "four"},
    ]
    assert whole_text(json.dumps({"output": items}).encode()).split() == ["one", "two", "three", "patch", "four"]
    event = {"type": "response.completed", "response": {"output": items}}
    events = b"event: response.created\ndata: {}\n\nevent: response.completed\ndata: " + json.dumps(event).encode()
    assert streamed_text(events + b"\n\n").split() == ["one", "two", "three", "patch", "four"]


def test_pieces_are_joined_where_they_belong() -> None:
    def call(index: int, arguments: str) -> Any:
        return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}

    events = stream(
        {"role": "assistant", "content": ""},
        {"content": "a g"},
        {"reasoning": "thi"},
        {"content": "un"},
        {"reasoning": "nk"},
        call(0, '{"a":'),
        call(1, '{"b":'),
        call(0, ' "x"}'),
        call(1, ' "y"}'),
    )
    assert streamed_text(events).split("\n") == ["a gun", "think", '{"a": "x"}', '{"b": "y"}']


def test_choices_are_not_mixed() -> None:
    events = chunk_event({"content": "g"}) + chunk_event({"content": "u"}, 1) + chunk_event({"content": "n"})
    assert streamed_text(events).split("\n") == ["gn", "u"]


def test_an_event_that_is_no_json_is_read_as_it_is() -> None:
    assert "gun" in streamed_text(b"data: {gun\n\n")
