"""Chats whose process is gone end, and their holds are released."""

from typing import Any

from penstock.accounts.chat_leases import release_abandoned
from penstock.accounts.chat_settlement import Reservation
from penstock.schema import Request
from penstock.values import Nanos
from tests.gateway import OpenGateway, RunningGateway, caller_with

REQUEST = Request(task="chat", model="lab/chat", values={})


async def reserve(running: RunningGateway, amount: int, **caller: Any) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller))
    return await running.gateway.chat_settlement.reserve(call, REQUEST, Nanos(amount), None)


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
