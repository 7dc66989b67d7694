"""A chat that ends after another process took its own for dead is a loss that the books and the log show."""

import pytest
from structlog.testing import capture_logs

from penstock.accounts.chat_leases import ChatLeases
from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.requests import RequestEnd
from penstock.schema import Request
from penstock.values import ZERO, Nanos
from tests.gateway import OpenGateway, RunningGateway, caller_with
from tests.manual_clock import SetClock

REQUEST = Request(task="chat", model="lab/chat", values={})


async def reserve(running: RunningGateway) -> Reservation:
    caller = caller_with(running.caller, concurrent_requests=5)  # so that it is a hold on SQLite too
    call = running.call({}, endpoint="/chat", caller=caller)
    return await running.gateway.chat_reservations.reserve(call, REQUEST, Nanos(1_000_000), None)


async def take_for_dead(running: RunningGateway) -> None:
    """Let the lease of this process expire, and another process end its calls."""
    store = running.gateway.store
    await ChatLeases(store, running.clock, running.gateway.chat_reservations.process_id, 30.0).renew()
    running.clock.advance(31)
    leases = ChatLeases(store, running.clock, "prc_other", 30.0)
    assert await leases.end_calls_of_dead_processes() > 0


async def losses(running: RunningGateway) -> dict[str, int]:
    rows = await running.rows("SELECT ref, amount FROM transfers WHERE kind = 'loss'")
    return {row["ref"]: row["amount"] for row in rows}


@pytest.mark.parametrize(
    ("end", "loss", "lost"),
    [
        (RequestEnd("completed", Nanos(1000), 5, 10), ZERO, 1000),
        (RequestEnd("completed", Nanos(1000), 5, 10), Nanos(70), 1070),
        (RequestEnd("upstream_failure"), Nanos(70), 70),
        (RequestEnd("upstream_failure"), ZERO, None),
        (RequestEnd("completed"), ZERO, None),
    ],
)
async def test_what_the_provider_bills_is_a_loss(
    open_gateway: OpenGateway, end: RequestEnd, loss: Nanos, lost: int | None
) -> None:
    async with open_gateway(works=False) as running:
        settlement = running.gateway.chat_settlement
        before = await running.money()
        taken, other = await reserve(running), await reserve(running)
        await take_for_dead(running)
        kept = await reserve(running)
        with capture_logs() as logs:
            settlement.settle_later(taken, end, loss=loss)
            settlement.settle_later(kept, RequestEnd("completed", Nanos(500), 5, 10))
            await settlement.catch_up(running.caller.org_id)
            settlement.settle_later(taken, end, loss=loss)  # as after a commit that was not confirmed
            await settlement.catch_up(running.caller.org_id)
        expected = {} if lost is None else {taken.call.id: lost}
        assert await losses(running) == expected
        assert await running.money() == (before[0] - 500, 0)
        said = {entry["request_id"]: entry["loss_nanos"] for entry in logs if "taken for dead" in entry["event"]}
        assert said == expected
        records = {record["id"]: (record["status"], record["cost"]) for record in await running.records()}
        assert records[taken.call.id] == records[other.call.id] == ("upstream_failure", 0)
        assert records[kept.call.id] == ("completed", 500)


async def test_a_commit_that_was_not_confirmed_is_no_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        settlement = running.gateway.chat_settlement
        charged, failed = await reserve(running), await reserve(running)
        for _ in range(2):
            settlement.settle_later(charged, RequestEnd("completed", Nanos(1000), 5, 10), loss=Nanos(70))
            settlement.settle_later(failed, RequestEnd("upstream_failure"), loss=Nanos(30))
            await settlement.catch_up(running.caller.org_id)
        assert await losses(running) == {charged.call.id: 70, failed.call.id: 30}


async def test_a_process_whose_clock_is_ahead_ends_no_calls_of_others(open_gateway: OpenGateway) -> None:
    """On SQLite the clocks are those of one machine."""
    async with open_gateway(works=False) as running:
        store = running.gateway.store
        ahead = 0.0 if store.dialect == "sqlite" else 90.0
        own = ChatLeases(store, SetClock(0), running.gateway.chat_reservations.process_id, 30.0)
        await own.renew()
        call_id = (await reserve(running)).call.id
        other = ChatLeases(store, SetClock(ahead), "prc_ahead", 30.0)
        await other.renew()
        assert await other.end_calls_of_dead_processes() == 0
        assert await own.end_calls_of_dead_processes() == 0
        assert (await running.record(call_id))["status"] == "processing"
        behind = ChatLeases(store, SetClock(-ahead), "prc_behind", 30.0)
        await behind.renew()
        assert await own.end_calls_of_dead_processes() == 0
