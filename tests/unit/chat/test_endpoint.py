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
from tests.house import ENDED, House, OpenHouse, sqlite_only
from tests.upstreams import faults

ASK = {"model": "lab/talk", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}
# Three tokens in at a millionth, three out at two millionths.
COST = Decimal("0.000009")


async def say(house: House, **body: Any) -> Response:
    return await endpoint.complete(house.gateway, house.call({**ASK, **body}, endpoint="/compat/v1/chat/completions"))


async def settled(house: House) -> dict[str, Any]:
    """The newest record, once its story is over."""
    return (await all_settled(house, 1))[-1]


async def all_settled(house: House, count: int) -> list[dict[str, Any]]:
    async def met() -> bool:
        return sum(one["status"] in ENDED for one in await house.records()) >= count

    await house.until(met, 0)
    return await house.records()


async def read(answer: Response) -> bytes:
    assert answer.chunks is not None
    return b"".join([chunk async for chunk in answer.chunks])


def events(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line]
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


# ------------------------------------------------------------------------------------------------------- in one piece


async def test_an_answer_goes_out_as_it_came(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answer = await say(house, user="u1", session_id="s1")
        assert answer.body is not None
        told = json.loads(answer.body)
        assert told["choices"][0]["message"]["content"] == "one two three"
        record = await settled(house)
        assert (record["status"], record["cost"], record["modality"]) == ("completed", 9000, None)
        assert (record["end_user"], record["session_id"]) == ("u1", "s1")
        assert record["response_bytes"] == len(answer.body)
        assert await house.money() == (10_000_000_000 - 9000, 0)
        sent = house.lab.chats.heard[0].fields
        assert sent["model"] == "talk-1"
        assert "session_id" not in sent
        assert house.lab.bill_usd == COST


@sqlite_only
async def test_pictures_make_it_vision(open_house: OpenHouse) -> None:
    async with open_house() as house:
        part = {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
        await say(house, messages=[{"role": "user", "content": [{"type": "text", "text": "what"}, part]}])
        assert (await settled(house))["modality"] == "vision"


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
async def test_failures_cost_nothing(open_house: OpenHouse, act: Any, kind: type[Problem], retry: bool) -> None:
    async with open_house() as house:
        before = await house.money()
        house.lab.chats.next(act)
        with pytest.raises(kind) as caught:
            await say(house)
        assert (caught.value.should_retry, caught.value.recorded) == (retry, True)
        record = await settled(house)
        assert (record["status"], record["cost"], record["error_code"]) == ("upstream_failure", 0, caught.value.code)
        assert await house.money() == before
        assert len(house.lab.chats) == 1


@sqlite_only
async def test_a_late_answer_is_a_timeout(open_house: OpenHouse) -> None:
    async with open_house(upstream_seconds=0.2) as house:
        house.lab.chats.next(faults.stalled)
        with pytest.raises(UpstreamTimeout):
            await say(house)


@sqlite_only
async def test_usage_that_nobody_reports_is_counted(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.chats.next(faults.altered(usage=None))
        await say(house)
        assert (await settled(house))["cost"] > 0


@sqlite_only
async def test_explicit_zero_usage_is_free(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.chats.next(faults.altered(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}))
        await say(house)
        assert (await settled(house))["cost"] == 0


@sqlite_only
async def test_reported_cost_goes_before_the_table_and_never_above_the_hold(open_house: OpenHouse) -> None:
    async with open_house() as house:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        house.lab.chats.next(
            faults.altered(usage={**usage, "cost": 0.00001}), faults.altered(usage={**usage, "cost": 5})
        )
        await say(house)
        assert (await settled(house))["cost"] == 10_000
        house.clock.advance(1)
        await say(house)
        assert 10_000 < (await all_settled(house, 2))[-1]["cost"] < 1_000_000


@sqlite_only
async def test_who_cannot_pay_is_not_served(open_house: OpenHouse) -> None:
    async with open_house(starting_credit_usd="0.00001") as house:
        with pytest.raises(InsufficientBalance):
            await say(house)
        assert len(house.lab.chats) == 0


async def test_no_more_is_spent_than_there_is(open_house: OpenHouse) -> None:
    """Sixty at once with money for a few: the rest are refused, and nobody owes anything."""
    async with open_house(starting_credit_usd="0.0004") as house:
        outcomes = await asyncio.gather(*(say(house) for _ in range(60)), return_exceptions=True)
        served = sum(isinstance(one, Response) for one in outcomes)
        assert all(isinstance(one, Response | InsufficientBalance) for one in outcomes)
        assert 0 < served == len(house.lab.chats) < 60
        await all_settled(house, served)
        assert await house.money() == (400_000 - served * 9000, 0)


@sqlite_only
async def test_a_dry_run_asks_nobody(open_house: OpenHouse) -> None:
    async with open_house() as house:
        call = house.call(ASK, endpoint="/chat", query={"dryRun": "true"})
        told = (await endpoint.complete(house.gateway, call)).json
        assert told["total_cost_micros"] == sum(line["total_cost"] for line in told["components"]) > 0
        assert (len(house.lab.chats), await house.records()) == (0, [])


@sqlite_only
@pytest.mark.parametrize("extra", ["api_base", "base_url", "extra_headers", "webhook"])
async def test_extras_cannot_steer_the_call(open_house: OpenHouse, extra: str) -> None:
    async with open_house() as house:
        with pytest.raises(InvalidRequest) as caught:
            await say(house, **{extra: "https://evil.example"})
        assert caught.value.param == extra
        await say(house, top_k=40)
        assert house.lab.chats.heard[-1].fields["top_k"] == 40


# --------------------------------------------------------------------------------------------------------- bit by bit


@pytest.mark.parametrize("wants", [True, False])
async def test_a_stream_is_passed_on_and_paid_for(open_house: OpenHouse, wants: bool) -> None:
    async with open_house() as house:
        options = {"stream_options": {"include_usage": True}} if wants else {}
        answer = await say(house, stream=True, **options)
        assert answer.media_type == "text/event-stream"
        told = events(await read(answer))
        assert told[-1] == "[DONE]"
        assert told[0]["choices"][0]["delta"]["role"] == "assistant"
        words = [one["choices"][0]["delta"].get("content") for one in told[1:-1] if one["choices"]]
        assert "".join(filter(None, words)) == "one two three"
        assert any(one["choices"] == [] for one in told[:-1]) is wants
        record = await settled(house)
        assert (record["status"], record["cost"]) == ("completed", 9000)


@sqlite_only
async def test_a_stream_cut_short_ends_with_an_error_and_costs_nothing(open_house: OpenHouse) -> None:
    async with open_house() as house:
        before = await house.money()
        house.lab.chats.next(faults.cut_stream(2))
        told = events(await read(await say(house, stream=True)))
        assert told[-1]["error"]["code"] == "UPSTREAM_ERROR"
        assert "[DONE]" not in told
        record = await settled(house)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await house.money() == before


@sqlite_only
async def test_a_caller_who_hangs_up_pays_for_what_was_delivered(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answer = await say(house, stream=True)
        chunks: Any = answer.chunks
        await anext(chunks)
        await chunks.aclose()
        record = await settled(house)
        assert record["status"] == "cancelled"
        assert 0 < record["cost"] < 30_000


@sqlite_only
@pytest.mark.parametrize("act", [faults.error(500, "Oops."), faults.raw(b"<html>", "text/html"), faults.dropped])
async def test_streams_that_never_begin_are_errors_like_others(open_house: OpenHouse, act: Any) -> None:
    async with open_house() as house:
        house.lab.chats.next(act)
        with pytest.raises(UpstreamError):
            await say(house, stream=True)
        assert (await settled(house))["status"] == "upstream_failure"
