"""Conversations: passed on, paid for, failed over, broken off; and the money of each."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from penstock.chat import endpoint
from penstock.errors import (
    ContentPolicyViolation,
    InsufficientBalance,
    InvalidRequest,
    Problem,
    UpstreamError,
    UpstreamTimeout,
)
from penstock.schema import Response
from tests.fake_providers import faults
from tests.gateway import ENDED, OpenGateway, RunningGateway, sqlite_only

ASK = {"model": "lab/talk", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}
# Three tokens in at a millionth, three out at two millionths.
COST = Decimal("0.000009")


async def say(running: RunningGateway, **body: Any) -> Response:
    return await endpoint.complete(
        running.gateway, running.call({**ASK, **body}, endpoint="/compat/v1/chat/completions")
    )


async def settled(running: RunningGateway) -> dict[str, Any]:
    """The newest record, once its story is over."""
    return (await all_settled(running, 1))[-1]


async def all_settled(running: RunningGateway, count: int) -> list[dict[str, Any]]:
    async def met() -> bool:
        return sum(one["status"] in ENDED for one in await running.records()) >= count

    await running.until(met, 0)
    return await running.records()


async def read(answer: Response) -> bytes:
    assert answer.chunks is not None
    return b"".join([chunk async for chunk in answer.chunks])


def events(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line]
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


# --------------------------------------------------------------------------------------------------------- in one piece


async def test_an_answer_goes_out_as_it_came(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        answer = await say(running, user="u1", session_id="s1")
        assert answer.body is not None
        told = json.loads(answer.body)
        assert told["choices"][0]["message"]["content"] == "one two three"
        record = await settled(running)
        assert (record["status"], record["cost"], record["modality"]) == ("completed", 9000, None)
        assert (record["end_user"], record["session_id"]) == ("u1", "s1")
        assert record["response_bytes"] == len(answer.body)
        assert await running.money() == (10_000_000_000 - 9000, 0)
        sent = running.lab.chats.heard[0].fields
        assert sent["model"] == "talk-1"
        assert "session_id" not in sent
        assert running.lab.bill_usd == COST


@sqlite_only
async def test_pictures_make_it_vision(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        part = {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
        await say(running, messages=[{"role": "user", "content": [{"type": "text", "text": "what"}, part]}])
        assert (await settled(running))["modality"] == "vision"


@pytest.mark.parametrize(
    ("act", "kind", "retry"),
    [
        (faults.error(400, "Bad.", "invalid_value"), UpstreamError, False),
        (faults.error(400, "No.", "content_policy_violation"), ContentPolicyViolation, False),
        (faults.busy(3), UpstreamError, True),
        (faults.error(500, "Oops."), UpstreamError, False),
        (faults.unauthorized, UpstreamError, False),
        (faults.dropped, UpstreamError, False),
        (faults.raw(b"<html>", "text/html"), UpstreamError, False),
        (faults.raw(b'{"choices":[]}'), UpstreamError, False),
        (faults.raw(b"[" * 100_000), UpstreamError, False),
        (faults.altered(choices=None), UpstreamError, False),
    ],
)
@sqlite_only
async def test_failures_cost_nothing(open_gateway: OpenGateway, act: Any, kind: type[Problem], retry: bool) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.chats.next(act)
        with pytest.raises(kind) as caught:
            await say(running)
        assert (caught.value.should_retry, caught.value.recorded) == (retry, True)
        record = await settled(running)
        assert (record["status"], record["cost"], record["error_code"]) == ("upstream_failure", 0, caught.value.code)
        assert await running.money() == before
        assert len(running.lab.chats) == 1


@sqlite_only
async def test_a_late_answer_is_a_timeout(open_gateway: OpenGateway) -> None:
    async with open_gateway(upstream_seconds=0.2) as running:
        running.lab.chats.next(faults.stalled)
        with pytest.raises(UpstreamTimeout):
            await say(running)


@sqlite_only
async def test_usage_that_nobody_reports_is_counted(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(faults.altered(usage=None))
        await say(running)
        assert (await settled(running))["cost"] > 0


@sqlite_only
async def test_explicit_zero_usage_is_free(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(faults.altered(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}))
        await say(running)
        assert (await settled(running))["cost"] == 0


@sqlite_only
async def test_reported_cost_goes_before_the_table_and_never_above_the_hold(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        running.lab.chats.next(
            faults.altered(usage={**usage, "cost": 0.00001}), faults.altered(usage={**usage, "cost": 5})
        )
        await say(running)
        assert (await settled(running))["cost"] == 10_000
        running.clock.advance(1)
        await say(running)
        assert 10_000 < (await all_settled(running, 2))[-1]["cost"] < 1_000_000


@sqlite_only
async def test_who_cannot_pay_is_not_served(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.00001") as running:
        with pytest.raises(InsufficientBalance):
            await say(running)
        assert len(running.lab.chats) == 0


async def test_no_more_is_spent_than_there_is(open_gateway: OpenGateway) -> None:
    """Sixty at once with money for a few: the rest are refused, and nobody owes anything."""
    async with open_gateway(starting_credit_usd="0.0004") as running:
        outcomes = await asyncio.gather(*(say(running) for _ in range(60)), return_exceptions=True)
        served = sum(isinstance(one, Response) for one in outcomes)
        assert all(isinstance(one, Response | InsufficientBalance) for one in outcomes)
        assert 0 < served == len(running.lab.chats) < 60
        await all_settled(running, served)
        assert await running.money() == (400_000 - served * 9000, 0)


@sqlite_only
async def test_a_dry_run_asks_nobody(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        call = running.call(ASK, endpoint="/chat", query={"dryRun": "true"})
        told = (await endpoint.complete(running.gateway, call)).json
        assert told["total_cost_micros"] == sum(line["total_cost"] for line in told["components"]) > 0
        assert (len(running.lab.chats), await running.records()) == (0, [])


@sqlite_only
@pytest.mark.parametrize("extra", ["api_base", "base_url", "extra_headers", "webhook"])
async def test_extras_cannot_steer_the_call(open_gateway: OpenGateway, extra: str) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as caught:
            await say(running, **{extra: "https://evil.example"})
        assert caught.value.param == extra
        await say(running, top_k=40)
        assert running.lab.chats.heard[-1].fields["top_k"] == 40


# ----------------------------------------------------------------------------------------------------------- bit by bit


@pytest.mark.parametrize("wants", [True, False])
async def test_a_stream_is_passed_on_and_paid_for(open_gateway: OpenGateway, wants: bool) -> None:
    async with open_gateway() as running:
        options = {"stream_options": {"include_usage": True}} if wants else {}
        answer = await say(running, stream=True, **options)
        assert answer.media_type == "text/event-stream"
        told = events(await read(answer))
        assert told[-1] == "[DONE]"
        assert told[0]["choices"][0]["delta"]["role"] == "assistant"
        words = [one["choices"][0]["delta"].get("content") for one in told[1:-1] if one["choices"]]
        assert "".join(filter(None, words)) == "one two three"
        assert any(one["choices"] == [] for one in told[:-1]) is wants
        record = await settled(running)
        assert (record["status"], record["cost"]) == ("completed", 9000)


@sqlite_only
async def test_a_stream_cut_short_ends_with_an_error_and_costs_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.chats.next(faults.cut_stream(2))
        told = events(await read(await say(running, stream=True)))
        assert told[-1]["error"]["code"] == "UPSTREAM_ERROR"
        assert "[DONE]" not in told
        record = await settled(running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await running.money() == before


@sqlite_only
async def test_a_caller_who_hangs_up_pays_for_what_was_delivered(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        answer = await say(running, stream=True)
        chunks: Any = answer.chunks
        await anext(chunks)
        await chunks.aclose()
        record = await settled(running)
        assert record["status"] == "cancelled"
        assert 0 < record["cost"] < 30_000


@sqlite_only
@pytest.mark.parametrize("act", [faults.error(500, "Oops."), faults.raw(b"<html>", "text/html"), faults.dropped])
async def test_streams_that_never_begin_are_errors_like_others(open_gateway: OpenGateway, act: Any) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(act)
        with pytest.raises(UpstreamError):
            await say(running, stream=True)
        assert (await settled(running))["status"] == "upstream_failure"
