"""Booking chat calls: reserved before they are sent, settled in batches, never twice, and recovered after a crash."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import apsw
import pytest

from penstock.accounts.chat_settlement import Ending, Entry
from penstock.accounts.requests import Filters
from penstock.errors import InsufficientBalance, RateLimited, StorageUnavailable
from penstock.schema import Request
from penstock.store import sqlite_writer
from penstock.values import Nanos, dollars
from tests.house import House, OpenHouse, of, sqlite_only

REQUEST = Request(task="chat", model="lab/talk", values={})


async def opened(house: House, hold: int, **caller: Any) -> Entry:
    call = house.call({}, endpoint="/chat", caller=of(house.caller, **caller) if caller else None)
    return await house.gateway.chat_settlement.open(call, REQUEST, Nanos(hold), None)


def close(house: House, entry: Entry, cost: int, status: str = "completed") -> None:
    house.gateway.chat_settlement.close(Ending(entry, status, Nanos(cost), 5, 10))


def unknown(house: House) -> Entry:
    """A call of an organization that does not exist."""
    stranger = house.call({}, endpoint="/chat", caller=of(house.caller, org_id="org_unknown"))
    return Entry(stranger, REQUEST, Nanos(0), None, in_store=False)


async def written(house: House, count: int) -> list[dict[str, Any]]:
    async def met() -> bool:
        ended = [one for one in await house.records() if one["status"] not in ("pending", "processing")]
        return len(ended) >= count

    await house.until(met, 0)
    return await house.records()


async def test_what_is_reserved_cannot_be_spent_again(open_house: OpenHouse) -> None:
    async with open_house(starting_credit_usd="1") as house:
        first = await opened(house, 600_000_000)
        with pytest.raises(InsufficientBalance) as caught:
            await opened(house, 600_000_000)
        assert "0.6" in caught.value.message
        assert "0.4" in caught.value.message
        close(house, first, 100_000_000)
        await written(house, 1)
        second = await opened(house, 600_000_000)
        close(house, second, 0, "upstream_failure")
        await written(house, 2)
        assert await house.money() == (900_000_000, 0)


async def test_images_leave_what_chats_have_reserved(open_house: OpenHouse) -> None:
    async with open_house(starting_credit_usd="0.05") as house:
        entry = await opened(house, 20_000_000)
        with pytest.raises(InsufficientBalance):
            await house.image()
        close(house, entry, 0, "upstream_failure")
        await written(house, 1)
        await house.image()
        with pytest.raises(InsufficientBalance):
            await opened(house, 20_000_000)


@sqlite_only
async def test_many_calls_are_one_transaction(open_house: OpenHouse) -> None:
    async with open_house() as house:
        entries = [await opened(house, 1_000_000) for _ in range(50)]
        commits = await house.rows("SELECT COUNT(*) AS n FROM requests")
        assert commits[0]["n"] == 0  # nothing is written before a call has ended
        for entry in entries:
            close(house, entry, 1000)
        records = await written(house, 50)
        assert sum(one["cost"] for one in records) == 50_000
        assert await house.money() == (10_000_000_000 - 50_000, 0)


@sqlite_only
async def test_settling_again_changes_nothing(open_house: OpenHouse) -> None:
    """As after a commit whose outcome was unknown."""
    async with open_house() as house:
        entry = await opened(house, 1_000_000)
        close(house, entry, 1000)
        await written(house, 1)
        settling = house.gateway.chat_settlement
        settling.endings.append(Ending(entry, "completed", Nanos(1000), 5, 10))
        close(house, await opened(house, 1_000_000), 0, "upstream_failure")
        await written(house, 2)
        assert await house.money() == (10_000_000_000 - 1000, 0)


@sqlite_only
async def test_who_asks_for_records_finds_the_call_it_just_made(open_house: OpenHouse) -> None:
    """Without waiting for the batch to gather, nor for one that is being written."""
    async with open_house() as house:
        settling = house.gateway.chat_settlement
        first, second = await opened(house, 1_000_000), await opened(house, 1_000_000)
        close(house, first, 1000)
        writing = asyncio.create_task(settling.catch_up())
        await asyncio.sleep(0)
        close(house, second, 1000)
        await settling.catch_up()
        assert {one["id"] for one in await house.records()} == {first.call.id, second.call.id}
        await writing
        assert await house.money() == (10_000_000_000 - 2000, 0)


@sqlite_only
async def test_every_way_to_read_catches_up_first(open_house: OpenHouse) -> None:
    """Nothing is written here unless somebody asks."""
    async with open_house(works=False) as house:
        gateway, org_id, spent = house.gateway, house.caller.org_id, 0

        async def page() -> bool:
            return entry.call.id in [one["id"] for one in (await gateway.requests.page(org_id, Filters())).data]

        async def balance() -> bool:
            shown = await gateway.billing.balance(org_id)
            return bool(shown["available"]["amount"] == dollars(Nanos(10_000_000_000 - spent)))

        async def purge() -> bool:
            return bool((await house.purge(entry.call.id))["purged"])

        async def find() -> bool:
            return await gateway.requests.find(org_id, entry.call.id) is not None

        for seen in (page, balance, purge, find):
            entry = await opened(house, 1_000_000)
            close(house, entry, 1000)
            spent += 1000
            assert await seen(), seen.__name__


@sqlite_only
async def test_a_call_that_cannot_be_booked_takes_no_other_with_it(open_house: OpenHouse) -> None:
    async with open_house() as house:
        good = await opened(house, 1_000_000)
        house.gateway.chat_settlement.endings.append(Ending(unknown(house), "upstream_failure", Nanos(0), 5, 10))
        close(house, good, 1000)
        records = await written(house, 1)
        assert [one["id"] for one in records] == [good.call.id]
        last = await opened(house, 1_000_000)
        close(house, last, 1000)
        assert len(await written(house, 2)) == 2


@sqlite_only
async def test_sizes_of_answers_are_noted(open_house: OpenHouse) -> None:
    async with open_house() as house:
        made = await house.image()
        house.gateway.chat_settlement.sized(house.caller.org_id, made["id"], 321)

        async def met() -> bool:
            return bool((await house.record(made["id"]))["response_size_bytes"] == 321)

        await house.until(met, 0)


@contextmanager
def away(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store that takes no writes: another process holds the lock, and nobody waits for it."""
    path = house.gateway.settings.data / "penstock.db"
    with monkeypatch.context() as patched, closing(apsw.Connection(str(path))) as other:
        patched.setattr(sqlite_writer, "BUSY_SECONDS", 0.0)
        other.set_busy_timeout(30_000)
        other.execute("BEGIN IMMEDIATE")
        yield


