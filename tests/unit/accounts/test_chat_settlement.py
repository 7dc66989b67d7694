"""Chat settlement: ended calls are charged once, in batches that organizations share unless one cannot be written."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import apsw
import pytest

from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.chat_settlement import EndedCall
from penstock.accounts.request_filters import Filters
from penstock.accounts.requests import RequestEnd
from penstock.errors import StorageUnavailable
from penstock.schema import Caller, Request
from penstock.store import sqlite_writer
from penstock.values import Nanos, dollars
from tests.databases import watch_round_trips
from tests.gateway import OpenGateway, RunningGateway, locked_balance, postgres_only, sqlite_only

REQUEST = Request(task="chat", model="lab/chat", values={})


async def reserve(running: RunningGateway, amount: int, caller: Caller | None = None) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller)
    return await running.gateway.chat_reservations.reserve(call, REQUEST, Nanos(amount), None)


def settle(running: RunningGateway, reservation: Reservation, cost: int, status: str = "completed") -> None:
    running.gateway.chat_settlement.settle_later(reservation, RequestEnd(status, Nanos(cost), 5, 10))


def unwritable(running: RunningGateway) -> EndedCall:
    """Return an ended call with a status that does not exist."""
    reservation = Reservation(running.call({}, endpoint="/chat"), REQUEST, Nanos(0), None, in_store=False)
    return EndedCall(reservation, RequestEnd("unknown", Nanos(0), 5, 10))


async def ended_requests(running: RunningGateway, count: int) -> list[dict[str, Any]]:
    async def met() -> bool:
        ended = [record for record in await running.records() if record["status"] not in ("pending", "processing")]
        return len(ended) >= count

    await running.wait_until(met, 0)
    return await running.records()


@sqlite_only
async def test_many_calls_are_one_transaction(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        reservations = [await reserve(running, 1_000_000) for _ in range(50)]
        rows = await running.rows("SELECT COUNT(*) AS n FROM requests")
        assert rows[0]["n"] == 0, "nothing is written before a call has ended"
        for reservation in reservations:
            settle(running, reservation, 1000)
        records = await ended_requests(running, 50)
        assert sum(record["cost"] for record in records) == 50_000
        assert await running.money() == (10_000_000_000 - 50_000, 0)


@sqlite_only
async def test_settlement_of_a_call_twice_charges_it_once(open_gateway: OpenGateway) -> None:
    """This happens after a commit that was not confirmed."""
    async with open_gateway() as running:
        reservation = await reserve(running, 1_000_000)
        settle(running, reservation, 1000)
        await ended_requests(running, 1)
        settlement = running.gateway.chat_settlement
        settlement.add(EndedCall(reservation, RequestEnd("completed", Nanos(1000), 5, 10)))
        settle(running, await reserve(running, 1_000_000), 0, "upstream_failure")
        await ended_requests(running, 2)
        assert await running.money() == (10_000_000_000 - 1000, 0)


@sqlite_only
async def test_catching_up_writes_calls_that_ended_during_another_write(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        settlement = running.gateway.chat_settlement
        first, second = await reserve(running, 1_000_000), await reserve(running, 1_000_000)
        settle(running, first, 1000)
        org_id = running.caller.org_id
        writing = asyncio.create_task(settlement.catch_up(org_id))
        await asyncio.sleep(0)
        settle(running, second, 1000)
        await settlement.catch_up(org_id)
        assert {record["id"] for record in await running.records()} == {first.call.id, second.call.id}
        await writing
        assert await running.money() == (10_000_000_000 - 2000, 0)


@sqlite_only
async def test_every_read_writes_waiting_calls_first(open_gateway: OpenGateway) -> None:
    """The background task does not run here, so only a read can have written the call."""
    async with open_gateway(works=False) as running:
        gateway, org_id, spent = running.gateway, running.caller.org_id, 0

        async def page() -> bool:
            records = (await gateway.requests.list_records(org_id, Filters())).data
            return reservation.call.id in [record["id"] for record in records]

        async def balance() -> bool:
            shown = await gateway.balances.get(org_id)
            return bool(shown["available"]["amount"] == dollars(Nanos(10_000_000_000 - spent)))

        async def purge() -> bool:
            return bool((await running.purge(reservation.call.id))["purged"])

        async def find() -> bool:
            return await gateway.requests.get(org_id, reservation.call.id) is not None

        for seen in (page, balance, purge, find):
            reservation = await reserve(running, 1_000_000)
            settle(running, reservation, 1000)
            spent += 1000
            assert await seen(), seen.__name__


@sqlite_only
async def test_a_call_that_cannot_be_written_does_not_block_others(open_gateway: OpenGateway) -> None:
    async with open_gateway(audited=False) as running:
        good = await reserve(running, 1_000_000)
        running.gateway.chat_settlement.add(unwritable(running))
        settle(running, good, 1000)
        records = await ended_requests(running, 1)
        assert [record["id"] for record in records] == [good.call.id]
        last = await reserve(running, 1_000_000)
        settle(running, last, 1000)
        assert len(await ended_requests(running, 2)) == 2


@sqlite_only
async def test_response_sizes_are_written(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await running.image()
        running.gateway.chat_settlement.set_response_size(running.caller.org_id, made["id"], 321)

        async def met() -> bool:
            return bool((await running.record(made["id"]))["response_size_bytes"] == 321)

        await running.wait_until(met, 0)


@contextmanager
def unavailable_store(running: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make every write fail at once: another connection holds the lock."""
    path = running.gateway.settings.data / "penstock.db"
    with monkeypatch.context() as patched, closing(apsw.Connection(str(path))) as other:
        patched.setattr(sqlite_writer, "BUSY_SECONDS", 0.0)
        other.set_busy_timeout(30_000)
        other.execute("BEGIN IMMEDIATE")
        yield


