"""Holds of many chat calls at once on Postgres: few transactions, each call held or refused by itself, exact sums."""

import asyncio
import random
from typing import Any

import pytest

from penstock.accounts.audit import audit
from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.requests import RequestEnd
from penstock.errors import InsufficientBalance, RateLimited, StorageUnavailable
from penstock.schema import Request
from penstock.store.base import ConstraintViolated
from penstock.values import Nanos
from tests.gateway import OpenGateway, RunningGateway, caller_with, postgres_only

REQUEST = Request(task="chat", model="lab/chat", values={})
CREDIT = 1_000_000_000


async def reserve(running: RunningGateway, amount: int, **caller: Any) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller))
    return await running.gateway.chat_reservations.reserve(call, REQUEST, Nanos(amount), None)


async def reserve_all(running: RunningGateway, amounts: list[int], **caller: Any) -> list[Reservation | BaseException]:
    return await asyncio.gather(*(reserve(running, amount, **caller) for amount in amounts), return_exceptions=True)


async def settle_all(running: RunningGateway, reservations: list[Reservation], costs: list[int]) -> None:
    for reservation, cost in zip(reservations, costs, strict=True):
        status = "completed" if cost else "upstream_failure"
        running.gateway.chat_settlement.settle_later(reservation, RequestEnd(status, Nanos(cost), 5, 10))
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)


async def breaches(running: RunningGateway) -> list[str]:
    gateway = running.gateway
    return await audit(gateway.store, gateway.media._storage, gateway.clock)


@postgres_only
async def test_calls_that_come_at_once_share_transactions(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1", works=False) as running:
        before = running.gateway.store.timing.count
        found = await reserve_all(running, [1_000_000] * 150)
        assert all(isinstance(reservation, Reservation) for reservation in found)
        assert running.gateway.store.timing.count - before <= 3  # the first alone, all others after it
        assert await running.money() == (CREDIT - 150_000_000, 150_000_000)
        await settle_all(running, [item for item in found if isinstance(item, Reservation)], [1000] * 150)
        assert await running.money() == (CREDIT - 150_000, 0)
        assert not await breaches(running)


@postgres_only
async def test_a_call_that_is_too_dear_does_not_fail_its_neighbours(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as running:
        found = await reserve_all(running, [100, 200, 2 * CREDIT, 300, 0, 400])
        assert [isinstance(item, InsufficientBalance) for item in found] == [False, False, True, False, False, False]
        assert await running.money() == (CREDIT - 1000, 1000)
        refused = str(found[2])
        assert "may cost up to 2" in refused
        assert not await breaches(running)


@postgres_only
async def test_a_call_that_cannot_be_written_does_not_fail_its_neighbours(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as running:
        call = running.call({}, endpoint="/chat", caller=running.caller)
        reservations = running.gateway.chat_reservations
        twice = [reservations.reserve(call, REQUEST, Nanos(5), None) for _ in range(2)]
        first, second, *others = await asyncio.gather(
            *twice, *(reserve(running, 7) for _ in range(5)), return_exceptions=True
        )
        assert isinstance(first, Reservation)
        assert isinstance(second, ConstraintViolated)
        assert all(isinstance(other, Reservation) for other in others)
        assert await running.money() == (CREDIT - 40, 40)


@postgres_only
async def test_every_call_of_a_batch_is_told_that_the_store_is_unavailable(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(starting_credit_usd="1") as running:

        async def fail(*_: Any, **__: Any) -> None:
            raise StorageUnavailable("Storage is unavailable: a test.")

        with monkeypatch.context() as patch:
            patch.setattr(running.gateway.store, "write", fail)
            found = await reserve_all(running, [5] * 10)
        assert {type(item) for item in found} == {StorageUnavailable}
        assert len({id(item) for item in found}) == 10, "each caller changes its own"
        assert all(item.should_retry for item in found if isinstance(item, StorageUnavailable))
        await reserve(running, 5)


@postgres_only
async def test_a_caller_that_is_gone_before_its_hold_is_written_holds_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as running:
        tasks = [asyncio.create_task(reserve(running, 5)) for _ in range(10)]
        await asyncio.sleep(0)  # all of them wait
        for task in tasks[5:]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(item, asyncio.CancelledError) for item in found] == [False] * 5 + [True] * 5
        assert await running.money() == (CREDIT - 25, 25)


@postgres_only
async def test_two_servers_never_hold_or_charge_more_than_there_is(open_gateway: OpenGateway) -> None:
    """Random amounts and costs on both at once. After each round: sums are exact, and nothing refused would have fitted
    into what was left at the end.
    """
    chance = random.Random(17)
    async with open_gateway(starting_credit_usd="1") as first, open_gateway() as second:
        available = CREDIT
        for _ in range(6):
            wanted = [[chance.randrange(available // 20 + 2) for _ in range(30)] for _ in range(2)]
            both = await asyncio.gather(reserve_all(first, wanted[0]), reserve_all(second, wanted[1]))
            accepted = [[item for item in found if isinstance(item, Reservation)] for found in both]
            held = sum(item.amount for found in accepted for item in found)
            assert await first.money() == (available - held, held)
            assert held <= available
            for amounts, found in zip(wanted, both, strict=True):
                refused = [pair for pair in zip(amounts, found, strict=True) if not isinstance(pair[1], Reservation)]
                assert {type(problem) for _, problem in refused} <= {InsufficientBalance}, refused
                assert all(amount > available - held for amount, _ in refused)
            costs = [[chance.choice([0, item.amount // 2, item.amount]) for item in found] for found in accepted]
            await asyncio.gather(settle_all(first, accepted[0], costs[0]), settle_all(second, accepted[1], costs[1]))
            available -= sum(map(sum, costs))
            assert await first.money() == (available, 0)
            assert not await breaches(first)


@postgres_only
async def test_limits_of_a_key_are_exact_with_two_servers(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as first, open_gateway() as second:
        limits: list[dict[str, int]] = [{"requests_per_minute": 7}, {"concurrent_requests": 9}]
        for limit in limits:
            both = await asyncio.gather(reserve_all(first, [5] * 12, **limit), reserve_all(second, [5] * 12, **limit))
            found = [item for part in both for item in part]
            assert sum(isinstance(item, Reservation) for item in found) == next(iter(limit.values()))
            assert all(isinstance(item, Reservation | RateLimited) for item in found), found
            for running, part in zip((first, second), both, strict=True):
                held = [item for item in part if isinstance(item, Reservation)]
                await settle_all(running, held, [0] * len(held))
            first.clock.advance(61)
