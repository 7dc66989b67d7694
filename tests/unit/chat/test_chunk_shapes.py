"""The shape of streamed chunks, from servers that send another one."""

import json
from typing import Any

import pytest

from penstock.chat.stream import Relay
from tests.unit.chat.chat_calls import chunk_event

FIRST = {"role": "assistant", "content": "Hel"}
DONE = b"data: [DONE]\n\n"


def chunks(events: bytes) -> list[Any]:
    return [json.loads(block[6:]) for block in events.split(b"\n\n") if block and b"[DONE]" not in block]


def deltas(events: bytes) -> list[list[Any]]:
    """Index, delta and finish reason of each choice of each chunk."""
    choices = [choice for chunk in chunks(events) for choice in chunk["choices"]]
    return [[choice["index"], choice["delta"], choice["finish_reason"]] for choice in choices]


def last(delta: Any) -> bytes:
    return chunk_event(delta).replace(b'"finish_reason": null', b'"finish_reason": "stop"')


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ([chunk_event({"content": "Hel"}), last({})], [[0, FIRST, None], [0, {}, "stop"]]),
        ([chunk_event({"role": None, "content": "Hel"}), last({})], [[0, FIRST, None], [0, {}, "stop"]]),
        ([chunk_event(FIRST), last({"role": "assistant", "content": ""})], [[0, FIRST, None], [0, {}, "stop"]]),
        (
            [chunk_event(FIRST), last({"content": "lo"})],
            [[0, FIRST, None], [0, {"content": "lo"}, None], [0, {}, "stop"]],
        ),
        ([last({"content": "Hel"})], [[0, FIRST, None], [0, {}, "stop"]]),
        ([last({})], [[0, {"role": "assistant"}, None], [0, {}, "stop"]]),
        (
            [chunk_event(FIRST), chunk_event({"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "lo"},
                {"type": "reference", "reference_ids": [1]}]}), last({})],
            [[0, FIRST, None], [0, {"content": "lo", "reasoning_content": "hm"}, None], [0, {}, "stop"]],
        ),
        (
            [chunk_event(FIRST), chunk_event({"tool_calls": [
                {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]})],
            [[0, FIRST, None], [0, {"tool_calls": [{
                "index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]}, None]],
        ),
    ],
)  # fmt: skip
def test_a_stream_gets_the_documented_shape(sent: list[bytes], shown: list[list[Any]]) -> None:
    assert deltas(Relay(keeps_usage=False).feed(b"".join(sent) + DONE)) == shown
    relay = Relay(keeps_usage=False)
    assert deltas(b"".join([relay.feed(event) for event in (*sent, DONE)])) == shown, "event by event"


def test_what_is_right_is_passed_on_byte_by_byte() -> None:
    sent = chunk_event(FIRST) + chunk_event({"content": "lo"}) + last({}) + DONE
    assert Relay(keeps_usage=False).feed(sent) == sent


def test_each_of_several_choices_begins_with_its_role() -> None:
    sent = chunk_event({"content": "a"}) + chunk_event({"content": "b"}, 1) + chunk_event({"content": "c"}, 1)
    found = deltas(Relay(keeps_usage=False, choices=2).feed(sent))
    assert [delta.get("role") for _, delta, _ in found] == ["assistant", "assistant", None]


def test_log_probabilities_come_once() -> None:
    logprobs = {"content": [{"token": "a", "logprob": -0.5, "top_logprobs": []}]}
    (chunk,) = chunks(last(FIRST))
    chunk["choices"][0]["logprobs"] = logprobs
    shown = chunks(Relay(keeps_usage=False).feed(b"data: " + json.dumps(chunk).encode() + b"\n\n"))
    assert [found["choices"][0].get("logprobs") for found in shown] == [logprobs, None]


def test_azures_first_chunk_does_not_give_all_others_its_empty_fields() -> None:
    """It has the results of the content filter, and neither a choice nor an id, a time or a model."""
    first = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{"x": 1}]}
    relay = Relay(keeps_usage=False, model="azure/gpt")
    assert relay.feed(b"data: " + json.dumps(first).encode() + b"\n\n") == b"", "held back"
    shown = chunks(relay.feed(chunk_event(FIRST)))
    assert [(chunk["id"], chunk["created"], chunk["model"]) for chunk in shown] == [("c1", 1, "m")] * 2
    assert shown[0]["prompt_filter_results"] == [{"x": 1}]


def test_a_stream_without_any_choice_is_passed_on_at_its_end() -> None:
    usage = chunk_event({}, choices=[], usage={"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1})
    relay = Relay(keeps_usage=True)
    assert relay.feed(usage) == b""
    assert chunks(relay.feed(DONE)) == chunks(usage)
