"""What a key may do in a minute, at a time and in a day, also when it tries all at once."""

import asyncio
from typing import Any

import pytest

from penstock.accounts import requests
from penstock.errors import Problem, RateLimited
from penstock.generations import endpoints
from penstock.schema import Caller
from tests.house import House, OpenHouse
from tests.upstreams import faults

DAY_MS = 86_400_000


async def tried(house: House, caller: Caller, **body: Any) -> str:
    """Accepted, or the code of the refusal; recorded either way, as the edge does it."""
    call = house.call({"model": "film", "prompt": "a train", "seconds": 4, **body}, caller=caller)
    try:
        await endpoints.start_video(house.gateway, call)
    except Problem as problem:
        await house.gateway.requests.reject(call, problem, "film", "video")
        return problem.code
    return "accepted"


async def test_calls_a_minute(open_house: OpenHouse) -> None:
    async with open_house() as house:
        caller = await house.key_for(calls_a_minute=3)
        assert [await tried(house, caller) for _ in range(5)] == ["accepted"] * 3 + ["RATE_LIMITED"] * 2
        house.clock.advance(59)
        assert await tried(house, caller) == "RATE_LIMITED"
        house.clock.advance(2)
        assert await tried(house, caller) == "accepted", "being refused does not count"
        await house.idle()


async def test_what_a_refusal_says(open_house: OpenHouse) -> None:
    async with open_house() as house:
        caller = await house.key_for(calls_a_minute=1)
        await house.image(caller=caller)
        with pytest.raises(RateLimited) as caught:
            await house.image(caller=caller)
        problem = caught.value
        assert (problem.status, problem.should_retry) == (429, True)
        assert problem.headers == {
            "retry-after": "60",
            "x-ratelimit-limit-requests": "1",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "60s",
        }


async def test_calls_at_once(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.videos.always(faults.never_ends)
        caller = await house.key_for(calls_at_once=2)
        assert [await tried(house, caller) for _ in range(3)] == ["accepted", "accepted", "RATE_LIMITED"]
        unlimited = house.caller
        assert await tried(house, unlimited) == "accepted", "another key of the same organization is not concerned"
        mine = [row for row in await house.records() if row["key_id"] == caller.key_id]
        running = [row["id"] for row in mine if row["status"] in requests.OPEN]
        await house.cancel(running[0])
        await house.ended(running[0])
        assert await tried(house, caller) == "accepted"


async def test_spending_a_day(open_house: OpenHouse) -> None:
    """What is held counts as spent, what was given back does not; at midnight all is well again."""
    async with open_house() as house:
        midnight = DAY_MS - house.clock.now_ms() % DAY_MS
        caller = await house.key_for(usd_a_day="1.00")
        house.lab.videos.next(faults.ok, faults.fails)
        assert [await tried(house, caller) for _ in range(3)] == ["accepted", "accepted", "RATE_LIMITED"]
        await house.idle()
        assert await tried(house, caller) == "accepted", "one of the two failed, and costs nothing"
        assert await tried(house, caller, seconds=3) == "RATE_LIMITED"
        assert await tried(house, caller, seconds=2) == "accepted", "to the last cent"
        await house.idle()
        house.clock.advance(midnight / 1000)
        assert await tried(house, caller) == "accepted"
        await house.idle()


async def test_all_at_once(open_house: OpenHouse) -> None:
    """A dozen calls side by side for a key that may have four."""
    async with open_house() as house:
        house.lab.videos.always(faults.never_ends)
        by_rate, by_number, by_money = [
            await house.key_for(**limit)
            for limit in ({"calls_a_minute": 4}, {"calls_at_once": 4}, {"usd_a_day": "1.60"})
        ]
        for caller in (by_rate, by_number, by_money):
            outcomes = await asyncio.gather(*(tried(house, caller) for _ in range(12)))
            assert outcomes.count("accepted") == 4, caller
            assert outcomes.count("RATE_LIMITED") == 8


async def test_limits_leave_the_balance_alone(open_house: OpenHouse) -> None:
    async with open_house() as house:
        caller = await house.key_for(usd_a_day="0.01")
        before = await house.money()
        assert await tried(house, caller) == "RATE_LIMITED"
        assert await house.money() == before
        assert house.lab.submits == 0
