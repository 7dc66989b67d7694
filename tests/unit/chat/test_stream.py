"""The relay passes whole events on at once, drops usage that was not asked for, and reads it."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.chat.normalise import rename_finish_reasons
from penstock.chat.stream import Relay, StreamBroken, idle_seconds
from penstock.providers.spec import Provider
from penstock.settings import Settings

HEAD = b'"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",'
ROLE = b"data: {" + HEAD + b'"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}\n\n'
WORD = b"data: {" + HEAD + b'"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}],"usage":null}\n\n'
LAST = b"data: {" + HEAD + b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\n\n'
USAGE = (
    b"data: {"
    + HEAD
    + b'"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"cost":0.25}}\n\n'
)
DONE = b"data: [DONE]\n\n"
STREAM = ROLE + WORD + LAST + USAGE + DONE


def test_an_event_is_passed_on_when_it_is_complete() -> None:
    relay = Relay(keeps_usage=True)
    assert relay.feed(ROLE + WORD[:10]) == ROLE
    assert relay.feed(WORD[10:]) == WORD
    assert not relay.done


@pytest.mark.parametrize(("keeps", "expected"), [(True, STREAM), (False, ROLE + WORD + LAST + DONE)])
def test_the_usage_chunk_reaches_only_callers_who_asked(keeps: bool, expected: bytes) -> None:
    relay = Relay(keeps_usage=keeps)
    assert relay.feed(STREAM) == expected
    assert relay.usage is not None
    assert (relay.usage.input, relay.usage.output, relay.usage.cost) == (7, 3, 0.25)
    assert relay.done


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        (b'{"index":0,"delta":{}}', b""),  # LiteLLM
        (b'{"index":0,"delta":{"role":null,"content":""},"finish_reason":null}', b""),
        (b'{"index":0,"delta":{"role":"assistant","content":"hi"}}', WORD),  # in every chunk
        (b'{"index":0,"delta":{},"finish_reason":"stop"}', LAST),  # Mistral, in the last one
    ],
)
def test_usage_in_a_chunk_with_choices_comes_in_one_of_its_own(keeps: bool, choice: bytes, shown: bytes) -> None:
    """As OpenAI sends it: clients look for the chunk without choices, and some add up the usage of all chunks."""
    both = b"data: {" + HEAD + b'"choices":[' + choice + b'],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n'
    own = b"data: {" + HEAD + b'"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}\n\n'
    shown_alone = shown.replace(b',"usage":null', b"")
    for sent in (ROLE + both, ROLE + both + both):
        relay = Relay(keeps_usage=keeps)
        expected = sent.replace(both, shown_alone) + (own if keeps else b"") + DONE
        assert decoded_events(relay.feed(sent + DONE)) == decoded_events(expected), sent
        assert relay.usage is not None
        assert (relay.usage.input, relay.usage.output) == (7, 3)
    # If one of its own follows, it is enough; and vLLM's callers may ask for usage in every chunk.
    assert decoded_events(Relay(keeps_usage=True).feed(ROLE + both + USAGE + DONE)) == decoded_events(
        ROLE + shown_alone + USAGE + DONE
    )
    everything = ROLE + both + USAGE + DONE
    assert decoded_events(Relay(keeps_usage=True, usage_everywhere=True).feed(everything)) == decoded_events(everything)


def decoded_events(events: bytes) -> list[Any]:
    """The data of each event; two with the same fields in another order are equal."""
    found = (line.removeprefix(b"data: ") for line in events.split(b"\n\n") if line)
    return [data if data == b"[DONE]" else msgspec.json.decode(data) for data in found]


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
def test_the_boundaries_of_network_packets_do_not_matter(cuts: list[int]) -> None:
    """However the stream is cut, the same bytes are passed on and the same usage is read."""
    places = [0, *sorted(set(cuts)), len(STREAM)]
    relay = Relay(keeps_usage=False)
    out = b"".join(relay.feed(STREAM[start:end]) for start, end in pairwise(places))
    assert out == ROLE + WORD + LAST + DONE
    assert relay.usage is not None
    assert (relay.usage.input, relay.usage.output, relay.done, relay.event_count) == (7, 3, True, 3)


def test_comments_and_carriage_returns_are_accepted() -> None:
    relay = Relay(keeps_usage=False)
    assert relay.feed(WORD.replace(b"\n", b"\r\n")) == WORD
    assert relay.feed(b": still here\n\n") == b": still here\n\n"


def test_comments_before_the_first_event_are_dropped() -> None:
    """As long as nothing was passed on, the call can go to another provider."""
    relay = Relay(keeps_usage=False)
    assert relay.feed(b": PROCESSING\n\n: PROCESSING\n\n") == b""
    assert relay.feed(b": PROCESSING\n" + ROLE + b": PROCESSING\n\n") == ROLE
    assert relay.size_bytes == len(ROLE)


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error":{"message":"no"}}\n\n',
        b'event: error\ndata: {"error":{"message":"no"}}\n\n',
        b'data: {"error": oops\n\n',
        b'data: {"choices":[null],"usage":{"prompt_tokens":1}}\n\n',
        b'data: {"choices":[{"delta":"x"}],"usage":{"prompt_tokens":1}}\n\n',
        b"data: {" + HEAD + b'"choices":[{"index":0,"delta":{"content":"\xff"}}]}\n\n',
    ],
)
def test_errors_and_malformed_chunks_break_the_stream(event: bytes) -> None:
    with pytest.raises(StreamBroken):
        Relay(keeps_usage=False).feed(event)


@pytest.mark.parametrize("usage", [b'{"prompt_tokens":"x"}', b'{"total_tokens":1.5}', b'{"prompt_tokens_details":[]}'])
@pytest.mark.parametrize("keeps", [False, True])
def test_a_malformed_usage_breaks_no_stream(usage: bytes, keeps: bool) -> None:
    """The answer has been written; the usage is estimated, also for a caller who asked for it."""
    content = (
        b"data: {" + HEAD + b'"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]'
    )
    relay = Relay(keeps_usage=keeps, prompt_tokens=5)
    shown = relay.feed(content + b',"usage":' + usage + b"}\n\n")
    shown += relay.feed(b"data: {" + HEAD + b'"choices":[],"usage":' + usage + b"}\n\n")
    shown += relay.feed(b"data: [DONE]\n\n")
    events = [json.loads(event.removeprefix(b"data: ")) for event in shown.split(b"\n\n")[:-2]]
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": "a"}
    assert relay.usage is None
    assert [event["usage"]["prompt_tokens"] for event in events if event.get("usage")] == ([5] if keeps else [])


def test_a_letter_may_arrive_in_two_parts() -> None:
    event = b"data: {" + HEAD + '"choices":[{"index":0,"delta":{"role":"assistant","content":"é"}}]}\n\n'.encode()
    relay = Relay(keeps_usage=False)
    middle = event.index("é".encode()) + 1
    assert relay.feed(event[:middle]) + relay.feed(event[middle:]) == event


def test_the_exception_carries_the_providers_error() -> None:
    with pytest.raises(StreamBroken) as caught:
        Relay(keeps_usage=False).feed(b'data: {"error":{"message":"no"}}\n\n')
    assert caught.value.event == b'{"error":{"message":"no"}}'


def test_an_error_of_null_is_no_error() -> None:
    event = b"data: {" + HEAD + b'"choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}],"error":null}\n\n'
    assert Relay(keeps_usage=False).feed(event) == event


def test_an_event_that_is_too_long_breaks_the_stream() -> None:
    relay = Relay(keeps_usage=False)
    assert relay.feed(b"data: " + b"x" * 1_000_000) == b""
    with pytest.raises(StreamBroken):
        relay.feed(b"x" * 100_000)


def test_the_size_counts_what_was_passed_on() -> None:
    relay = Relay(keeps_usage=False)
    passed = relay.feed(STREAM)
    assert relay.size_bytes == len(passed) < len(STREAM)


def test_a_providers_own_finish_reasons_are_renamed() -> None:
    """But not inside generated text, where quotes are escaped."""
    text = rb'"choices":[{"index":0,"delta":{"content":"\"finish_reason\":\"eos\""},"finish_reason":null}]}'
    event = b"data: {" + HEAD + text + b"\n\n"
    end = b"data: {" + HEAD + b'"choices":[{"index":0,"delta":{},"finish_reason": "eos"}]}\n\n'
    relay = Relay(keeps_usage=False, finish_reasons={b"eos": b"stop"})
    assert relay.feed(ROLE + event + end) == ROLE + event + end.replace(b'"eos"', b'"stop"')
    assert relay.feed(LAST) == LAST
    assert rename_finish_reasons(LAST, {}) is LAST
    assert rename_finish_reasons(b'{"finish_reason":"max_tokens"}', {}) == b'{"finish_reason":"length"}'
    assert Relay(keeps_usage=False).feed(WORD.replace(b"}}]", b'},"finish_reason":""}]')).count(b":null") == 2


def test_a_self_hosted_server_may_be_silent_while_it_loads_a_model() -> None:
    settings = Settings(upstream_seconds=300.0)
    server = Provider(slug="x", name="X", docs="", base_url="http://x.test", models=(), self_hosted=True)
    assert idle_seconds(server, settings) == 300.0
    assert idle_seconds(replace(server, self_hosted=False), settings) == 60.0
