"""Budgets for values of labels: what they refuse, what counts against them, and the alerts."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from penstock.accounts import limits
from penstock.accounts.alerts import Alerts
from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.label_budgets import list_budgets, remove_budget, set_budget
from penstock.accounts.labels import declare
from penstock.accounts.limits import next_month_ms
from penstock.accounts.requests import RequestEnd
from penstock.chat.endpoint import complete_chat
from penstock.errors import BudgetReached, InvalidRequest, NotFound, Problem
from penstock.schema import Caller, DeclaredLabel, Request
from penstock.settings import Settings
from penstock.store.base import Transaction
from penstock.values import Nanos, nanos
from tests.gateway import OpenGateway, RunningGateway, postgres_only

CUSTOMER = DeclaredLabel("customer", budget=True)


async def budgeted(running: RunningGateway, value: str, usd: str, **options: Any) -> Caller:
    """A caller whose organization has a budget for a value."""
    await declare(running.gateway.store, running.clock, running.caller.org_id, (CUSTOMER, DeclaredLabel("plain")))
    await set_budget(
        running.gateway.store, running.clock, running.caller.org_id, "customer", value, nanos(usd), **options
    )
    return await running.create_caller()


async def spend(running: RunningGateway, caller: Caller, customer: str, seconds: int) -> str:
    """Make a video; a second costs 0.10 USD. Return its end or the code of the refusal."""
    try:
        video = await running.video(caller=caller, seconds=seconds, labels={"customer": customer})
    except BudgetReached as problem:
        return problem.code if problem.label == ("customer", customer) else "another budget"
    return str((await running.wait_for_request(video.json["id"]))["status"])


async def test_a_value_with_its_own_budget_and_the_others_with_that_for_each(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "*", "0.50")
        await set_budget(running.gateway.store, running.clock, caller.org_id, "customer", "acme", nanos("1"))
        assert await spend(running, caller, "acme", 8) == "completed"
        assert await spend(running, caller, "other", 4) == "completed"
        assert await spend(running, caller, "other", 4) == "RATE_LIMITED"
        assert await spend(running, caller, "acme", 4) == "RATE_LIMITED"
        assert await spend(running, caller, "third", 4) == "completed", "each value has its own"
        running.clock.advance((next_month_ms(running.clock.now_ms()) - running.clock.now_ms()) / 1000)
        assert await spend(running, caller, "acme", 4) == "completed", "a new month"


async def test_the_error_says_which_label_and_until_when(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "acme", "0.10")
        with pytest.raises(BudgetReached) as caught:
            await running.video(caller=caller, seconds=4, labels={"customer": "acme"})
        assert "The label `customer` with the value `acme` is limited to 0.1 USD per month" in caught.value.message
        assert caught.value.status == 429
        assert int(caught.value.headers["retry-after"]) > 0


async def test_what_runs_counts_with_all_that_is_held_for_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "acme", "1.00")
        calls = [running.video(caller=caller, seconds=4, labels={"customer": "acme"}) for _ in range(6)]
        made = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(each, BudgetReached) for each in made) == 4, "0.40 each: two fit"
        await running.wait_until_idle()


async def test_chats_count_too(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "acme", "0.0003")
        codes = []
        for _ in range(40):
            body = {
                "model": "lab/chat",
                "messages": [{"role": "user", "content": "Hello"}],
                "max_tokens": 10,
                "labels": {"customer": "acme"},
            }
            try:
                await complete_chat(running.gateway, running.call(body, caller=caller))
            except Problem as problem:
                codes.append(problem.code)
        await running.gateway.chat_settlement.catch_up(caller.org_id)
        [row] = await running.rows("SELECT spent FROM label_spend")
        [total] = await running.rows("SELECT SUM(cost) AS cost FROM requests")
        assert set(codes) <= {"RATE_LIMITED"}
        assert 0 < row["spent"] == total["cost"] <= nanos("0.0003")


async def reserve(running: RunningGateway, caller: Caller, customer: str, amount: int = 1000) -> Reservation:
    call = running.call({}, endpoint="/chat", caller=caller)
    request = Request(task="chat", model="lab/chat", values={}, labels={"customer": customer})
    return await running.gateway.chat_reservations.reserve(call, request, Nanos(amount), None)


async def settle(running: RunningGateway, reservations: Iterable[Reservation]) -> None:
    for reservation in reservations:
        end = RequestEnd("completed", reservation.amount, 5, 10)
        running.gateway.chat_settlement.settle_later(reservation, end)
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)


async def test_only_calls_with_a_budgeted_value_are_held_for_one_by_one(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "acme", "1.00")
        assert caller.budgeted_labels == {("customer", "acme")}
        assert [caller.is_counted(labels) for labels in ({}, {"customer": "other"}, {"plain": "acme"})] == [False] * 3
        assert caller.is_counted({"plain": "x", "customer": "acme"})
        checks: list[str] = []

        async def check(tx: Transaction, caller: Caller, labels: Mapping[str, str], now_ms: int) -> None:
            checks.append(labels["customer"])

        monkeypatch.setattr(limits, "check_budgets", check)
        for customer, count in (("other", 0), ("acme", 5)):
            found = await asyncio.gather(*(reserve(running, caller, customer) for _ in range(5)))
            assert found[0].in_store is (customer == "acme" or running.gateway.store.dialect == "postgres")
            await settle(running, found)
            assert len(checks) == count


async def test_the_budget_for_each_or_very_many_budgets_count_for_every_value(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "*", "1.00")
        assert [caller.is_counted({name: "anybody"}) for name in ("customer", "plain")] == [True, False]
        await remove_budget(running.gateway.store, running.clock, caller.org_id, "customer", "*")
        rows = [
            {
                "org_id": caller.org_id,
                "name": "customer",
                "value": f"{n:03}",
                "nanos_per_month": 5,
                "alert_percents": "[]",
            }
            for n in range(201)
        ]
        await running.gateway.store.write(lambda tx: tx.put_many("set_label_budget", rows[:200]))
        caller = await running.create_caller()
        assert [caller.is_counted({"customer": value}) for value in ("199", "200")] == [True, False]
        await running.gateway.store.write(lambda tx: tx.put_many("set_label_budget", rows[200:]))
        caller = await running.create_caller()
        assert [caller.is_counted({name: "anybody"}) for name in ("customer", "plain")] == [True, False]


async def test_a_budget_counts_only_while_its_label_is_declared_with_budgets(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "acme", "0.10")
        await declare(running.gateway.store, running.clock, caller.org_id, (DeclaredLabel("customer"),))
        caller = await running.create_caller()
        assert not caller.is_counted({"customer": "acme"})
        assert await spend(running, caller, "acme", 4) == "completed"


@postgres_only
async def test_two_servers_together_never_pass_a_budget(open_gateway: OpenGateway) -> None:
    """The budget is set at one of them, while the other has the key in its memory: a second later both know it."""
    async with open_gateway() as first, open_gateway() as second:
        await declare(first.gateway.store, first.clock, first.caller.org_id, (CUSTOMER,))
        key = (await first.gateway.keys.create_key(first.caller.org_id)).key
        callers = [await running.gateway.keys.authenticate(f"Bearer {key}") for running in (first, second)]
        assert [caller.is_counted({"customer": "acme"}) for caller in callers] == [False, False]
        await set_budget(first.gateway.store, first.clock, first.caller.org_id, "customer", "acme", Nanos(10_000))
        for running in (first, second):
            running.clock.advance(1)
        callers = [await running.gateway.keys.authenticate(f"Bearer {key}") for running in (first, second)]
        calls = [
            reserve(running, caller, "acme")
            for running, caller in zip((first, second), callers, strict=True)
            for _ in range(12)
        ]
        found = await asyncio.gather(*calls, return_exceptions=True)
        held = [each for each in found if isinstance(each, Reservation)]
        assert len(held) == 10
        assert {type(each) for each in found} == {Reservation, BudgetReached}
        await settle(first, held)
        [row] = await first.rows("SELECT spent FROM label_spend")
        assert row["spent"] == 10_000


async def test_alerts_name_the_label_once_per_percentage(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "acme", "1.00", percents=[50, 80, 100])
        settings = Settings(alert_url="https://ops.example.com/alerts", alert_balance_usd="0")
        alerts = Alerts(running.gateway.store, running.clock, settings, lambda: None)
        await spend(running, caller, "acme", 4)
        assert await alerts.check() == 0
        await spend(running, caller, "acme", 1)
        assert [await alerts.check(), await alerts.check()] == [1, 0]
        running.clock.advance(1)
        await alerts.note_refusal(caller.org_id, ("customer", "acme"))
        await alerts.note_refusal(caller.org_id, ("customer", "acme"))
        rows = await running.rows("SELECT body FROM messages WHERE org_id = 'operator' ORDER BY id")
        told = [json.loads(bytes(row["body"])) for row in rows]
        assert [message["type"] for message in told] == ["budget.reached"] * 2
        assert [message["data"]["percent"] for message in told] == [50, 100]
        assert told[0]["data"]["label"] == {"name": "customer", "value": "acme"}


async def test_only_declared_labels_with_budgets_have_them(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await budgeted(running, "acme", "1.00")
        store = running.gateway.store
        for name, value, percents in (
            ("plain", "a", [80]),
            ("customer", "a", [0]),
            ("customer", "a", [101]),
            ("customer", "a", [True]),
            ("customer", "a", list(range(1, 8))),
        ):
            with pytest.raises(InvalidRequest):
                await set_budget(store, running.clock, caller.org_id, name, value, nanos("1"), percents)
        with pytest.raises(NotFound):
            await set_budget(store, running.clock, caller.org_id, "nothing", "a", nanos("1"))
        [budget] = await list_budgets(store, caller.org_id, running.clock.now_ms())
        assert budget.record()["alert_percents"] == [80, 100]
        await remove_budget(store, running.clock, caller.org_id, "customer", "acme")
        with pytest.raises(NotFound):
            await remove_budget(store, running.clock, caller.org_id, "customer", "acme")
