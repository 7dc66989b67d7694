"""Generations that are accepted at the same moment share a transaction, and fail each for itself."""

import asyncio
from collections import Counter

import pytest

from penstock.errors import InsufficientBalance
from penstock.values import nanos
from tests.databases import COMMIT_OF_A_GROUP, watch_round_trips
from tests.gateway import OpenGateway, postgres_only

IMAGES = 20


@postgres_only
async def test_an_image_costs_four_round_trips_and_many_at_once_share_them(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        await running.image()
        round_trips = watch_round_trips(monkeypatch)
        await running.image()
        assert round_trips == [
            ["begin", "limit_locks", "add_request", "add_generation", "add_attempt", "add_transfer", "hold_amount"],
            [*COMMIT_OF_A_GROUP],
            ["begin", "limit_locks", "complete_generation", "set_attempt", "add_media", "end_generation_request"],
            ["add_usage", "add_transfer", "end_hold", *COMMIT_OF_A_GROUP],
        ]
        round_trips.clear()
        await asyncio.gather(*(running.image() for _ in range(IMAGES)))
        sent = Counter(name for names in round_trips for name in names)
        # The first is accepted at once, those that come meanwhile together.
        for name in ("add_request", "add_generation", "add_attempt", "hold_unseen", "end_hold"):
            assert 0 < sent[name] < IMAGES / 2, name
        # While the balance is locked, nothing waits for the gateway.
        assert all("commit" in names for names in round_trips if {"hold_unseen", "end_hold"} & {*names})
        assert sent["complete_generation"] == sent["end_generation_request"] == IMAGES
        assert len(round_trips) < 2 * IMAGES


@postgres_only
async def test_images_of_several_organizations_share_transactions(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        callers = [running.caller, await running.create_caller_in_new_org(), await running.create_caller_in_new_org()]
        poor = await running.create_caller_in_new_org("0.05")  # an image is 0.04
        for caller in (*callers, poor):  # the first call of each would wait for what is stored to be added up
            await running.gateway.quota.check(caller.org_id)
        round_trips = watch_round_trips(monkeypatch)
        images = [running.image(caller=caller) for _ in range(4) for caller in (*callers, poor)]
        outcomes = await asyncio.gather(*images, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert [type(problem) for problem in refused] == [InsufficientBalance] * 3
        assert await running.money(poor.org_id) == (nanos("0.01"), 0)
        for caller in callers[1:]:
            assert await running.money(caller.org_id) == (nanos("10") - 4 * nanos("0.04"), 0)
        assert any(names.count("hold_unseen") == 4 for names in round_trips), (
            "of four organizations, in the order of ids"
        )
        assert any(names.count("end_hold") > 1 for names in round_trips)


async def test_of_a_group_as_many_are_accepted_as_can_be_paid_for(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller_in_new_org("0.13")  # an image is 0.04
        outcomes = await asyncio.gather(*(running.image(caller=caller) for _ in range(9)), return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert [type(problem) for problem in refused] == [InsufficientBalance] * 6
        assert {problem.message for problem in refused if isinstance(problem, InsufficientBalance)} == {
            "This request may cost up to 0.04 USD and 0.01 USD are available."
        }, "each is told about itself"
        assert await running.money(caller.org_id) == (nanos("0.01"), 0)


async def test_a_cancelled_caller_does_not_take_others_with_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        calls = [asyncio.create_task(running.image(prompt=f"pear {number}")) for number in range(5)]
        while not running.gateway.acceptances._groups._shared:  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(0)
        calls[0].cancel()  # its transaction is under way, and the others wait for it
        calls[3].cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [
            True,
            False,
            False,
            True,
            False,
        ]
        await running.wait_until_idle()
        completed = [record for record in await running.records() if record["status"] == "completed"]
        assert len(completed) == 3
        # The first may have been accepted: nobody runs it until its lease has expired, and then nobody pays.
        for record in await running.records():
            await running.wait_for_request(record["id"])
        assert await running.money() == (nanos("10") - 3 * nanos("0.04"), 0)
