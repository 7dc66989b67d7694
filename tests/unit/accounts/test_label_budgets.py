"""Budgets for values of labels: what they refuse, what counts against them, and the alerts."""

import asyncio
import json
from typing import Any

import pytest

from penstock.accounts.alerts import Alerts
from penstock.accounts.label_budgets import list_budgets, remove_budget, set_budget
from penstock.accounts.labels import declare
from penstock.accounts.limits import next_month_ms
from penstock.chat.endpoint import complete_chat
from penstock.errors import BudgetReached, InvalidRequest, NotFound, Problem
from penstock.schema import Caller, DeclaredLabel
from penstock.settings import Settings
from penstock.values import nanos
from tests.gateway import OpenGateway, RunningGateway

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
