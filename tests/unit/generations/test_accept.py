"""The promise: everything that belongs to it is written together, or nothing is."""

import asyncio
import base64
from typing import Any

import pytest

from penstock.errors import InsufficientBalance, Problem, RateLimited
from penstock.failpoints import FailpointRaised
from penstock.generations import validate
from penstock.generations.accept import accept
from penstock.generations.plan import make_plan
from penstock.jobs.leases import Lease
from penstock.schema import Caller
from penstock.store.base import Row
from penstock.values import nanos
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, sqlite_only, tripping

TABLES = ("requests", "generations", "transfers", "media", "usage_slots")
PICTURE = {"image_url": "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()}


async def promise(running: RunningGateway, caller: Caller | None = None, **body: Any) -> tuple[Row, Lease | None]:
    """A film of four seconds."""
    call = running.call({"model": "film", "prompt": "a train", "seconds": 4, **body}, caller=caller)
    wish = validate.video(call, running.gateway.settings)
    return await accept(running.gateway, call, await make_plan(running.gateway, call, wish, "video", ("video",)))


async def stored(running: RunningGateway) -> dict[str, int]:
    """How much lies in each table."""
    return {table: len(await running.rows(f"SELECT * FROM {table}")) for table in TABLES}  # noqa: S608


async def test_a_promise_is_written_whole(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        before = await stored(running)
        row, lease = await promise(
            running, input_reference=PICTURE, idempotency_key="k1", webhook_url="https://a.example/"
        )
        assert lease is not None
        assert (row["id"], row["status"], row["webhook_url"]) == (lease.id, "queued", "https://a.example/")
        after = await stored(running)
        assert {table: after[table] - before[table] for table in TABLES} == {
            "requests": 1, "generations": 1, "transfers": 1, "media": 1, "usage_slots": 0,
        }  # fmt: skip
        record = await running.record(row["id"])
        assert (record["status"], record["model"], record["cost"]) == ("pending", "film", 0)
        available, held = await running.money()
        assert held == row["hold"] > 0
        assert available + held == nanos("10")
        assert await running.transfers(row["id"]) == {"hold": row["hold"]}


@pytest.mark.parametrize("place", ["accept.before_tx", "accept.in_tx"])
async def test_a_promise_that_was_broken_off_left_nothing(open_gateway: OpenGateway, place: str) -> None:
    async with open_gateway(works=False) as running:
        before, money = await stored(running), await running.money()
        with tripping(place), pytest.raises(FailpointRaised):
            await promise(running, input_reference=PICTURE, idempotency_key="k1")
        assert await stored(running) == before
        assert await running.money() == money
        assert (await promise(running, idempotency_key="k1"))[1] is not None, "the key was not used up"


async def test_a_promise_stands_once_it_is_written(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with tripping("accept.after_commit"), pytest.raises(FailpointRaised):
            await promise(running, idempotency_key="k1")
        row, lease = await promise(running, idempotency_key="k1")
        assert (row["status"], lease) == ("queued", None)
        assert len(await running.records()) == 1


async def test_d5_one_key_is_one_promise(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        made = await asyncio.gather(*[promise(running, idempotency_key="k1") for _ in range(8)])
        assert len({row["id"] for row, _ in made}) == 1
        assert len([lease for _, lease in made if lease]) == 1
        assert len(await running.records()) == 1
        (row, _), *_ = made
        assert await running.money() == (nanos("10") - row["hold"], row["hold"])


async def empty_purse(running: RunningGateway) -> Caller:
    return await running.another("0.000001")


async def one_at_a_time(running: RunningGateway) -> Caller:
    caller = await running.key_for(concurrent_requests=1)
    await promise(running, caller)
    return caller


async def one_a_minute(running: RunningGateway) -> Caller:
    caller = await running.key_for(requests_per_minute=1)
    await promise(running, caller)
    return caller


async def a_cent_a_day(running: RunningGateway) -> Caller:
    return await running.key_for(usd_per_day="0.01")


@pytest.mark.parametrize(
    ("who", "kind"),
    [
        (empty_purse, InsufficientBalance),
        (one_at_a_time, RateLimited),
        (one_a_minute, RateLimited),
        (a_cent_a_day, RateLimited),
    ],
)
async def test_d13_what_a_caller_may_not_do_is_not_promised(
    open_gateway: OpenGateway, who: Any, kind: type[Problem]
) -> None:
    async with open_gateway(works=False) as running:
        caller = await who(running)
        before = await stored(running)
        with pytest.raises(kind):
            await promise(running, caller)
        assert await stored(running) == before
        assert (await promise(running))[1] is not None, "others are not concerned"


@sqlite_only
async def test_d13_limits_are_off_unless_set(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        made = [await promise(running, seconds=1) for _ in range(12)]
        assert all(lease for _, lease in made)


@sqlite_only
async def test_money_under_way_is_not_spent_twice(open_gateway: OpenGateway) -> None:
    """As many as can be paid for, however many ask at once."""
    async with open_gateway(works=False) as running:
        price = (await promise(running))[0]["hold"]
        room = (await running.money())[0] // price
        made = await asyncio.gather(*[promise(running) for _ in range(room + 5)], return_exceptions=True)
        assert [type(one) for one in made if isinstance(one, BaseException)] == [InsufficientBalance] * 5
        assert (await running.money())[0] < price
