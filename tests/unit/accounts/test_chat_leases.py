"""Chats whose process is gone end, and their holds are released."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from penstock.accounts.chat_leases import ChatLeases, release_abandoned
from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.requests import RequestEnd
from penstock.errors import RateLimited, StorageUnavailable
from penstock.event_loop import cancel_and_wait
from penstock.schema import Request
from penstock.store import postgres
from penstock.store.base import Store
from penstock.values import Nanos
from tests.gateway import OpenGateway, RunningGateway, caller_with, locked_balance, postgres_only
from tests.webhook_receivers import until

REQUEST = Request(task="chat", model="lab/chat", values={})


async def reserve(running: RunningGateway, amount: int, **caller: Any) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller))
    return await running.gateway.chat_reservations.reserve(call, REQUEST, Nanos(amount), None)


async def test_holds_of_a_process_that_died_are_released(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.gateway.chat_reservations.process_id = "prc_gone"
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
        for reservation in (own, again, lost[0]):  # the last comes too late and is not charged
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


class StoreWithOutages:
    """The store of a process that may lose its connection."""

    def __init__(self, running: RunningGateway) -> None:
        self._store = running.gateway.store
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        if self.is_away:
            raise StorageUnavailable("The store is unavailable.")
        return getattr(self._store, name)


async def test_no_call_of_a_living_process_ends_after_an_outage_of_the_store(open_gateway: OpenGateway) -> None:
    """All leases have expired, and the process whose call is at stake is the last one to renew its own."""
    async with open_gateway(works=False) as running:
        own = leases_of(running, running.gateway.chat_reservations.process_id)
        await own.renew()
        call_id = (await reserve(running, 1_000_000, concurrent_requests=4)).call.id
        store = StoreWithOutages(running)
        other = ChatLeases(cast(Store, store), running.clock, "prc_other", own.lease_seconds)
        task = asyncio.create_task(other.run())

        async def status_after(rounds: int) -> str:
            for _ in range(rounds):
                await until(lambda: running.clock.sleeping == 1)
                running.clock.advance(own.lease_seconds / 3)
                await until(lambda: running.clock.sleeping == 1)
            return str((await running.record(call_id))["status"])

        assert await status_after(rounds=2) == "processing"
        store.is_away = True
        assert await status_after(rounds=4) == "processing"
        store.is_away = False
        assert await status_after(rounds=2) == "processing"
        await own.renew()
        assert await status_after(rounds=2) == "processing"
        assert await status_after(rounds=2) == "upstream_failure", "it has not renewed again"
        await cancel_and_wait([task])


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


@postgres_only
async def test_a_clock_that_begins_to_differ_from_the_database_is_logged_once(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        task = asyncio.create_task(leases_of(running, "prc_1").run())
        with capture_logs() as logs:
            for jump in (0, 90, 0, 0, -90, 0):
                await until(lambda: running.clock.sleeping == 1)
                running.clock.jump(jump)
                running.clock.advance(10)
                await until(lambda: running.clock.sleeping == 1)
        await cancel_and_wait([task])
        found = [entry["found"] for entry in logs if entry["event"] == "clocks differ"]
        assert found == ["The clock of this machine is 90.0 s ahead of the database's."]
