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
from tests.gateway import OpenGateway, RunningGateway, of, sqlite_only

REQUEST = Request(task="chat", model="lab/talk", values={})


async def opened(running: RunningGateway, hold: int, **caller: Any) -> Entry:
    call = running.call({}, endpoint="/chat", caller=of(running.caller, **caller) if caller else None)
    return await running.gateway.chat_settlement.open(call, REQUEST, Nanos(hold), None)


def close(running: RunningGateway, entry: Entry, cost: int, status: str = "completed") -> None:
    running.gateway.chat_settlement.close(Ending(entry, status, Nanos(cost), 5, 10))


def unknown(running: RunningGateway) -> Entry:
    """A call of an organization that does not exist."""
    stranger = running.call({}, endpoint="/chat", caller=of(running.caller, org_id="org_unknown"))
    return Entry(stranger, REQUEST, Nanos(0), None, in_store=False)


async def written(running: RunningGateway, count: int) -> list[dict[str, Any]]:
    async def met() -> bool:
        ended = [one for one in await running.records() if one["status"] not in ("pending", "processing")]
        return len(ended) >= count

    await running.until(met, 0)
    return await running.records()


async def test_what_is_reserved_cannot_be_spent_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as running:
        first = await opened(running, 600_000_000)
        with pytest.raises(InsufficientBalance) as caught:
            await opened(running, 600_000_000)
        assert "0.6" in caught.value.message
        assert "0.4" in caught.value.message
        close(running, first, 100_000_000)
        await written(running, 1)
        second = await opened(running, 600_000_000)
        close(running, second, 0, "upstream_failure")
        await written(running, 2)
        assert await running.money() == (900_000_000, 0)


