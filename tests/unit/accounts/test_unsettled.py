"""Chats, images and videos that spend one balance at once: records, balance and the provider's invoice agree."""

import asyncio
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from penstock.accounts import chat_settlement, unsettled
from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.chat_settlement import ChatSettlement
from penstock.accounts.requests import RequestEnd
from penstock.chat.endpoint import complete_chat
from penstock.errors import InsufficientBalance, RateLimited, StorageUnavailable, UpstreamError
from penstock.schema import Request, Response
from penstock.store.base import Transaction
from penstock.values import Nanos, nanos
from tests.fake_providers import faults
from tests.gateway import ENDED, OpenGateway, RunningGateway, caller_with, postgres_only, sqlite_only, two_providers

WORDS = 10_000  # of a chat: as many tokens of input at a micro-dollar, and of output at two
CHAT_NANOS = WORDS * 3000
REQUEST = Request(task="chat", model="lab/chat", values={})


async def long_chat(running: RunningGateway, **caller: Any) -> Response:
    messages = [{"role": "user", "content": "w " * WORDS}]
    body = {"model": "lab/chat", "messages": messages, "max_tokens": WORDS}
    call = running.call(body, endpoint="/chat", caller=caller_with(running.caller, **caller))
    return await complete_chat(running.gateway, call)


async def reserve(running: RunningGateway, amount: int, **caller: Any) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller))
    return await running.gateway.chat_reservations.reserve(call, REQUEST, Nanos(amount), None)


def settle(running: RunningGateway, reservation: Reservation, cost: int, status: str = "completed") -> None:
    running.gateway.chat_settlement.settle_later(reservation, RequestEnd(status, Nanos(cost), 5, 10))


async def check_agreement(running: RunningGateway, credit: Nanos, *, losses: int = 0) -> None:
    """Check that each response has a record, and that balance, records and the provider's invoice agree."""

    async def met() -> bool:
        return all(record["status"] in ENDED for record in await running.records())

    await running.gateway.chat_settlement.catch_up(running.caller.org_id)
    await running.wait_until(met)
    records = await running.records()
    spent = sum(record["cost"] for record in records)
    assert await running.money() == (credit - spent, 0)
    assert spent + losses == nanos(running.lab.bill_usd)
    chats = [record for record in records if record["endpoint"] == "/chat" and record["status"] == "completed"]
    assert len(chats) == len([charge for charge in running.lab.invoice if charge.kind == "chat"])


