"""The events of each item come in the documented order, whatever order a server's pieces come in."""

import json
from typing import Any

import msgspec
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from penstock.chat.pricing import Usage
from penstock.chat.responses_events import Events, StreamedItems
from penstock.chat.responses_output import ResponsesForm
from penstock.chat.responses_request import ResponsesRequest
from penstock.chat.stream import Relay, StreamBroken, translate_events
from penstock.errors import UpstreamError
from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.long_bodies.long_body import LongBody
from penstock.values import Nanos
from tests.unit.chat.chat_calls import chunk_event

SDK_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
PARIS = '{"city":"Paris"}'
ROME = '{"city":"Rome"}'


def form() -> ResponsesForm:
    return ResponsesForm(ResponsesRequest({"model": "m", "input": "hi"}, {}, None), "req_1", 9)


def events_of(out: bytes) -> list[Any]:
    """The events of a stream: each as OpenAI's client knows it, and none about an item before or after its time."""
    events = [json.loads(block.partition(b"data: ")[2]) for block in out.split(b"\n\n") if block]
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    state: dict[str, str] = {}
    for event in events:
        SDK_EVENT.validate_python(event)
        item_id = event.get("item_id") or event.get("item", {}).get("id")
        if event["type"] == "response.output_item.added":
            assert item_id not in state
            state[item_id] = "open"
        elif item_id:
            assert state[item_id] == "open", event
        if event["type"] == "response.output_item.done":
            state[item_id] = "done"
            assert event["item"] == events[-1]["response"]["output"][event["output_index"]]
    return events


