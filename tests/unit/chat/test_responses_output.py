"""Chat completions and chat streams become the same response, and the documented events."""

import json
from typing import Any

import msgspec

from penstock.chat.pricing import Usage
from penstock.chat.responses_output import ResponsesForm
from penstock.chat.responses_request import ResponsesRequest
from penstock.errors import UpstreamError
from penstock.values import Nanos

USAGE = Usage(prompt_tokens=5, completion_tokens=7)
CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
]


def form() -> ResponsesForm:
    return ResponsesForm(ResponsesRequest({"model": "m", "input": "hi"}, {}, None), "req_1", 9)


def stream(*deltas: dict[str, Any], finish: str = "stop") -> tuple[list[Any], dict[str, Any]]:
    """The events for these deltas, and the last response."""
    one = form()
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    body = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    out = one.feed(body) + one.finish(USAGE, Nanos(1_000))
    events = [json.loads(block.partition(b"data: ")[2]) for block in out.split(b"\n\n") if block]
    return events, events[-1]["response"]


def whole(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    completion = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    response: dict[str, Any] = json.loads(form().whole(json.dumps(completion).encode(), USAGE, Nanos(1_000)))
    return response


def test_a_stream_ends_with_the_response_that_a_whole_call_gets() -> None:
    message = {"content": "Hi you.", "reasoning_content": "Hm.", "tool_calls": CALLS}
    pieces: list[dict[str, Any]] = [
        {"reasoning_content": "H"}, {"reasoning_content": "m."}, {"content": "Hi "}, {"content": "you."},
        {"tool_calls": [{"index": 0, **CALLS[0], "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        {"tool_calls": [{"index": 1, **CALLS[1]}]},
    ]  # fmt: skip
    events, last = stream(*pieces, finish="tool_calls")
    assert last == whole(message, "tool_calls")
    assert [item["type"] for item in last["output"]] == ["reasoning", "message", "function_call", "function_call"]
    opened = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    closed = [event["item"]["id"] for event in events if event["type"] == "response.output_item.done"]
    assert opened == closed == [item["id"] for item in last["output"]]
    assert len(set(opened)) == 4
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    done = [event["arguments"] for event in events if event["type"] == "response.function_call_arguments.done"]
    assert done == ['{"a":1}', "{}"]


def test_a_long_text_is_put_together_once() -> None:
    """Not again with each of its pieces, which would take a time that grows with the square of its length."""
    calls = [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "x" * 1000}}]
    for delta in ({"content": "x" * 1000}, {"refusal": "x" * 1000}, {"reasoning": "x" * 1000}, {"tool_calls": calls}):
        one = form()
        event = b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"
        put_together = []  # how long the texts of the output became, each time that they changed
        for _ in range(100):
            one.feed(event)
            put_together.append(len(msgspec.json.encode(one.output)))
        last = json.loads(one.finish(USAGE, Nanos(0)).rpartition(b"data: ")[2])["response"]["output"]
        assert len(json.dumps(last)) > 100_000
        assert sum(put_together) < 100_000, delta


def test_each_part_ends_before_the_next_begins() -> None:
    events, _ = stream({"content": "Well."}, {"refusal": "No."}, {"content": "Or yes."})
    parts = [event["type"] for event in events if "content_part" in event["type"]]
    assert parts == ["response.content_part.added", "response.content_part.done"] * 3


def test_a_refusal_is_a_part_of_its_own() -> None:
    events, last = stream({"refusal": "I "}, {"refusal": "won't."})
    assert last["output"][0]["content"] == [{"type": "refusal", "refusal": "I won't."}]
    assert last == whole({"content": None, "refusal": "I won't."})
    assert [event["type"] for event in events if "refusal" in event["type"]] == [
        "response.refusal.delta",
        "response.refusal.delta",
        "response.refusal.done",
    ]


def test_a_cut_answer_is_incomplete() -> None:
    for finish, reason in (("length", "max_output_tokens"), ("content_filter", "content_filter")):
        events, last = stream({"content": "Hi"}, finish=finish)
        assert (last["status"], last["incomplete_details"]) == ("incomplete", {"reason": reason})
        assert events[-1]["type"] == "response.incomplete"
        assert events[-2]["item"]["status"] == "incomplete"
        assert last == whole({"content": "Hi"}, finish)


def test_a_broken_stream_fails_after_its_items_are_closed() -> None:
    one = form()
    one.feed(b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n')
    out = one.fail(UpstreamError("It broke."))
    names = [block.partition(b"\n")[0] for block in out.split(b"\n\n") if block]
    assert names[-2:] == [b"event: response.output_item.done", b"event: response.failed"]
    response = json.loads(out.rpartition(b"data: ")[2])["response"]
    assert response["error"]["message"] == "It broke."
    assert [item["status"] for item in response["output"]] == ["incomplete"]


def test_usage_has_the_cost() -> None:
    usage = whole({"content": "Hi"})["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (5, 7, 12)
    assert usage["cost"] == 0.000001


def test_items_that_were_made_before_become_events() -> None:
    one = form()
    one.begin()
    image = one.begin_image() + bytes(one.partial_image({"b64_json": "aA==", "partial_image_index": 0, "id": "x"}))
    image += bytes(one.end_image(result="aGk="))
    one.add_completion({"model": "m", "choices": [{"message": {"content": "Done."}, "finish_reason": "stop"}]})
    one.add_function_call(CALLS[0])
    before = msgspec.to_builtins(one.output)
    out = one.new_item_events()
    assert msgspec.to_builtins(one.output) == before
    assert event_names(image) == [
        b"output_item.added",
        b"image_generation_call.in_progress",
        b"image_generation_call.generating",
        b"image_generation_call.partial_image",
        b"image_generation_call.completed",
        b"output_item.done",
    ]
    names = event_names(out)
    assert (names[0], names[-1]) == (b"output_item.added", b"output_item.done")
    assert names.count(b"output_item.added") == 2
    assert one.new_item_events() == b""


def event_names(out: bytes) -> list[bytes]:
    return [block.partition(b"\n")[0].removeprefix(b"event: response.") for block in out.split(b"\n\n") if block]
