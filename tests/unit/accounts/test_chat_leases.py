"""Chats whose process is gone end, and their holds are released."""

from typing import Any

import pytest

from penstock.accounts.chat_leases import ChatLeases, release_abandoned
from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.requests import RequestEnd
from penstock.errors import RateLimited
from penstock.schema import Request
from penstock.store import postgres
from penstock.values import Nanos
from tests.gateway import OpenGateway, RunningGateway, caller_with, locked_balance, postgres_only

REQUEST = Request(task="chat", model="lab/chat", values={})


async def reserve(running: RunningGateway, amount: int, **caller: Any) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller))
    return await running.gateway.chat_reservations.reserve(call, REQUEST, Nanos(amount), None)


async def test_holds_of_a_process_that_died_are_released(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        await reserve(running, 1_000_000, concurrent_requests=5)
        assert (await running.money())[1] == 1_000_000
        running.clock.advance(10_000)
        assert await release_abandoned(running.gateway.store, running.clock, running.clock.now_ms()) == 1
        record = (await running.records())[-1]
        assert (record["status"], record["error_code"], record["cost"]) == ("upstream_failure", "INTERNAL_ERROR", 0)
        assert await running.money() == before
        assert await release_abandoned(running.gateway.store, running.clock, running.clock.now_ms()) == 0


def leases_of(running: RunningGateway, process_id: str) -> ChatLeases:
    return ChatLeases(running.gateway.store, running.clock, process_id, 30.0)


async def test_calls_of_a_process_that_stopped_renewing_end_within_a_minute(open_gateway: OpenGateway) -> None:
    """The key is not locked out, and the calls of living processes go on."""
    async with open_gateway() as running:
        settlement = running.gateway.chat_settlement
        before = await running.money()
        own = await reserve(running, 1_000_000, concurrent_requests=4)
        own_process = running.gateway.chat_reservations.process_id
        running.gateway.chat_reservations.process_id = "prc_dead"
        await leases_of(running, "prc_dead").renew()
        lost = [await reserve(running, 1_000_000, concurrent_requests=4) for _ in range(3)]
        running.gateway.chat_reservations.process_id = own_process
        with pytest.raises(RateLimited):
            await reserve(running, 1_000_000, concurrent_requests=4)
        for _ in range(6):  # as a process that lives does, this one renews meanwhile
            running.clock.advance(10)
            await leases_of(running, own_process).renew()
            await leases_of(running, own_process).end_calls_of_dead_processes()
        statuses = {record["id"]: (record["status"], record["error_code"]) for record in await running.records()}
        assert statuses == {
            own.call.id: ("processing", None),
            **{reservation.call.id: ("upstream_failure", "INTERNAL_ERROR") for reservation in lost},
        }
        assert await running.money() == (before[0] - 1_000_000, 1_000_000)
        again = await reserve(running, 1_000_000, concurrent_requests=4)
        for reservation in (own, again, lost[0]):  # the last comes too late and changes nothing
            settlement.settle_later(reservation, RequestEnd("completed", Nanos(1000), 5, 10))
        await settlement.catch_up(running.caller.org_id)
        assert await running.money() == (before[0] - 2000, 0)
        processes = [row["id"] for row in await running.rows("SELECT id FROM processes")]
        assert processes == [own_process]


async def test_a_process_that_ends_gives_its_lease_back(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        process_id = running.gateway.chat_reservations.process_id
    async with open_gateway() as running:
        await leases_of(running, "prc_other").end_calls_of_dead_processes()
        assert process_id not in [row["id"] for row in await running.rows("SELECT id FROM processes")]


@postgres_only
async def test_a_locked_balance_does_not_keep_the_calls_of_other_organizations_open(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_SESSION", "SET lock_timeout = '100ms'")
    async with open_gateway() as running:
        reservations = running.gateway.chat_reservations
        own_process = reservations.process_id
        reservations.process_id = "prc_dead"
        other = await running.create_caller_in_new_org()
        for caller in (running.caller, other):
            call = running.call({}, endpoint="/chat", caller=caller)
            await reservations.reserve(call, REQUEST, Nanos(1_000_000), None)
        reservations.process_id = own_process
        leases = leases_of(running, own_process)
        await leases_of(running, "prc_dead").give_back()  # as expired, without waking the gateway's own round
        with locked_balance(running, running.caller.org_id):
            assert await leases.end_calls_of_dead_processes() == 1
        assert (await running.money(other.org_id))[1] == 0
        assert (await running.money())[1] == 1_000_000
        assert await leases.end_calls_of_dead_processes() == 1
        assert (await running.money())[1] == 0
