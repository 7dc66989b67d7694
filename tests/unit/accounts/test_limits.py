"""What a key may do in a minute, at a time and in a day, also when it tries all at once."""

import asyncio
from typing import Any

import pytest

from penstock.accounts import requests
from penstock.errors import Problem, RateLimited
from penstock.generations import endpoints
from penstock.schema import Caller
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway

DAY_MS = 86_400_000


async def tried(running: RunningGateway, caller: Caller, **body: Any) -> str:
    """Accepted, or the code of the refusal; recorded either way, as the edge does it."""
    call = running.call({"model": "film", "prompt": "a train", "seconds": 4, **body}, caller=caller)
    try:
        await endpoints.start_video(running.gateway, call)
    except Problem as problem:
        await running.gateway.requests.reject(call, problem, "film", "video")
        return problem.code
    return "accepted"


async def test_requests_per_minute(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.key_for(requests_per_minute=3)
        assert [await tried(running, caller) for _ in range(5)] == ["accepted"] * 3 + ["RATE_LIMITED"] * 2
        running.clock.advance(59)
        assert await tried(running, caller) == "RATE_LIMITED"
        running.clock.advance(2)
        assert await tried(running, caller) == "accepted", "being refused does not count"
        await running.idle()


async def test_what_a_refusal_says(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.key_for(requests_per_minute=1)
        await running.image(caller=caller)
        with pytest.raises(RateLimited) as caught:
            await running.image(caller=caller)
        problem = caught.value
        assert (problem.status, problem.should_retry) == (429, True)
        assert problem.headers == {
            "retry-after": "60",
            "x-ratelimit-limit-requests": "1",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "60s",
        }


async def test_concurrent_requests(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.always(faults.never_ends)
        caller = await running.key_for(concurrent_requests=2)
        assert [await tried(running, caller) for _ in range(3)] == ["accepted", "accepted", "RATE_LIMITED"]
        unlimited = running.caller
        assert await tried(running, unlimited) == "accepted", "another key of the same organization is not concerned"
        mine = [row for row in await running.records() if row["key_id"] == caller.key_id]
        open_ids = [row["id"] for row in mine if row["status"] in requests.OPEN]
        await running.cancel(open_ids[0])
        await running.ended(open_ids[0])
        assert await tried(running, caller) == "accepted"


async def test_spending_a_day(open_gateway: OpenGateway) -> None:
    """What is held counts as spent, what was given back does not; at midnight all is well again."""
    async with open_gateway() as running:
        midnight = DAY_MS - running.clock.now_ms() % DAY_MS
        caller = await running.key_for(usd_per_day="1.00")
        running.lab.videos.next(faults.ok, faults.fails)
        assert [await tried(running, caller) for _ in range(3)] == ["accepted", "accepted", "RATE_LIMITED"]
        await running.idle()
        assert await tried(running, caller) == "accepted", "one of the two failed, and costs nothing"
        assert await tried(running, caller, seconds=3) == "RATE_LIMITED"
        assert await tried(running, caller, seconds=2) == "accepted", "to the last cent"
        await running.idle()
        running.clock.advance(midnight / 1000)
        assert await tried(running, caller) == "accepted"
        await running.idle()


async def test_all_at_once(open_gateway: OpenGateway) -> None:
    """A dozen calls side by side for a key that may have four."""
    async with open_gateway() as running:
        running.lab.videos.always(faults.never_ends)
        by_rate, by_number, by_money = [
            await running.key_for(**limit)
            for limit in ({"requests_per_minute": 4}, {"concurrent_requests": 4}, {"usd_per_day": "1.60"})
        ]
        for caller in (by_rate, by_number, by_money):
            outcomes = await asyncio.gather(*(tried(running, caller) for _ in range(12)))
            assert outcomes.count("accepted") == 4, caller
            assert outcomes.count("RATE_LIMITED") == 8


async def test_limits_leave_the_balance_alone(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.key_for(usd_per_day="0.01")
        before = await running.money()
        assert await tried(running, caller) == "RATE_LIMITED"
        assert await running.money() == before
        assert running.lab.submits == 0
