"""A relay passes whole events on at once, drops what the caller did not ask for, and learns what was used."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.chat.stream import Broken, Relay, Usage, plainly

ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}\n\n'
WORD = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":null}\n\n'
LAST = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"cost":0.25}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = ROLE + WORD + LAST + USAGE + DONE


def test_events_go_out_as_soon_as_they_are_whole() -> None:
    relay = Relay(keeps_usage=True)
    assert relay.feed(ROLE + WORD[:10]) == ROLE
    assert relay.feed(WORD[10:]) == WORD
    assert not relay.done


@pytest.mark.parametrize(("keeps", "expected"), [(True, STREAM), (False, ROLE + WORD + LAST + DONE)])
def test_usage_reaches_only_who_asked(keeps: bool, expected: bytes) -> None:
    relay = Relay(keeps_usage=keeps)
    assert relay.feed(STREAM) == expected
    assert relay.usage is not None
    assert (relay.usage.input, relay.usage.output, relay.usage.cost_usd) == (7, 3, Decimal("0.25"))
    assert relay.done


def test_usage_beside_the_last_choice_stays() -> None:
    both = b'data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
    relay = Relay(keeps_usage=False)
    assert relay.feed(both) == both
    assert relay.usage is not None
    assert (relay.usage.input, relay.usage.output) == (1, 2)


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
def test_cuts_change_nothing(cuts: list[int]) -> None:
    """However the network cuts the stream, the same bytes come out and the same is learned."""
    places = [0, *sorted(set(cuts)), len(STREAM)]
    relay = Relay(keeps_usage=False)
    out = b"".join(relay.feed(STREAM[start:end]) for start, end in pairwise(places))
    assert out == ROLE + WORD + LAST + DONE
    assert relay.usage is not None
    assert (relay.usage.input, relay.usage.output, relay.done, relay.events) == (7, 3, True, 3)


def test_comments_and_carriage_returns_are_tolerated() -> None:
    relay = Relay(keeps_usage=False)
    assert relay.feed(WORD.replace(b"\n", b"\r\n")) == WORD
    assert relay.feed(b": still here\n\n") == b": still here\n\n"


def test_comments_are_no_beginning() -> None:
    """Whoever has only heard that somebody is there can still turn to somebody else."""
    relay = Relay(keeps_usage=False)
    assert relay.feed(b": PROCESSING\n\n: PROCESSING\n\n") == b""
    assert relay.feed(b": PROCESSING\n" + ROLE + b": PROCESSING\n\n") == ROLE
    assert relay.size_bytes == len(ROLE)


@pytest.mark.parametrize(
    ("told", "output"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, 3),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 50}, 43),  # thinking is in the total alone
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": None}, 3),
        ({"prompt_tokens": 7}, 0),
    ],
)
def test_thinking_is_output(told: dict[str, Any], output: int) -> None:
    assert msgspec.convert(told, Usage).output == output


@pytest.mark.parametrize(
    ("told", "cached"),
    [({}, 0), ({"cached_tokens": None}, 0), ({"cached_tokens": 5}, 5), ({"cached_tokens": 5000}, 7)],
)
def test_what_was_remembered_is_part_of_the_input(told: dict[str, Any], cached: int) -> None:
    assert msgspec.convert({"prompt_tokens": 7, "prompt_tokens_details": told}, Usage).cached == cached


@pytest.mark.parametrize(
    ("told", "usd"),
    [
        ({"cost": 0.00014}, "0.00014"),
        ({"cost_in_usd_ticks": 37_756_000}, "0.0037756"),
        ({"cost": 1e308}, None),
        ({"cost": -1}, None),
        ({}, None),
    ],
)
def test_reported_costs(told: dict[str, Any], usd: str | None) -> None:
    assert msgspec.convert(told, Usage).cost_usd == (Decimal(usd) if usd else None)


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error":{"message":"no"}}\n\n',
        b'event: error\ndata: {"error":{"message":"no"}}\n\n',
        b'data: {"error": oops\n\n',
        b'data: {"usage":{"prompt_tokens":"x"}}\n\n',
    ],
)
def test_what_is_no_chunk_breaks_the_stream(event: bytes) -> None:
    with pytest.raises(Broken):
        Relay(keeps_usage=False).feed(event)


def test_error_is_kept_for_whoever_can_read_it() -> None:
    with pytest.raises(Broken) as caught:
        Relay(keeps_usage=False).feed(b'data: {"error":{"message":"no"}}\n\n')
    assert caught.value.event == b'{"error":{"message":"no"}}'


def test_an_error_that_is_null_is_none() -> None:
    event = b'data: {"choices":[{"delta":{"content":"x"}}],"error":null}\n\n'
    assert Relay(keeps_usage=False).feed(event) == event


def test_a_line_without_end_breaks_the_stream() -> None:
    relay = Relay(keeps_usage=False)
    assert relay.feed(b"data: " + b"x" * 1_000_000) == b""
    with pytest.raises(Broken):
        relay.feed(b"x" * 100_000)


def test_sizes_count_what_was_passed_on() -> None:
    relay = Relay(keeps_usage=False)
    passed = relay.feed(STREAM)
    assert relay.size_bytes == len(passed) < len(STREAM)


def test_odd_reasons_for_the_end_are_told_in_plain_words() -> None:
    """But never in what was said, where quotes are escaped."""
    said = rb'data: {"choices":[{"delta":{"content":"\"finish_reason\":\"eos\""},"finish_reason": "eos"}]}' + b"\n\n"
    relay = Relay(keeps_usage=False, finish={b"eos": b"stop"})
    assert relay.feed(said) == said.replace(b'"finish_reason": "eos"', b'"finish_reason": "stop"')
    assert relay.feed(LAST) == LAST
    assert plainly(said, {}) is said
