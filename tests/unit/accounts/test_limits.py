"""The limits of a key: requests per minute, concurrent requests and dollars per day."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from penstock.accounts.records import OPEN_STATUSES
from penstock.errors import Problem, RateLimited
from penstock.generations import endpoints
from penstock.schema import Caller
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, postgres_only, two_providers

DAY_MS = 86_400_000


async def try_video(running: RunningGateway, caller: Caller, **body: Any) -> str:
    """Return "accepted" or the code of the error; a rejected call is recorded, as the API does it."""
    call = running.call({"model": "video-1", "prompt": "a train", "seconds": 4, **body}, caller=caller)
    try:
        await endpoints.start_video(running.gateway, call)
    except Problem as problem:
        await running.gateway.requests.reject(call, problem, "video-1", "video")
        return problem.code
    return "accepted"


async def test_requests_per_minute(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller(requests_per_minute=3)
        assert [await try_video(running, caller) for _ in range(5)] == ["accepted"] * 3 + ["RATE_LIMITED"] * 2
        running.clock.advance(59)
        assert await try_video(running, caller) == "RATE_LIMITED"
        running.clock.advance(2)
        assert await try_video(running, caller) == "accepted", "rejected calls do not count"
        await running.wait_until_idle()


async def test_the_error_tells_when_to_try_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller(requests_per_minute=1)
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
        caller = await running.create_caller(concurrent_requests=2)
        assert [await try_video(running, caller) for _ in range(3)] == ["accepted", "accepted", "RATE_LIMITED"]
        unlimited = running.caller
        assert await try_video(running, unlimited) == "accepted", "the limit is per key"
        of_key = [row for row in await running.records() if row["key_id"] == caller.key_id]
        open_ids = [row["id"] for row in of_key if row["status"] in OPEN_STATUSES]
        await running.cancel(open_ids[0])
        await running.wait_for_request(open_ids[0])
        assert await try_video(running, caller) == "accepted"


async def test_dollars_per_day(open_gateway: OpenGateway) -> None:
    """Held money counts as spent, released money does not, and the limit starts again at midnight UTC."""
    async with open_gateway() as running:
        midnight = DAY_MS - running.clock.now_ms() % DAY_MS
        caller = await running.create_caller(usd_per_day="1.00")
        running.lab.videos.next(faults.ok, faults.fails)
        assert [await try_video(running, caller) for _ in range(3)] == ["accepted", "accepted", "RATE_LIMITED"]
        await running.wait_until_idle()
        assert await try_video(running, caller) == "accepted", "one of the two failed and costs nothing"
        assert await try_video(running, caller, seconds=3) == "RATE_LIMITED"
        assert await try_video(running, caller, seconds=2) == "accepted", "exactly the limit"
        await running.wait_until_idle()
        running.clock.advance(midnight / 1000)
        assert await try_video(running, caller) == "accepted"
        await running.wait_until_idle()


async def test_parallel_calls_cannot_exceed_a_limit(open_gateway: OpenGateway) -> None:
    """Twelve parallel calls of a key that may make four."""
    async with open_gateway() as running:
        running.lab.videos.always(faults.never_ends)
        callers = [
            await running.create_caller(**limit)
            for limit in ({"requests_per_minute": 4}, {"concurrent_requests": 4}, {"usd_per_day": "1.60"})
        ]
        for caller in callers:
            outcomes = await asyncio.gather(*(try_video(running, caller) for _ in range(12)))
            assert outcomes.count("accepted") == 4, caller
            assert outcomes.count("RATE_LIMITED") == 8


async def test_a_limited_call_does_not_change_the_balance(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller(usd_per_day="0.01")
        before = await running.money()
        assert await try_video(running, caller) == "RATE_LIMITED"
        assert await running.money() == before
        assert running.lab.submits == 0


@postgres_only
async def test_dollars_per_day_are_kept_while_images_end_in_two_processes(open_gateway: OpenGateway) -> None:
    """A request that ends while the limit is checked is counted as held or as spent, not as neither."""
    async with two_providers() as labs, open_gateway(labs=labs) as first, open_gateway(labs=labs) as second:
        for _ in range(3):
            caller = await first.create_caller(usd_per_day="0.40")

            async def call_in_turn(running: RunningGateway, caller: Caller) -> int:
                accepted = 0
                for _ in range(5):
                    with suppress(RateLimited):
                        await running.image(caller=caller)
                        accepted += 1
                return accepted

            callers = [call_in_turn(running, caller) for running in (first, second) for _ in range(6)]
            assert sum(await asyncio.gather(*callers)) == 10, "ten images at 0.04 dollars"