@sqlite_only
async def test_waiting_calls_are_written_when_the_store_is_back(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        settlement = running.gateway.chat_settlement
        reservations = running.gateway.chat_reservations
        first, second = await reserve(running, 1_000_000), await reserve(running, 1_000_000)
        settle(running, first, 1000)
        await ended_requests(running, 1)
        with unavailable_store(running, monkeypatch):
            settlement.set_response_size(running.caller.org_id, first.call.id, 321)
            settle(running, second, 1000)
            await running.record(first.call.id)  # a read meanwhile changes nothing
            await running.wait_until(lambda: is_true(reservations.is_blocked), 0)
            await running.record(first.call.id)
            assert reservations.is_blocked
        await running.wait_until(lambda: is_true(not reservations.is_blocked))
        assert (await running.record(first.call.id))["response_size_bytes"] == 321
        assert (await running.record(second.call.id))["status"] == "completed"
        assert await running.money() == (10_000_000_000 - 2000, 0)


async def is_true(met: bool) -> bool:
    return met


@sqlite_only
async def test_a_store_that_fails_between_two_single_writes_is_waited_for(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is written call by call because one cannot be written; then the store becomes unavailable."""
    async with open_gateway(works=False, audited=False) as running:
        settlement, write, writes = running.gateway.chat_settlement, running.gateway.store.write, 0

        async def failing(work: Any, **which: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == 5:  # after the batch, the sizes and two tries of the unwritable call
                raise StorageUnavailable("unavailable for a moment")
            return await write(work, **which)

        first, second = await reserve(running, 1_000_000), await reserve(running, 1_000_000)
        settle(running, first, 1000)
        await settlement.catch_up(running.caller.org_id)
        settlement.add(unwritable(running))
        settle(running, second, 1000)
        settlement.set_response_size(running.caller.org_id, first.call.id, 321)
        monkeypatch.setattr(running.gateway.store, "write", failing)
        await settlement.catch_up(running.caller.org_id)
        assert running.gateway.chat_reservations.is_blocked
        settlement.start()
        await settlement.stop()
        sizes = {record["id"]: record["response_bytes"] for record in await running.records()}
        assert sizes == {first.call.id: 321, second.call.id: 10}
        assert await running.money() == (10_000_000_000 - 2000, 0)


@postgres_only
async def test_batches_of_several_organizations_are_one_transaction(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(works=False) as running:
        settlement = running.gateway.chat_settlement
        callers = [running.caller, *[await running.create_caller_in_new_org() for _ in range(3)]]
        for caller in callers:
            settle(running, await reserve(running, 1_000_000, caller), 1000)
        round_trips = watch_round_trips(monkeypatch)
        await asyncio.gather(*(settlement.catch_up(caller.org_id) for caller in callers))
        assert [names.count("end_hold") for names in round_trips if "commit" in names] == [4]
        for caller in callers:
            assert await running.money(caller.org_id) == (10_000_000_000 - 1000, 0)


@postgres_only
async def test_a_locked_balance_delays_the_calls_of_its_own_organization_only(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        other = await running.create_caller_in_new_org()
        own_call = await reserve(running, 1_000_000)
        with locked_balance(running, running.caller.org_id):
            settle(running, own_call, 1000)
            for _ in range(2):
                call = await reserve(running, 1_000_000, other)
                settle(running, call, 1000)
                record = await running.gateway.requests.get_record(other.org_id, call.call.id)
                assert record is not None
                assert record["status"] == "completed"
            assert (await running.gateway.balances.get(other.org_id))["available"]["amount"] == dollars(
                Nanos(10_000_000_000 - 2000)
            )
            (own_row,) = await running.rows(f"SELECT status FROM requests WHERE id = '{own_call.call.id}'")  # noqa: S608
            assert own_row["status"] == "processing"
        await ended_requests(running, 1)
        assert await running.money() == (10_000_000_000 - 1000, 0)