@sqlite_only
async def test_what_waits_outlives_a_store_that_is_away(open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_house() as house:
        settling = house.gateway.chat_settlement
        first, second = await opened(house, 1_000_000), await opened(house, 1_000_000)
        close(house, first, 1000)
        await written(house, 1)
        with away(house, monkeypatch):
            settling.sized(house.caller.org_id, first.call.id, 321)
            close(house, second, 1000)
            await house.record(first.call.id)  # who asks meanwhile changes nothing
            await house.until(lambda: so(settling.trouble), 0)
            await house.record(first.call.id)
            assert settling.trouble
        await house.until(lambda: so(not settling.trouble))
        assert (await house.record(first.call.id))["response_size_bytes"] == 321
        assert (await house.record(second.call.id))["status"] == "completed"
        assert await house.money() == (10_000_000_000 - 2000, 0)


async def so(met: bool) -> bool:
    return met


@sqlite_only
async def test_what_goes_away_between_two_calls_is_waited_for(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a batch cannot be booked, and before the next is booked by itself the store is gone."""
    async with open_house(works=False) as house:
        settling, write, writes = house.gateway.chat_settlement, house.gateway.store.write, 0

        async def failing(work: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == 4:  # the batch, the sizes, the stranger
                raise StorageUnavailable("gone for a moment")
            return await write(work)

        first, second = await opened(house, 1_000_000), await opened(house, 1_000_000)
        close(house, first, 1000)
        await settling.catch_up()
        settling.endings.append(Ending(unknown(house), "upstream_failure", Nanos(0), 5, 10))
        close(house, second, 1000)
        settling.sized(house.caller.org_id, first.call.id, 321)
        monkeypatch.setattr(house.gateway.store, "write", failing)
        await settling.catch_up()
        assert settling.trouble
        settling.start()
        await settling.stop()
        sizes = {one["id"]: one["response_bytes"] for one in await house.records()}
        assert sizes == {first.call.id: 321, second.call.id: 10}
        assert await house.money() == (10_000_000_000 - 2000, 0)


@sqlite_only
async def test_nothing_is_sent_while_nothing_can_be_written_down(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.gateway.chat_settlement.trouble = True
        with pytest.raises(StorageUnavailable) as caught:
            await opened(house, 1)
        assert caught.value.should_retry is True
        house.gateway.chat_settlement.trouble = False


async def test_limited_keys_hold_in_the_store(open_house: OpenHouse) -> None:
    async with open_house() as house:
        entry = await opened(house, 1_000_000, calls_at_once=1)
        assert entry.in_store
        with pytest.raises(RateLimited):
            await opened(house, 1_000_000, calls_at_once=1)
        close(house, entry, 1000)
        await written(house, 1)
        again = await opened(house, 1_000_000, calls_at_once=1)
        close(house, again, 0, "upstream_failure")
        await written(house, 2)


async def test_a_process_that_died_gives_its_holds_back(open_house: OpenHouse) -> None:
    async with open_house() as house:
        before = await house.money()
        await opened(house, 1_000_000, calls_at_once=5)
        assert (await house.money())[1] == 1_000_000
        house.clock.advance(10_000)
        assert await house.gateway.chat_settlement.recover(house.clock.now_ms()) == 1
        record = (await house.records())[-1]
        assert (record["status"], record["error_code"], record["cost"]) == ("upstream_failure", "INTERNAL_ERROR", 0)
        assert await house.money() == before
        assert await house.gateway.chat_settlement.recover(house.clock.now_ms()) == 0


@sqlite_only
async def test_postpaid_organizations_need_no_money(open_house: OpenHouse) -> None:
    async with open_house(billing="postpaid", starting_credit_usd="0") as house:
        entry = await opened(house, 5_000_000)
        close(house, entry, 5_000_000)
        await written(house, 1)
        assert await house.money() == (-5_000_000, 0)
