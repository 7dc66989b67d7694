"""A relay passes whole events on at once, drops what the caller did not ask for, and learns what was used."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sse import Broken, Relay

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
    assert (relay.usage, relay.cost, relay.done) == ((7, 3), 0.25, True)


def test_usage_beside_the_last_choice_stays() -> None:
    both = b'data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
    relay = Relay(keeps_usage=False)
    assert relay.feed(both) == both
    assert relay.usage == (1, 2)


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
def test_cuts_change_nothing(cuts: list[int]) -> None:
    """However the network cuts the stream, the same bytes come out and the same is learned."""
    places = [0, *sorted(set(cuts)), len(STREAM)]
    relay = Relay(keeps_usage=False)
    out = b"".join(relay.feed(STREAM[start:end]) for start, end in pairwise(places))
    assert out == ROLE + WORD + LAST + DONE
    assert (relay.usage, relay.done, relay.events) == ((7, 3), True, 3)


def test_comments_and_carriage_returns_are_tolerated() -> None:
    relay = Relay(keeps_usage=False)
    assert relay.feed(b": still here\n\n") == b": still here\n\n"
    assert relay.feed(WORD.replace(b"\n", b"\r\n")) == WORD


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error":{"message":"no"}}\n\n',
        b'data: {"error": oops\n\n',
        b'data: {"usage":{"prompt_tokens":"x"}}\n\n',
    ],
)
def test_what_is_no_chunk_breaks_the_stream(event: bytes) -> None:
    with pytest.raises(Broken):
        Relay(keeps_usage=False).feed(event)


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
