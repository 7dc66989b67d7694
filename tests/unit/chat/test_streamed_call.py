"""Streamed chat calls: passed on, broken off, left by their callers; and the money of each."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from penstock.errors import UpstreamError
from tests.fake_providers import faults
from tests.fake_providers.server import FakeCall, event_bytes
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import chat, ended_records, last_record, read_stream


def events(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line]
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


@pytest.mark.parametrize("wants", [True, False])
async def test_a_stream_is_passed_on_and_charged(open_gateway: OpenGateway, wants: bool) -> None:
    async with open_gateway() as running:
        options = {"stream_options": {"include_usage": True}} if wants else {}
        response = await chat(running, stream=True, **options)
        assert response.media_type == "text/event-stream"
        shown = events(await read_stream(response))
        assert shown[-1] == "[DONE]"
        assert shown[0]["choices"][0]["delta"]["role"] == "assistant"
        texts = [event["choices"][0]["delta"].get("content") for event in shown[1:-1] if event["choices"]]
        assert "".join(filter(None, texts)) == "one two three"
        assert any(event["choices"] == [] for event in shown[:-1]) is wants
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("completed", 9000)


async def test_a_broken_stream_ends_with_an_error_and_costs_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.chats.next(faults.cut_stream(2))
        shown = events(await read_stream(await chat(running, stream=True)))
        assert shown[-1]["error"]["code"] == "UPSTREAM_ERROR"
        assert "[DONE]" not in shown
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await running.money() == before
        assert 0 < (await running.transfers(record["id"]))["loss"] < 30_000, "the provider bills what it has sent"


@sqlite_only
async def test_a_caller_who_disconnects_pays_for_what_was_sent(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await chat(running, stream=True)
        chunks: Any = response.chunks
        await anext(chunks)
        await chunks.aclose()
        record = await last_record(running)
        assert record["status"] == "cancelled"
        assert 0 < record["cost"] < 30_000


@sqlite_only
async def test_a_caller_who_disconnects_before_the_head_was_sent_pays_for_what_was_received(
    open_gateway: OpenGateway,
) -> None:
    """The head waits if the caller has not read the responses before. Then nothing of the stream is read."""
    async with open_gateway() as running:
        response = await chat(running, stream=True)
        chunks: Any = response.chunks
        await chunks.aclose()
        record = await last_record(running)
        assert (record["status"], record["error_code"]) == ("cancelled", "CANCELLED")
        assert 0 < record["cost"] < 30_000
        assert running.gateway.chat_reservations._balance(running.caller.org_id).reserved == 0


@sqlite_only
@pytest.mark.parametrize("field", ["content", "reasoning", "reasoning_content", "arguments"])
async def test_who_disconnects_pays_for_all_the_text_of_long_events(open_gateway: OpenGateway, field: str) -> None:
    """Some providers send many tokens with each event. A caller must not get them at the price of one."""
    text = 'He said: "a pear"\n' * 100
    called = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": text}}]}
    choice = {"index": 0, "delta": called if field == "arguments" else {field: text}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    async with open_gateway() as running:
        running.lab.chats.next(faults.raw(b"data: " + msgspec.json.encode(chunk) + b"\n\n", "text/event-stream"))
        response = await chat(running, stream=True, max_tokens=2000)
        chunks: Any = response.chunks
        assert b"pear" in await anext(chunks)
        await chunks.aclose()
        record = await last_record(running)
        assert record["status"] == "cancelled"
        assert len(text) // 6 <= record["output_tokens"] <= len(text) // 4
        assert record["cost"] >= record["output_tokens"] * 2000


@sqlite_only
@pytest.mark.parametrize("act", [faults.error(500, "Oops."), faults.raw(b"<html>", "text/html"), faults.dropped])
async def test_a_stream_that_does_not_begin_is_an_error(open_gateway: OpenGateway, act: Any) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(act)
        with pytest.raises(UpstreamError):
            await chat(running, stream=True)
        assert (await last_record(running))["status"] == "upstream_failure"


@sqlite_only
async def test_who_leaves_with_the_whole_answer_pays_for_the_reasoning_before_it(open_gateway: OpenGateway) -> None:
    """Many clients stop reading at the finish reason. The provider reports its usage right after it."""
    is_read = asyncio.Event()
    usage = {"prompt_tokens": 3, "completion_tokens": 15, "total_tokens": 18}

    async def act(call: FakeCall) -> None:
        *content, end, done = call.accept().events
        await call.exchange.begin(200, "text/event-stream", {})
        await call.exchange.more(b"".join(map(event_bytes, content)))
        await is_read.wait()
        await call.exchange.more(event_bytes(json.dumps({**json.loads(end), "usage": usage}).encode()))
        await call.exchange.more(event_bytes(done))
        await call.exchange.end()

    async with open_gateway() as running:
        running.lab.chats.next(act)
        chunks: Any = (await chat(running, stream=True)).chunks
        while b'"stop"' not in await anext(chunks):
            pass
        is_read.set()
        await chunks.aclose()
        record = await last_record(running)
        assert (record["status"], record["output_tokens"]) == ("cancelled", 15)
        assert record["cost"] == 3 * 1000 + 15 * 2000


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize(
    "ending",
    [b"", b"data: [DONE]", b"data: [DONE]\n"],
    ids=["without [DONE]", "without a line break", "without an empty line"],
)
async def test_a_stream_that_ends_cleanly_after_the_answer_is_complete(
    open_gateway: OpenGateway, wants: bool, ending: bytes
) -> None:
    """Some servers leave `[DONE]` out. The caller gets it."""

    async def act(call: FakeCall) -> None:
        sent = list(call.accept().events)
        assert sent.pop() == b"[DONE]"
        await call.exchange.begin(200, "text/event-stream", {})
        for event in sent:
            await call.exchange.more(event_bytes(event))
        if ending:
            await call.exchange.more(ending)
        await call.exchange.end()

    async with open_gateway() as running:
        running.lab.chats.next(act)
        options = {"stream_options": {"include_usage": True}} if wants else {}
        body = await read_stream(await chat(running, stream=True, **options))
        assert body.endswith(b"data: [DONE]\n\n")
        assert body.count(b"[DONE]") == 1
        assert (b'"usage": {' in body) == wants
        record = await last_record(running)
        assert (record["status"], record["error_code"]) == ("completed", None)
        assert record["cost"] > 0


async def test_a_stream_that_ends_in_the_middle_of_the_answer_is_broken(open_gateway: OpenGateway) -> None:
    async def act(call: FakeCall) -> None:
        await call.exchange.begin(200, "text/event-stream", {})
        for event in list(call.accept().events)[:2]:
            await call.exchange.more(event_bytes(event))
        await call.exchange.end()

    async with open_gateway() as running:
        running.lab.chats.next(act)
        body = await read_stream(await chat(running, stream=True))
        assert "before the answer was complete" in events(body)[-1]["error"]["message"]
        record = await last_record(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)


THOUGHT = {"completion_tokens": 20_000, "completion_tokens_details": {"reasoning_tokens": 19_990}}
REASONING = {"prompt_tokens": 3, "total_tokens": 20_003, **THOUGHT}


class Thinker:
    """A model that thinks for so many seconds, writes a word, and reports its usage after the caller may have left."""

    def __init__(self, running: RunningGateway, seconds: float, *, reports: bool = True) -> None:
        self.running = running
        self.seconds = seconds
        self.reports = reports
        self.is_left = asyncio.Event()

    async def __call__(self, call: FakeCall) -> None:
        first, word, *_, end, done = call.accept().events
        await call.exchange.begin(200, "text/event-stream", {})
        await call.exchange.more(event_bytes(first))
        self.running.clock.advance(self.seconds)
        await call.exchange.more(event_bytes(word))
        await self.is_left.wait()
        if self.reports:
            await call.exchange.more(event_bytes(json.dumps({**json.loads(end), "usage": REASONING}).encode()))
            await call.exchange.more(event_bytes(done))
        await call.exchange.end()

    async def read(self, **body: Any) -> None:
        """Call it, and read all of its stream."""
        self.running.lab.chats.next(self)
        self.is_left.set()
        await read_stream(await chat(self.running, stream=True, max_tokens=50_000, **body))

    async def leave(self, **body: Any) -> dict[str, Any]:
        """Call it, and hang up after the word; return the record of the call."""
        self.running.clock.advance(1)  # records are in the order of time
        self.running.lab.chats.next(self)
        chunks: Any = (await chat(self.running, stream=True, max_tokens=50_000, **body)).chunks
        while b'"one' not in await anext(chunks):
            pass
        self.is_left.set()
        await chunks.aclose()
        return (await ended_records(self.running, len(self.running.lab.chats)))[-1]


async def test_who_hangs_up_pays_for_hidden_reasoning_that_the_provider_reports(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        record = await Thinker(running, 10).leave(reasoning_effort="high")
        assert (record["status"], record["output_tokens"]) == ("cancelled", 20_000)
        assert record["cost"] == 3 * 1000 + 20_000 * 2000
        record = await Thinker(running, 10).leave()
        assert record["output_tokens"] == 20_000, "now it is known that the model thinks"


@sqlite_only
async def test_who_hangs_up_is_not_waited_for_where_nothing_says_that_the_model_thinks(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        await read_stream(await chat(running, stream=True))  # which reports its usage, without reasoning
        record = await Thinker(running, 10).leave()
        assert (record["status"], record["output_tokens"]) == ("cancelled", 2)
        assert "loss" not in await running.transfers(record["id"])


@sqlite_only
async def test_the_first_hang_up_on_a_model_waits_for_the_usage_that_says_whether_it_thinks(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        record = await Thinker(running, 10).leave()
        assert (record["status"], record["output_tokens"]) == ("cancelled", 20_000)
        assert "loss" not in await running.transfers(record["id"])


async def test_hidden_reasoning_that_is_not_reported_is_charged_by_its_time(open_gateway: OpenGateway) -> None:
    """At the speed of the model's earlier calls: 20,000 tokens in ten seconds."""
    async with open_gateway() as running:
        await Thinker(running, 10).read()
        record = await Thinker(running, 6, reports=False).leave()
        assert (record["status"], record["output_tokens"]) == ("cancelled", 12_000)
        assert "loss" not in await running.transfers(record["id"])
        assert (await Thinker(running, 60, reports=False).leave())["output_tokens"] == 50_000, "never above the limit"


async def test_hidden_reasoning_of_which_nothing_is_known_is_a_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        record = await Thinker(running, 6, reports=False).leave(reasoning_effort="high")
        assert (record["status"], record["output_tokens"]) == ("cancelled", 2)
        loss = (await running.transfers(record["id"]))["loss"]
        assert loss == (6 * 50 - 2) * 2000
