"""Chat settlement: money is reserved before a call, calls are charged in batches and once, crashes release holds."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import apsw
import pytest

from penstock.accounts.chat_settlement import EndedCall, Reservation
from penstock.accounts.requests import Filters, RequestEnd
from penstock.errors import InsufficientBalance, RateLimited, StorageUnavailable
from penstock.schema import Request
from penstock.store import sqlite_writer
from penstock.values import Nanos, dollars
from tests.gateway import OpenGateway, RunningGateway, caller_with, sqlite_only

REQUEST = Request(task="chat", model="lab/chat", values={})


async def reserve(running: RunningGateway, amount: int, **caller: Any) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller) if caller else None)
    return await running.gateway.chat_settlement.reserve(call, REQUEST, Nanos(amount), None)


def settle(running: RunningGateway, reservation: Reservation, cost: int, status: str = "completed") -> None:
    running.gateway.chat_settlement.settle_later(reservation, RequestEnd(status, Nanos(cost), 5, 10))


def unwritable(running: RunningGateway) -> EndedCall:
    """Return an ended call of an organization that does not exist."""
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, org_id="org_unknown"))
    reservation = Reservation(call, REQUEST, Nanos(0), None, in_store=False)
    return EndedCall(reservation, RequestEnd("upstream_failure", Nanos(0), 5, 10))


async def ended_requests(running: RunningGateway, count: int) -> list[dict[str, Any]]:
    async def met() -> bool:
        ended = [record for record in await running.records() if record["status"] not in ("pending", "processing")]
        return len(ended) >= count

    await running.wait_until(met, 0)
    return await running.records()


async def test_reserved_money_cannot_be_reserved_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as running:
        first = await reserve(running, 600_000_000)
        with pytest.raises(InsufficientBalance) as caught:
            await reserve(running, 600_000_000)
        assert "0.6" in caught.value.message
        assert "0.4" in caught.value.message
        settle(running, first, 100_000_000)
        await ended_requests(running, 1)
        second = await reserve(running, 600_000_000)
        settle(running, second, 0, "upstream_failure")
        await ended_requests(running, 2)
        assert await running.money() == (900_000_000, 0)


async def test_images_and_chats_do_not_spend_the_same_money(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.05") as running:
        reservation = await reserve(running, 20_000_000)
        with pytest.raises(InsufficientBalance):
            await running.image()
        settle(running, reservation, 0, "upstream_failure")
        await ended_requests(running, 1)
        await running.image()
        with pytest.raises(InsufficientBalance):
            await reserve(running, 20_000_000)


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
        settlement.ended_calls.append(EndedCall(reservation, RequestEnd("completed", Nanos(1000), 5, 10)))
        settle(running, await reserve(running, 1_000_000), 0, "upstream_failure")
        await ended_requests(running, 2)
        assert await running.money() == (10_000_000_000 - 1000, 0)


@sqlite_only
async def test_catching_up_writes_calls_that_ended_during_another_write(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        settlement = running.gateway.chat_settlement
        first, second = await reserve(running, 1_000_000), await reserve(running, 1_000_000)
        settle(running, first, 1000)
        writing = asyncio.create_task(settlement.catch_up())
        await asyncio.sleep(0)
        settle(running, second, 1000)
        await settlement.catch_up()
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
    async with open_gateway() as running:
        good = await reserve(running, 1_000_000)
        running.gateway.chat_settlement.ended_calls.append(unwritable(running))
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
        first, second = await reserve(running, 1_000_000), await reserve(running, 1_000_000)
        settle(running, first, 1000)
        await ended_requests(running, 1)
        with unavailable_store(running, monkeypatch):
            settlement.set_response_size(running.caller.org_id, first.call.id, 321)
            settle(running, second, 1000)
            await running.record(first.call.id)  # a read meanwhile changes nothing
            await running.wait_until(lambda: is_true(settlement.is_blocked), 0)
            await running.record(first.call.id)
            assert settlement.is_blocked
        await running.wait_until(lambda: is_true(not settlement.is_blocked))
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
    async with open_gateway(works=False) as running:
        settlement, write, writes = running.gateway.chat_settlement, running.gateway.store.write, 0

        async def failing(work: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == 4:  # after the batch, the sizes and the unwritable call
                raise StorageUnavailable("unavailable for a moment")
            return await write(work)

        first, second = await reserve(running, 1_000_000), await reserve(running, 1_000_000)
        settle(running, first, 1000)
        await settlement.catch_up()
        settlement.ended_calls.append(unwritable(running))
        settle(running, second, 1000)
        settlement.set_response_size(running.caller.org_id, first.call.id, 321)
        monkeypatch.setattr(running.gateway.store, "write", failing)
        await settlement.catch_up()
        assert settlement.is_blocked
        settlement.start()
        await settlement.stop()
        sizes = {record["id"]: record["response_bytes"] for record in await running.records()}
        assert sizes == {first.call.id: 321, second.call.id: 10}
        assert await running.money() == (10_000_000_000 - 2000, 0)


@sqlite_only
async def test_calls_are_refused_while_the_store_cannot_be_written(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.gateway.chat_settlement.is_blocked = True
        with pytest.raises(StorageUnavailable) as caught:
            await reserve(running, 1)
        assert caught.value.should_retry is True
        running.gateway.chat_settlement.is_blocked = False


async def test_calls_of_limited_keys_are_held_in_the_store(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        reservation = await reserve(running, 1_000_000, concurrent_requests=1)
        assert reservation.in_store
        with pytest.raises(RateLimited):
            await reserve(running, 1_000_000, concurrent_requests=1)
        settle(running, reservation, 1000)
        await ended_requests(running, 1)
        again = await reserve(running, 1_000_000, concurrent_requests=1)
        settle(running, again, 0, "upstream_failure")
        await ended_requests(running, 2)


@sqlite_only
async def test_postpaid_organizations_need_no_balance(open_gateway: OpenGateway) -> None:
    async with open_gateway(billing="postpaid", starting_credit_usd="0") as running:
        reservation = await reserve(running, 5_000_000)
        settle(running, reservation, 5_000_000)
        await ended_requests(running, 1)
        assert await running.money() == (-5_000_000, 0)
