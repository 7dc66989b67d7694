"""Chat reservations: money is reserved before a call, and nothing else can spend it."""

from typing import Any

import pytest

from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.requests import RequestEnd
from penstock.errors import InsufficientBalance, RateLimited, StorageUnavailable
from penstock.schema import Request
from penstock.values import Nanos
from tests.gateway import OpenGateway, RunningGateway, caller_with, sqlite_only

REQUEST = Request(task="chat", model="lab/chat", values={})


async def reserve(running: RunningGateway, amount: int, **caller: Any) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller))
    return await running.gateway.chat_reservations.reserve(call, REQUEST, Nanos(amount), None)


async def settle(running: RunningGateway, reservation: Reservation, cost: int, status: str = "completed") -> None:
    running.gateway.chat_settlement.settle_later(reservation, RequestEnd(status, Nanos(cost), 5, 10))
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)


async def test_reserved_money_cannot_be_reserved_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as running:
        first = await reserve(running, 600_000_000)
        with pytest.raises(InsufficientBalance) as caught:
            await reserve(running, 600_000_000)
        assert "0.6" in caught.value.message
        assert "0.4" in caught.value.message
        await settle(running, first, 100_000_000)
        second = await reserve(running, 600_000_000)
        await settle(running, second, 0, "upstream_failure")
        assert await running.money() == (900_000_000, 0)


async def test_images_and_chats_do_not_spend_the_same_money(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.05") as running:
        reservation = await reserve(running, 20_000_000)
        with pytest.raises(InsufficientBalance):
            await running.image()
        await settle(running, reservation, 0, "upstream_failure")
        await running.image()
        with pytest.raises(InsufficientBalance):
            await reserve(running, 20_000_000)


@sqlite_only
async def test_a_balance_that_was_just_read_knows_what_was_spent_since_and_what_is_being_held(
    open_gateway: OpenGateway,
) -> None:
    """A balance is read once a second at most, so until then it is kept up to date in memory."""
    async with open_gateway(starting_credit_usd="1") as running:
        reservations = running.gateway.chat_reservations
        ended = await reserve(running, 600_000_000)
        reservations.end(ended, Nanos(600_000_000))  # not written yet
        balance = reservations._balances[running.caller.org_id]
        assert balance.free == 400_000_000
        with reservations.holding(running.caller.org_id, Nanos(300_000_000)):
            assert balance.free == 100_000_000
            with pytest.raises(InsufficientBalance, match=r"0\.1 USD are available"):
                await reserve(running, 200_000_000)
        reservations.forget(running.caller.org_id, [ended.call.id])


@sqlite_only
async def test_money_is_reserved_at_once_only_if_nothing_has_to_be_read_or_written(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="1") as running:
        reservations = running.gateway.chat_reservations

        def reserve_at_once(amount: int, **caller: Any) -> Reservation | None:
            call = running.call({}, endpoint="/chat", caller=caller_with(running.caller, **caller))
            return reservations.reserve_at_once(call, REQUEST, Nanos(amount), None)

        assert reserve_at_once(1) is None, "the balance is not known yet"
        first = await reserve(running, 300_000_000)
        second = reserve_at_once(300_000_000)
        assert second is not None
        assert not second.in_store
        assert reserve_at_once(500_000_000) is None, "the balance is too low"
        assert reserve_at_once(1, requests_per_minute=5) is None, "its calls are counted in the store"
        free = reserve_at_once(10**12, prepaid=False)
        assert free is not None
        reservations.is_blocked = True
        assert reserve_at_once(1) is None
        reservations.is_blocked = False
        running.clock.advance(2)
        assert reserve_at_once(1) is None, "the balance was read too long ago"
        for reservation in (first, second, free):
            await settle(running, reservation, 0, "upstream_failure")
        assert await running.money() == (1_000_000_000, 0)


@sqlite_only
async def test_calls_are_refused_while_the_store_cannot_be_written(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.gateway.chat_reservations.is_blocked = True
        with pytest.raises(StorageUnavailable) as caught:
            await reserve(running, 1)
        assert caught.value.should_retry is True
        running.gateway.chat_reservations.is_blocked = False


async def test_calls_of_limited_keys_are_held_in_the_store(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        reservation = await reserve(running, 1_000_000, concurrent_requests=1)
        assert reservation.in_store
        with pytest.raises(RateLimited):
            await reserve(running, 1_000_000, concurrent_requests=1)
        await settle(running, reservation, 1000)
        again = await reserve(running, 1_000_000, concurrent_requests=1)
        await settle(running, again, 0, "upstream_failure")


@sqlite_only
async def test_postpaid_organizations_need_no_balance(open_gateway: OpenGateway) -> None:
    async with open_gateway(billing="postpaid", starting_credit_usd="0") as running:
        reservation = await reserve(running, 5_000_000)
        await settle(running, reservation, 5_000_000)
        assert await running.money() == (-5_000_000, 0)