async def test_what_ended_chats_cost_cannot_be_held_for_a_video(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spend all on chats, ask for videos as soon as they have ended, cancel what is accepted, and begin again."""
    monkeypatch.setattr(chat_settlement, "BATCH_SECONDS", 0.2)  # more time between a chat's end and its charge
    async with open_gateway(starting_credit_usd="0.125") as running:
        for _ in range(3):
            chats = await start_chats(running, 3)
            await try_video(running)
            chats.gate.open()
            await asyncio.gather(*chats.tasks, return_exceptions=True)
            for _ in range(5):
                await try_video(running)
        await check_agreement(running, nanos("0.125"))
        assert (await running.money())[0] < CHAT_NANOS * 2, "nearly all was spent"


async def test_a_hold_whose_commit_was_not_confirmed_is_released(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would count against the balance and the limits of its key until the process ends."""
    async with open_gateway(starting_credit_usd="1") as running:
        store = running.gateway.store
        write = store.write

        async def write_and_break(work: Any, **options: Any) -> None:
            monkeypatch.setattr(store, "write", write)
            await write(work, **options)
            raise StorageUnavailable("Storage is unavailable.", should_retry=False)

        monkeypatch.setattr(store, "write", write_and_break)
        with pytest.raises(StorageUnavailable):
            await long_chat(running, concurrent_requests=1)
        await check_agreement(running, nanos("1"))
        await long_chat(running, concurrent_requests=1)
        await check_agreement(running, nanos("1"))


@postgres_only
async def test_chats_by_turns_in_two_servers_are_one_at_a_time(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chat has ended in one server, but is not written yet, when the next one reaches the other server."""
    monkeypatch.setattr(chat_settlement, "BATCH_SECONDS", 0.1)
    async with two_providers() as labs, open_gateway(labs=labs) as one, open_gateway(labs=labs) as other:
        for running in (one, other, one, other):
            assert (await long_chat(running, concurrent_requests=1)).status == 200
        chats = await start_chats(one, 1)
        with pytest.raises(RateLimited):
            await long_chat(other, concurrent_requests=1)
        chats.gate.open()
        await asyncio.gather(*chats.tasks)


class StartedChats(NamedTuple):
    tasks: list[asyncio.Task[Response]]
    gate: faults.Gate  # they end when it opens


async def start_chats(running: RunningGateway, count: int) -> StartedChats:
    """Return when the provider has received each chat that was not refused."""
    gate = faults.Gate()
    running.lab.chats.always(gate)
    before = len(running.lab.chats)
    tasks = [asyncio.create_task(long_chat(running)) for _ in range(count)]

    async def met() -> bool:
        return len(running.lab.chats) - before + sum(task.done() for task in tasks) == count

    await running.wait_until(met, 0)
    return StartedChats(tasks, gate)


async def try_video(running: RunningGateway) -> None:
    running.lab.videos.next(faults.never_ends)
    try:
        started = await running.video(seconds=1)
    except InsufficientBalance:
        await asyncio.sleep(0)
    else:
        await running.gateway.chat_settlement.catch_up(
            running.caller.org_id
        )  # the chats are charged while the hold stands
        await running.cancel(started.json["id"])
        await running.wait_for_request(started.json["id"])


async def test_chats_and_images_at_once_spend_no_more_than_there_is(open_gateway: OpenGateway) -> None:
    credit = nanos("0.5")
    async with open_gateway(starting_credit_usd="0.5") as running:
        calls = [call for _ in range(15) for call in (long_chat(running), running.image(), long_chat(running))]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, InsufficientBalance)]
        assert 0 < len(refused) < len(calls)
        assert not [
            outcome
            for outcome in outcomes
            if isinstance(outcome, Exception) and not isinstance(outcome, InsufficientBalance)
        ]
        await check_agreement(running, credit)


@sqlite_only
async def test_an_ended_chat_counts_until_it_is_charged(open_gateway: OpenGateway) -> None:
    """Here nothing writes the batch, so the charge is in memory alone."""
    async with open_gateway(works=False, starting_credit_usd="0.2") as running:
        settle(running, await reserve(running, 150_000_000), 150_000_000)
        with pytest.raises(InsufficientBalance):
            await running.video(seconds=1)
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert await running.money() == (50_000_000, 0)


@sqlite_only
async def test_a_charge_is_not_counted_twice_while_it_is_committed(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is in the store a moment before that is confirmed to those who count what it costs."""
    async with open_gateway(works=False, starting_credit_usd="0.2") as running:
        reservations = running.gateway.chat_reservations
        org_id = running.caller.org_id
        store = running.gateway.store
        write = store.write
        first = await reserve(running, 90_000_000)
        reservations.end(first, Nanos(90_000_000))
        ended = chat_settlement.EndedCall(first, RequestEnd("completed", Nanos(90_000_000), 5, 10))

        async def charge(tx: Transaction) -> list[Nanos]:
            before = await reservations._reserved_amount(tx, org_id)
            await running.gateway.chat_settlement._write_batch([ended], [], tx)
            return [before, await reservations._reserved_amount(tx, org_id)]

        assert await write(charge) == [90_000_000, 0], "what a hold must leave"

        async def confirm_and_write(work: Any, **options: Any) -> Any:
            reservations.forget(org_id, [first.call.id])  # a write queues behind the one that charges
            return await write(work, **options)

        monkeypatch.setattr(store, "write", confirm_and_write)
        running.clock.advance(2)  # so that the balance is read again
        settle(running, await reserve(running, 110_000_000), 0, "upstream_failure")


@sqlite_only
async def test_the_hold_of_a_limited_key_cannot_be_reserved_in_memory(open_gateway: OpenGateway) -> None:
    """A balance that was read a moment ago does not show a hold that was written since."""
    async with open_gateway(starting_credit_usd="0.2") as running:
        settle(running, await reserve(running, 1_000_000), 0, "upstream_failure")
        held = await reserve(running, 150_000_000, concurrent_requests=5)
        with pytest.raises(InsufficientBalance):
            await reserve(running, 100_000_000)
        settle(running, held, 0, "upstream_failure")


@sqlite_only
async def test_a_chat_that_cannot_be_charged_is_recorded_and_its_cost_is_a_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, starting_credit_usd="0.2", audited=False) as running:
        reservations = [await reserve(running, 100_000_000) for _ in range(2)]
        await running.change("UPDATE orgs SET available = 130000000")
        for reservation in reservations:
            settle(running, reservation, 90_000_000)
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        first, second = (reservation.call.id for reservation in reservations)
        assert {record["id"]: record["cost"] for record in await running.records()} == {
            first: 90_000_000,
            second: 40_000_000,
        }
        assert await running.money() == (0, 0)
        assert await running.transfers(first) == {"capture": 90_000_000}
        assert await running.transfers(second) == {"capture": 40_000_000, "loss": 50_000_000}


@postgres_only
@pytest.mark.parametrize("kind", ["whole", "streamed", "failed"])
async def test_calls_one_after_the_other_may_alternate_between_servers(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A key that is limited to one call at a time has its place again when it has the response, however long the other
    server would take to write the end of the call.
    """
    monkeypatch.setattr(unsettled, "_OTHERS_BATCHES", 0)
    monkeypatch.setattr(ChatSettlement, "_start_writing", lambda *_: None)
    async with two_providers() as labs, open_gateway(labs=labs) as one, open_gateway(labs=labs) as other:
        caller = await one.create_caller(concurrent_requests=1)
        body = {"model": "lab/chat", "messages": [{"role": "user", "content": "a pear"}], "stream": kind == "streamed"}
        if kind == "failed":
            labs[0].chats.always(faults.broken)
        for running in (one, other, one, other):
            call = running.call(body, endpoint="/chat", caller=caller)
            if kind == "failed":
                with pytest.raises(UpstreamError):
                    await complete_chat(running.gateway, call)
                continue
            response = await complete_chat(running.gateway, call)
            if response.chunks is not None:
                while b"[DONE]" not in await anext(response.chunks):
                    pass
        for running in (one, other):
            await running.gateway.chat_settlement.catch_up(caller.org_id)


@postgres_only
async def test_a_call_waits_for_what_another_server_has_not_written(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an ended call has left of its hold pays for the next call, also in another server."""
    monkeypatch.setattr(ChatSettlement, "_start_writing", lambda *_: None)
    pauses: list[float] = []
    async with (
        two_providers() as labs,
        open_gateway(labs=labs, starting_credit_usd="0.05") as one,
        open_gateway(labs=labs) as other,
    ):
        settle(one, await reserve(one, CHAT_NANOS), 0, "upstream_failure")

        async def write_elsewhere(seconds: float) -> None:
            pauses.append(seconds)
            await one.gateway.chat_settlement.catch_up(one.caller.org_id)

        monkeypatch.setattr(unsettled, "asyncio", SimpleNamespace(sleep=write_elsewhere))
        assert (await long_chat(other)).status == 200
        await other.gateway.chat_settlement.catch_up(other.caller.org_id)
    assert pauses == [unsettled._OTHERS_BATCHES * chat_settlement.BATCH_SECONDS]