def stream(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[Any]:
    """The events for a chat stream of these deltas, which a relay has read."""
    one = form()
    relay = Relay(keeps_usage=True)
    sent = b"".join([*map(chunk_event, deltas), chunk_event({}).replace(b"null", json.dumps(finish).encode())])
    out = one.feed(relay.feed(sent + b"data: [DONE]\n\n"))
    return events_of(out + one.finish(Usage(prompt_tokens=1, completion_tokens=1), Nanos(1)))


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    """A delta with pieces of calls, whose names and arguments belong to their functions."""
    return {"tool_calls": [
        {**{name: value for name, value in piece.items() if name in ("index", "id")},
         "function": {name: value for name, value in piece.items() if name in ("name", "arguments")}}
        for piece in pieces
    ]}  # fmt: skip


BEGUN = ({"index": 0, "id": "a", "name": "f", "arguments": ""}, {"index": 1, "id": "b", "name": "f", "arguments": ""})


@pytest.mark.parametrize(
    "deltas",
    [
        [calls({"index": 0, "id": "a", "name": "f", "arguments": PARIS}),
         calls({"index": 0, "id": "b", "name": "f", "arguments": ROME})],
        [calls({"id": "a", "name": "f", "arguments": PARIS}, {"id": "b", "name": "f", "arguments": ROME})],
        # Both begin in one chunk and are filled in turns.
        [calls(*BEGUN), calls({"index": 0, "arguments": '{"city":'}), calls({"index": 1, "arguments": '{"city":'}),
         calls({"index": 0, "arguments": '"Paris"}'}), calls({"index": 1, "arguments": '"Rome"}'})],
        [calls(*BEGUN), calls({"index": 1, "arguments": ROME}), calls({"index": 0, "arguments": PARIS})],
        # Names come after ids, and after arguments.
        [calls({"index": 0, "id": "a"}), calls({"index": 0, "name": "f"}), calls({"index": 0, "arguments": PARIS}),
         calls({"index": 1, "id": "b", "arguments": ROME}), calls({"index": 1, "name": "f"})],
        # Blanks come after the last brace.
        [calls({"index": 0, "id": "a", "name": "f", "arguments": PARIS}),
         calls({"index": 1, "id": "b", "name": "f", "arguments": ROME}), calls({"index": 0, "arguments": " "})],
    ],
    ids=["one index", "no index", "in turns", "the second one first", "late names", "late blanks"],
)  # fmt: skip
def test_parallel_calls_are_whole_when_they_end(deltas: list[Any]) -> None:
    events = stream(*deltas)
    output = events[-1]["response"]["output"]
    found = [(item["call_id"], item["name"], item["arguments"].strip(), item["status"]) for item in output]
    assert found == [("a", "f", PARIS, "completed"), ("b", "f", ROME, "completed")]
    for item in output:
        own = [event for event in events if event.get("item_id") == item["id"]]
        said = "".join(event["delta"] for event in own if event["type"].endswith("arguments.delta"))
        (done,) = [event["arguments"] for event in own if event["type"].endswith("arguments.done")]
        assert said == done == item["arguments"]
    added = [event["item"]["name"] for event in events if event["type"] == "response.output_item.added"]
    assert added == ["f", "f"], "an item is shown when its name is known"


def test_a_whole_call_ends_when_the_next_item_begins() -> None:
    """So its caller can run it while the model goes on."""
    first = {"index": 0, "id": "a", "name": "f", "arguments": PARIS}
    for following in (calls({**BEGUN[1], "arguments": ROME}), {"content": "So."}, {"reasoning": "Hm."}):
        kinds = [event["type"] for event in stream(calls(first), following)]
        assert kinds.index("response.output_item.done") < len(kinds) - 1 - kinds[::-1].index(
            "response.output_item.added"
        )


def test_text_between_the_pieces_of_a_call_is_an_item_of_its_own() -> None:
    pieces = calls({**BEGUN[0], "arguments": "{"}), {"content": "So."}, calls({"index": 0, "arguments": "}"})
    output = stream(*pieces)[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["function_call", "message"]
    assert output[0]["arguments"] == "{}"


@pytest.mark.parametrize(
    "delta",
    [
        calls({"index": 0, "id": "a", "name": "f", "arguments": {"city": "Paris"}}),
        {"content": "Hi", "tool_calls": [7]},
        {"reasoning": "Hm.", "content": [1]},
    ],
)
def test_a_stream_whose_first_chunk_cannot_be_read_begins_and_fails(delta: Any) -> None:
    one = form()
    with pytest.raises(StreamBroken):
        translate_events(one.feed, chunk_event(delta))
    assert events_of(one.fail(UpstreamError("It broke.")))[-1]["type"] == "response.failed"


@pytest.mark.parametrize("wrong", [calls({"index": 0, "id": "a"}), calls({**BEGUN[0], "arguments": "{}"}, BEGUN[1],
                                                                         {"index": 0, "arguments": "{}"})])  # fmt: skip
def test_a_call_without_a_name_or_with_too_many_arguments_breaks_the_stream(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"no name|more arguments"):
        stream(wrong)


def test_half_a_call_of_a_broken_stream_is_not_to_be_run() -> None:
    """Clients run a function when its item is done."""
    one = form()
    out = one.feed(chunk_event(calls({**BEGUN[0], "arguments": '{"city":'}, {"index": 1, "id": "b"})))
    events = events_of(out + one.fail(UpstreamError("It broke.")))
    assert not [event for event in events if event["type"].endswith(".done")]
    (item,) = events[-1]["response"]["output"]
    assert (item["status"], item["arguments"]) == ("incomplete", '{"city":')


def test_a_cut_call_is_incomplete() -> None:
    output = stream(calls({**BEGUN[0], "arguments": PARIS}, {**BEGUN[1], "arguments": "{"}), finish="length")
    assert [item["status"] for item in output[-1]["response"]["output"]] == ["completed", "incomplete"]


CITED = {"type": "url_citation", "url_citation": {"url": "https://a.test", "title": "A", "start_index": 0,
                                                  "end_index": 2, "content": "more"}}  # fmt: skip
SOURCE = {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 0, "end_index": 2}


def test_sources_are_annotations_of_the_text() -> None:
    events = stream({"content": "Hi"}, {"annotations": [CITED, {"type": "other"}]}, {"content": " you"}, finish="stop")
    (item,) = events[-1]["response"]["output"]
    assert [part["annotations"] for part in item["content"]] == [[SOURCE]]
    (added,) = [event for event in events if event["type"] == "response.output_text.annotation.added"]
    assert (added["annotation"], added["annotation_index"]) == (SOURCE, 0)
    completion = {"choices": [{"message": {"content": "Hi you", "annotations": [CITED]}, "finish_reason": "stop"}]}
    whole = json.loads(form().whole(json.dumps(completion).encode(), Usage(), Nanos(1)))
    assert whole["output"] == events[-1]["response"]["output"]


def test_sources_with_missing_or_wrong_fields_have_the_documented_types() -> None:
    given = {"annotations": [{"url_citation": {"url": "https://a.test", "start_index": "0"}}, {"url_citation": 7}, 7]}
    (item,) = stream({"content": "Hi", **given}, finish="stop")[-1]["response"]["output"]
    assert item["content"][0]["annotations"] == [
        {"type": "url_citation", "url": "https://a.test", "title": "", "start_index": 0, "end_index": 0}
    ]


def test_events_with_an_image_are_a_long_body() -> None:
    events = Events()
    events.add("output_item.added", item=1)
    assert isinstance(events.take(), bytes)
    events.add("output_item.added", item=2)
    events.add("output_item.done", item=FileAsBase64(b"image"))
    events.add("completed")
    body = events.take()
    assert isinstance(body, LongBody)
    assert [msgspec.json.decode(block.partition(b"data: ")[2])["sequence_number"]
            for block in bytes(body).split(b"\n\n") if block] == [1, 2, 3]  # fmt: skip
    assert events.take() == b""


def test_items_have_ids_by_their_place() -> None:
    items = StreamedItems("x")
    items.add_reasoning("Hm.")
    items.add_text("Hi")
    items.add_call(0, "a", "f", "{}")
    items.end("completed")
    assert [item.id for item in items.output] == ["rs_x00", "msg_x01", "fc_x02"]
