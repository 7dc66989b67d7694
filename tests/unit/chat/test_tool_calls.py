"""Each tool call of a chat stream has an index of its own, whatever the server gave it."""

import json
import re
from typing import Any

import pytest

from penstock.chat import tool_calls
from penstock.chat.stream import Relay
from penstock.chat.tool_calls import CallNumbers, is_json
from tests.unit.chat.chat_calls import chunk_event

PARIS = '{"city":"Paris"}'
ROME = '{"city":"Rome"}'


def piece(arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    """A piece of a call: `name` and arguments belong to its function."""
    function = {"name": fields.pop("name", None), "arguments": arguments}
    return {**fields, "function": {name: value for name, value in function.items() if value is not None}}


def calls_of(events: bytes) -> list[list[str]]:
    """Id, name and arguments of each call, put together by index as OpenAI's clients do."""
    calls: dict[int, list[str]] = {}
    for block in events.split(b"\n\n"):
        if not block:
            continue
        for found in json.loads(block.removeprefix(b"data: "))["choices"][0]["delta"]["tool_calls"]:
            call = calls.setdefault(found["index"], ["", "", ""])
            call[0] = call[0] or re.sub(r"call_[0-9a-f]{24}", "new", found.get("id") or "")
            call[1] = call[1] or found["function"].get("name", "")
            call[2] += found["function"].get("arguments", "")
    return list(calls.values())


BOTH = [["a", "f", PARIS], ["b", "f", ROME]]
WITHOUT_IDS = [["new", "f", PARIS], ["new", "f", ROME]]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([piece(PARIS, index=0, id="a", name="f"), piece(ROME, index=0, id="b", name="f")], BOTH),  # Ollama
        ([piece(PARIS, id="a", name="f"), piece(ROME, id="b", name="f")], BOTH),
        ([piece(PARIS, index=None, id="a", name="f"), piece(ROME, index=None, id="b", name="f")], BOTH),
        ([piece(PARIS, index="0", id="a", name="f"), piece(ROME, index="0", id="b", name="f")], BOTH),
        ([piece(PARIS, index=0, id="", name="f"), piece(ROME, index=0, id="", name="f")], WITHOUT_IDS),
        ([piece(PARIS, name="f"), piece(ROME, name="f")], WITHOUT_IDS),
        # Pieces without an index belong to the newest call, or to the one with their id.
        ([piece("", id="a", name="f"), piece(PARIS), piece("", id="b", name="f"), piece(ROME)], BOTH),
        ([piece("", id="a", name="f"), piece("", id="b", name="f"), piece(PARIS, id="a"), piece(ROME, id="b")], BOTH),
        ([piece("", index=0, id="a", name="f"), piece("", index=0, id="b", name="f"),
          piece(PARIS, index=0, id="a"), piece(ROME, index=0, id="b")], BOTH),
        # The name may come later than the id.
        ([piece(index=0, id="a"), piece(index=1, id="b"), piece(PARIS, index=0, name="f"),
          piece(ROME, index=1, name="f")], BOTH),
        ([piece(id="a"), piece(PARIS, name="f"), piece(id="b"), piece(ROME, name="f")], BOTH),
        # A server that repeats the name, or gives each piece a new id, means one call.
        ([piece('{"city":', index=0, id="a", name="f"), piece('"Paris"}', index=0, name="f"),
          piece(ROME, index=1, id="b", name="f")], BOTH),
        ([piece('{"city":', index=0, id="a", name="f"), piece('"Paris"}', index=0, id="x"),
          piece(ROME, index=1, id="b", name="f")], BOTH),
    ],
)  # fmt: skip
def test_calls_that_share_an_index_become_several(pieces: list[Any], expected: list[list[str]]) -> None:
    one_by_one = b"".join(chunk_event({"tool_calls": [found]}) for found in pieces)
    assert calls_of(CallNumbers().renumber(one_by_one)) == expected
    together = chunk_event({"tool_calls": pieces})
    assert calls_of(CallNumbers().renumber(together)) == expected
    assert calls_of(Relay(keeps_usage=False).feed(one_by_one)) == expected, "the relay has them numbered"


def test_what_is_right_stays_as_it_is() -> None:
    pieces = [piece("", index=0, id="a", name="f"), piece("", index=1, id="b", name="f"),
              piece(PARIS, index=0), piece(ROME, index=1)]  # fmt: skip
    events = b"".join(chunk_event({"tool_calls": [found]}) for found in pieces)
    assert CallNumbers().renumber(events) == events


def test_each_choice_has_numbers_of_its_own() -> None:
    events = b"".join(chunk_event({"tool_calls": [piece(PARIS, index=0, id=name, name="f")]}, index)
                      for index, name in ((0, "a"), (1, "b")))  # fmt: skip
    assert CallNumbers().renumber(events) == events


@pytest.mark.parametrize(
    "delta",
    [{"tool_calls": [7]}, {"tool_calls": [{"index": 0, "function": 5}]}, {"tool_calls": 3}, {"x": "tool_calls"}],
)
def test_what_cannot_be_read_stays_as_it_is(delta: Any) -> None:
    events = chunk_event(delta) + b'data: {"tool_calls": oops\n\n' + b'data: {"choices":[],"tool_calls":[]}\n\n'
    assert CallNumbers().renumber(events) == events


def test_the_arguments_of_a_call_are_not_read_again_with_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile server could repeat the name with many pieces, each of which might end the arguments."""
    read: list[int] = []

    def count(text: str) -> bool:
        read.append(len(text))
        return is_json(text)

    monkeypatch.setattr(tool_calls, "is_json", count)
    numbers = CallNumbers()
    event = chunk_event({"tool_calls": [piece("{}}" * 100, index=0, name="f")]})
    for _ in range(1000):
        numbers.renumber(event)
    assert len(read) < 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{}", True), (' {"a": {}} ', True), ("", False), ('{"a": {}', False), ('{"a": "}', False), ("7", False)],
)
def test_an_object_is_whole_when_its_last_brace_has_come(text: str, expected: bool) -> None:
    assert is_json(text) is expected