async def test_images_leave_what_chats_have_reserved(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.05") as running:
        entry = await opened(running, 20_000_000)
        with pytest.raises(InsufficientBalance):
            await running.image()
        close(running, entry, 0, "upstream_failure")
        await written(running, 1)
        await running.image()
        with pytest.raises(InsufficientBalance):
            await opened(running, 20_000_000)


@sqlite_only
async def test_many_calls_are_one_transaction(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        entries = [await opened(running, 1_000_000) for _ in range(50)]
        commits = await running.rows("SELECT COUNT(*) AS n FROM requests")
        assert commits[0]["n"] == 0  # nothing is written before a call has ended
        for entry in entries:
            close(running, entry, 1000)
        records = await written(running, 50)
        assert sum(one["cost"] for one in records) == 50_000
        assert await running.money() == (10_000_000_000 - 50_000, 0)


@sqlite_only
async def test_settling_again_changes_nothing(open_gateway: OpenGateway) -> None:
    """As after a commit whose outcome was unknown."""
    async with open_gateway() as running:
        entry = await opened(running, 1_000_000)
        close(running, entry, 1000)
        await written(running, 1)
        settling = running.gateway.chat_settlement
        settling.endings.append(Ending(entry, "completed", Nanos(1000), 5, 10))
        close(running, await opened(running, 1_000_000), 0, "upstream_failure")
        await written(running, 2)
        assert await running.money() == (10_000_000_000 - 1000, 0)


@sqlite_only
async def test_who_asks_for_records_finds_the_call_it_just_made(open_gateway: OpenGateway) -> None:
    """Without waiting for the batch to gather, nor for one that is being written."""
    async with open_gateway() as running:
        settling = running.gateway.chat_settlement
        first, second = await opened(running, 1_000_000), await opened(running, 1_000_000)
        close(running, first, 1000)
        writing = asyncio.create_task(settling.catch_up())
        await asyncio.sleep(0)
        close(running, second, 1000)
        await settling.catch_up()
        assert {one["id"] for one in await running.records()} == {first.call.id, second.call.id}
        await writing
        assert await running.money() == (10_000_000_000 - 2000, 0)


@sqlite_only
async def test_every_way_to_read_catches_up_first(open_gateway: OpenGateway) -> None:
    """Nothing is written here unless somebody asks."""
    async with open_gateway(works=False) as running:
        gateway, org_id, spent = running.gateway, running.caller.org_id, 0

        async def page() -> bool:
            return entry.call.id in [one["id"] for one in (await gateway.requests.page(org_id, Filters())).data]

        async def balance() -> bool:
            shown = await gateway.balances.get(org_id)
            return bool(shown["available"]["amount"] == dollars(Nanos(10_000_000_000 - spent)))

        async def purge() -> bool:
            return bool((await running.purge(entry.call.id))["purged"])

        async def find() -> bool:
            return await gateway.requests.find(org_id, entry.call.id) is not None

        for seen in (page, balance, purge, find):
            entry = await opened(running, 1_000_000)
            close(running, entry, 1000)
            spent += 1000
            assert await seen(), seen.__name__


@sqlite_only
async def test_a_call_that_cannot_be_booked_takes_no_other_with_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        good = await opened(running, 1_000_000)
        running.gateway.chat_settlement.endings.append(Ending(unknown(running), "upstream_failure", Nanos(0), 5, 10))
        close(running, good, 1000)
        records = await written(running, 1)
        assert [one["id"] for one in records] == [good.call.id]
        last = await opened(running, 1_000_000)
        close(running, last, 1000)
        assert len(await written(running, 2)) == 2


@sqlite_only
async def test_sizes_of_answers_are_noted(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await running.image()
        running.gateway.chat_settlement.sized(running.caller.org_id, made["id"], 321)

        async def met() -> bool:
            return bool((await running.record(made["id"]))["response_size_bytes"] == 321)

        await running.until(met, 0)


@contextmanager
def away(running: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store that takes no writes: another process holds the lock, and nobody waits for it."""
    path = running.gateway.settings.data / "penstock.db"
    with monkeypatch.context() as patched, closing(apsw.Connection(str(path))) as other:
        patched.setattr(sqlite_writer, "BUSY_SECONDS", 0.0)
        other.set_busy_timeout(30_000)
        other.execute("BEGIN IMMEDIATE")
        yield


@sqlite_only
async def test_what_waits_outlives_a_store_that_is_away(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        settling = running.gateway.chat_settlement
        first, second = await opened(running, 1_000_000), await opened(running, 1_000_000)
        close(running, first, 1000)
        await written(running, 1)
        with away(running, monkeypatch):
            settling.sized(running.caller.org_id, first.call.id, 321)
            close(running, second, 1000)
            await running.record(first.call.id)  # who asks meanwhile changes nothing
            await running.until(lambda: so(settling.trouble), 0)
            await running.record(first.call.id)
            assert settling.trouble
        await running.until(lambda: so(not settling.trouble))
        assert (await running.record(first.call.id))["response_size_bytes"] == 321
        assert (await running.record(second.call.id))["status"] == "completed"
        assert await running.money() == (10_000_000_000 - 2000, 0)


async def so(met: bool) -> bool:
    return met


@sqlite_only
async def test_what_goes_away_between_two_calls_is_waited_for(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a batch cannot be booked, and before the next is booked by itself the store is gone."""
    async with open_gateway(works=False) as running:
        settling, write, writes = running.gateway.chat_settlement, running.gateway.store.write, 0

        async def failing(work: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == 4:  # the batch, the sizes, the stranger
                raise StorageUnavailable("gone for a moment")
            return await write(work)

        first, second = await opened(running, 1_000_000), await opened(running, 1_000_000)
        close(running, first, 1000)
        await settling.catch_up()
        settling.endings.append(Ending(unknown(running), "upstream_failure", Nanos(0), 5, 10))
        close(running, second, 1000)
        settling.sized(running.caller.org_id, first.call.id, 321)
        monkeypatch.setattr(running.gateway.store, "write", failing)
        await settling.catch_up()
        assert settling.trouble
        settling.start()
        await settling.stop()
        sizes = {one["id"]: one["response_bytes"] for one in await running.records()}
        assert sizes == {first.call.id: 321, second.call.id: 10}
        assert await running.money() == (10_000_000_000 - 2000, 0)


@sqlite_only
async def test_nothing_is_sent_while_nothing_can_be_written_down(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.gateway.chat_settlement.trouble = True
        with pytest.raises(StorageUnavailable) as caught:
            await opened(running, 1)
        assert caught.value.should_retry is True
        running.gateway.chat_settlement.trouble = False


async def test_limited_keys_hold_in_the_store(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        entry = await opened(running, 1_000_000, concurrent_requests=1)
        assert entry.in_store
        with pytest.raises(RateLimited):
            await opened(running, 1_000_000, concurrent_requests=1)
        close(running, entry, 1000)
        await written(running, 1)
        again = await opened(running, 1_000_000, concurrent_requests=1)
        close(running, again, 0, "upstream_failure")
        await written(running, 2)


async def test_a_process_that_died_gives_its_holds_back(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        await opened(running, 1_000_000, concurrent_requests=5)
        assert (await running.money())[1] == 1_000_000
        running.clock.advance(10_000)
        assert await running.gateway.chat_settlement.recover(running.clock.now_ms()) == 1
        record = (await running.records())[-1]
        assert (record["status"], record["error_code"], record["cost"]) == ("upstream_failure", "INTERNAL_ERROR", 0)
        assert await running.money() == before
        assert await running.gateway.chat_settlement.recover(running.clock.now_ms()) == 0


@sqlite_only
async def test_postpaid_organizations_need_no_money(open_gateway: OpenGateway) -> None:
    async with open_gateway(billing="postpaid", starting_credit_usd="0") as running:
        entry = await opened(running, 5_000_000)
        close(running, entry, 5_000_000)
        await written(running, 1)
        assert await running.money() == (-5_000_000, 0)
