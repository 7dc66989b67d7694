"""The promise: everything that belongs to it is written together, or nothing is."""

import asyncio
import base64
from typing import Any

import pytest

from penstock.errors import InsufficientBalance, Problem, RateLimited
from penstock.failpoints import Tripped
from penstock.generations import validate
from penstock.generations.accept import accept
from penstock.generations.plan import make_plan
from penstock.jobs.leases import Lease
from penstock.schema import Caller
from penstock.store.base import Row
from penstock.values import nanos
from tests.house import House, OpenHouse, sqlite_only, tripping
from tests.upstreams.lab import png

TABLES = ("requests", "generations", "transfers", "media", "usage_slots")
PICTURE = {"image_url": "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()}


async def promise(house: House, caller: Caller | None = None, **body: Any) -> tuple[Row, Lease | None]:
    """A film of four seconds."""
    call = house.call({"model": "film", "prompt": "a train", "seconds": 4, **body}, caller=caller)
    wish = validate.video(call, house.gateway.settings)
    return await accept(house.gateway, call, await make_plan(house.gateway, call, wish, "video", ("video",)))


async def stored(house: House) -> dict[str, int]:
    """How much lies in each table."""
    return {table: len(await house.rows(f"SELECT * FROM {table}")) for table in TABLES}  # noqa: S608


async def test_a_promise_is_written_whole(open_house: OpenHouse) -> None:
    async with open_house(works=False) as house:
        before = await stored(house)
        row, lease = await promise(
            house, input_reference=PICTURE, idempotency_key="k1", webhook_url="https://a.example/"
        )
        assert lease is not None
        assert (row["id"], row["status"], row["webhook_url"]) == (lease.id, "queued", "https://a.example/")
        after = await stored(house)
        assert {table: after[table] - before[table] for table in TABLES} == {
            "requests": 1, "generations": 1, "transfers": 1, "media": 1, "usage_slots": 0,
        }  # fmt: skip
        record = await house.record(row["id"])
        assert (record["status"], record["model"], record["cost"]) == ("pending", "film", 0)
        available, held = await house.money()
        assert held == row["hold"] > 0
        assert available + held == nanos("10")
        assert await house.transfers(row["id"]) == {"hold": row["hold"]}


@pytest.mark.parametrize("place", ["accept.before_tx", "accept.in_tx"])
async def test_a_promise_that_was_broken_off_left_nothing(open_house: OpenHouse, place: str) -> None:
    async with open_house(works=False) as house:
        before, money = await stored(house), await house.money()
        with tripping(place), pytest.raises(Tripped):
            await promise(house, input_reference=PICTURE, idempotency_key="k1")
        assert await stored(house) == before
        assert await house.money() == money
        assert (await promise(house, idempotency_key="k1"))[1] is not None, "the key was not used up"


async def test_a_promise_stands_once_it_is_written(open_house: OpenHouse) -> None:
    async with open_house(works=False) as house:
        with tripping("accept.after_commit"), pytest.raises(Tripped):
            await promise(house, idempotency_key="k1")
        row, lease = await promise(house, idempotency_key="k1")
        assert (row["status"], lease) == ("queued", None)
        assert len(await house.records()) == 1


async def test_d5_one_key_is_one_promise(open_house: OpenHouse) -> None:
    async with open_house(works=False) as house:
        made = await asyncio.gather(*[promise(house, idempotency_key="k1") for _ in range(8)])
        assert len({row["id"] for row, _ in made}) == 1
        assert len([lease for _, lease in made if lease]) == 1
        assert len(await house.records()) == 1
        (row, _), *_ = made
        assert await house.money() == (nanos("10") - row["hold"], row["hold"])


async def empty_purse(house: House) -> Caller:
    return await house.another("0.000001")


async def one_at_a_time(house: House) -> Caller:
    caller = await house.key_for(calls_at_once=1)
    await promise(house, caller)
    return caller


async def one_a_minute(house: House) -> Caller:
    caller = await house.key_for(calls_a_minute=1)
    await promise(house, caller)
    return caller


async def a_cent_a_day(house: House) -> Caller:
    return await house.key_for(usd_a_day="0.01")


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
    open_house: OpenHouse, who: Any, kind: type[Problem]
) -> None:
    async with open_house(works=False) as house:
        caller = await who(house)
        before = await stored(house)
        with pytest.raises(kind):
            await promise(house, caller)
        assert await stored(house) == before
        assert (await promise(house))[1] is not None, "others are not concerned"


@sqlite_only
async def test_d13_limits_are_off_unless_set(open_house: OpenHouse) -> None:
    async with open_house(works=False) as house:
        made = [await promise(house, seconds=1) for _ in range(12)]
        assert all(lease for _, lease in made)


@sqlite_only
async def test_money_under_way_is_not_spent_twice(open_house: OpenHouse) -> None:
    """As many as can be paid for, however many ask at once."""
    async with open_house(works=False) as house:
        price = (await promise(house))[0]["hold"]
        room = (await house.money())[0] // price
        made = await asyncio.gather(*[promise(house) for _ in range(room + 5)], return_exceptions=True)
        assert [type(one) for one in made if isinstance(one, BaseException)] == [InsufficientBalance] * 5
        assert (await house.money())[0] < price
