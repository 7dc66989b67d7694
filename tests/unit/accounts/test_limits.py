"""The limits of a key: requests per minute, concurrent requests and dollars per day."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.accounts.limits import month_start_ms, next_month_ms
from penstock.accounts.orgs import change_org
from penstock.accounts.request_filters import Filters
from penstock.accounts.request_records import OPEN_STATUSES
from penstock.api.endpoints.models import list_models
from penstock.chat.endpoint import complete_chat
from penstock.errors import InvalidRequest, PermissionDenied, Problem, RateLimited
from penstock.generations import endpoints
from penstock.schema import Caller
from penstock.values import nanos
from tests.fake_providers import faults
from tests.gateway import ENDED, OpenGateway, RunningGateway, postgres_only, sqlite_only, two_providers

DAY_MS = 86_400_000
IMAGE = "https://images.example.com/a.png"


async def try_video(running: RunningGateway, caller: Caller, **body: Any) -> str:
    """Return "accepted" or the code of the error; a rejected call is recorded, as the API does it."""
    call = running.call({"model": "video-1", "prompt": "a train", "seconds": 4, **body}, caller=caller)
    try:
        await endpoints.start_video(running.gateway, call)
    except Problem as problem:
        await running.gateway.requests.reject(call, problem, "video-1", "video")
        return problem.code
    return "accepted"


async def wait_until_ended(running: RunningGateway, caller: Caller) -> None:
    """Wait until every request has ended, also those that no worker has taken yet."""

    async def met() -> bool:
        records = (await running.gateway.requests.list_records(caller.org_id, Filters())).data
        return all(record["status"] in ENDED for record in records)

    await running.wait_until(met)


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


async def test_chats_one_after_the_other_are_not_concurrent(open_gateway: OpenGateway) -> None:
    """An ended chat is written a moment later; until then it counts as under way, with all that was held for it."""
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 20}
    async with open_gateway() as running:
        one_at_a_time = await running.create_caller(concurrent_requests=1)
        for _ in range(5):
            await complete_chat(running.gateway, running.call(body, caller=one_at_a_time))
        await running.image(caller=one_at_a_time)
        # Enough for what two of them cost, but not to hold for two at once.
        poor = await running.create_caller_in_new_org("0.00011")
        for _ in range(2):
            await complete_chat(running.gateway, running.call(body, caller=poor))


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


async def test_dollars_per_month(open_gateway: OpenGateway) -> None:
    """A new day does not start the limit again, a new UTC month does; a limit per day is kept beside it."""
    async with open_gateway() as running:
        caller = await running.create_caller(usd_per_month="1.00", usd_per_day="0.90")
        assert [await try_video(running, caller) for _ in range(3)] == ["accepted", "accepted", "RATE_LIMITED"]
        await wait_until_ended(running, caller)
        running.clock.advance(DAY_MS / 1000)
        with pytest.raises(RateLimited, match="1 USD per month"):
            await running.video(caller=caller)
        assert await try_video(running, caller, seconds=2) == "accepted", "exactly the limit"
        await wait_until_ended(running, caller)
        running.clock.advance(16 * DAY_MS / 1000)  # it was the 15th of November
        assert await try_video(running, caller) == "accepted"
        await wait_until_ended(running, caller)


def test_months_begin_on_their_first_day_in_utc() -> None:
    for day in ("2024-02-29", "2025-12-31", "2026-01-01", "2026-11-30"):
        now = datetime.fromisoformat(f"{day}T23:59:59.999+00:00")
        begun = datetime.fromtimestamp(month_start_ms(int(now.timestamp() * 1000)) / 1000, UTC)
        assert begun.isoformat() == f"{day[:7]}-01T00:00:00+00:00"


async def test_a_key_may_be_limited_to_models(open_gateway: OpenGateway) -> None:
    """By the id that is listed or the name in the call; nothing is sent, and the refusal is recorded."""
    async with open_gateway() as running:
        caller = await running.create_caller(models=["image-*", "lab/video-1"])
        await running.image(caller=caller)
        assert await try_video(running, caller) == "PERMISSION_DENIED"
        assert await try_video(running, caller, model="lab/video-1") == "accepted"
        sent = running.lab.submits
        call = running.call({"model": "lab/chat", "messages": [{"role": "user", "content": "hi"}]}, caller=caller)
        with pytest.raises(PermissionDenied, match="`image-\\*`, `lab/video-1`"):
            await complete_chat(running.gateway, call)
        edit = {"model": "edit-1", "prompt": "a hat", "image": IMAGE}
        with pytest.raises(PermissionDenied):
            await endpoints.edit_images(running.gateway, running.call(edit, caller=caller))
        assert running.lab.submits == sent
        await running.wait_until_idle()
        listed = await list_models(running.gateway, running.call(caller=caller))
        assert [model["id"] for model in listed.json["data"]] == ["image-1"]


@sqlite_only
async def test_a_key_limited_to_models_cannot_have_a_router_use_others(open_gateway: OpenGateway) -> None:
    """A router uses the models in such a field when the one in `model` fails, which a caller can bring about."""
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hi"}]}
    async with open_gateway() as running:
        limited = await running.create_caller(models=["lab/chat"])
        await complete_chat(running.gateway, running.call(body, caller=limited))
        for field in ("models", "fallbacks", "route", "preset"):
            named = {**body, field: ["lab/dear"]}
            with pytest.raises(PermissionDenied, match=f"cannot use `{field}`"):
                await complete_chat(running.gateway, running.call(named, caller=limited))
            with pytest.raises(InvalidRequest, match=f"`{field}` is not sent to a server of this gateway's operator"):
                await complete_chat(running.gateway, running.call(named))
        assert len(running.lab.chats.received) == 1


async def test_parallel_calls_cannot_exceed_a_limit(open_gateway: OpenGateway) -> None:
    """Twelve parallel calls of a key that may make four."""
    async with open_gateway() as running:
        running.lab.videos.always(faults.never_ends)
        callers = [
            await running.create_caller(**limit)
            for limit in (
                {"requests_per_minute": 4},
                {"concurrent_requests": 4},
                {"usd_per_day": "1.60"},
                {"usd_per_month": "1.60"},
            )
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
@pytest.mark.parametrize("limit", ["usd_per_day", "usd_per_month"])
async def test_dollars_are_limited_while_images_end_in_two_processes(open_gateway: OpenGateway, limit: str) -> None:
    """A request that ends while the limit is checked is counted as held or as spent, not as neither."""
    async with two_providers() as labs, open_gateway(labs=labs) as first, open_gateway(labs=labs) as second:
        for _ in range(2):
            caller = await first.create_caller(None, **{limit: "0.40"})

            async def call_in_turn(running: RunningGateway, caller: Caller) -> int:
                accepted = 0
                for _ in range(5):
                    with suppress(RateLimited):
                        await running.image(caller=caller)
                        accepted += 1
                return accepted

            callers = [call_in_turn(running, caller) for running in (first, second) for _ in range(6)]
            assert sum(await asyncio.gather(*callers)) == 10, "ten images at 0.04 dollars"


async def test_dollars_per_month_of_an_organization(open_gateway: OpenGateway) -> None:
    """All keys count together, and chats too; parallel calls do not exceed it; the next month starts anew."""
    async with open_gateway() as running:
        org_id = (await running.create_caller_in_new_org()).org_id
        await change_org(running.gateway.store, running.clock, org_id, {"nanos_per_month": nanos("1.20")})
        one = await running.create_caller(org_id)
        two = await running.create_caller(org_id)
        running.lab.videos.next(faults.ok, faults.fails)
        outcomes = await asyncio.gather(*[try_video(running, caller) for caller in (one, two, one, two, one)])
        assert sorted(outcomes) == ["RATE_LIMITED"] * 2 + ["accepted"] * 3, "0.40 USD each"
        await wait_until_ended(running, one)
        assert await try_video(running, one) == "accepted", "one of the three failed and costs nothing"
        await wait_until_ended(running, one)
        body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}]}
        with pytest.raises(RateLimited, match=r"Your organization is limited to 1.2 USD per month; the month ends at"):
            await complete_chat(running.gateway, running.call(body, caller=two))
        assert await try_video(running, running.caller) == "accepted", "other organizations are not concerned"
        await running.wait_until_idle()
        running.clock.advance((next_month_ms(running.clock.now_ms()) - running.clock.now_ms()) / 1000)
        assert await try_video(running, two) == "accepted"
        await wait_until_ended(running, two)
