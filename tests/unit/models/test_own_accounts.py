"""Accounts that organizations bring: who pays what, who may use and see them, and that nothing gets to others."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from penstock.chat.endpoint import complete_chat
from penstock.errors import Conflict, InvalidRequest, ModelDisabled, NotFound, Problem
from penstock.models.own_accounts import with_fee
from penstock.providers.spec import Price
from penstock.schema import Caller
from penstock.values import OrgId
from tests.fake_providers import faults
from tests.fake_providers.scripted import IMAGE_USD, KEY
from tests.gateway import OpenGateway, RunningGateway, two_providers

THEIRS = "sk-theirs-canary-0000000000"
OTHERS = "sk-others-canary-0000000000"
SHARED = "sk-shared-canary-0000000000"
ALL = {KEY: "env", THEIRS: "theirs", OTHERS: "others", SHARED: "shared"}
NANOS = 10**9


async def bring(running: RunningGateway, caller: Caller, credential: str = THEIRS, **options: Any) -> str:
    running.lab.accounts = dict(ALL)
    account = await running.gateway.vendor_accounts.add("lab", credential, options, caller.org_id)
    return str(account["id"])


def used(running: RunningGateway) -> list[str | None]:
    return [running.lab.account_of(request) for request in running.lab.images.received]


async def chat(running: RunningGateway, caller: Caller) -> None:
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 50}
    call = running.call(body, endpoint="/compat/v1/chat/completions", caller=caller)
    await complete_chat(running.gateway, call)


async def ended(running: RunningGateway, caller: Caller, request_id: str) -> Any:
    """The row of a request of a caller, once it has ended."""

    async def met() -> bool:
        row = await running.gateway.requests.get(caller.org_id, request_id)
        return row is not None and not row.is_open

    await running.wait_until(met)
    return await running.gateway.requests.get(caller.org_id, request_id)


async def of_account(running: RunningGateway, account: str) -> list[dict[str, Any]]:
    rows = await running.rows("SELECT id, kind, cost, hold, vendor_cost, account_id FROM requests ORDER BY id")
    return [row for row in rows if row["account_id"] == account]


async def test_a_fee_is_a_part_of_each_price(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        model = running.gateway.catalog.find("image-1", ("image",)).candidates[0].model
    price = Price(unit="image", usd="0.04", input_usd="0.01", other_usd={"cached": "0.002"}, least_usd="0.05")
    [part] = with_fee(replace(model, prices=(price,)), 5).prices
    assert [Decimal(usd) for usd in (part.usd, part.input_usd, part.other_usd["cached"], part.least_usd)] == [
        Decimal("0.002"),
        Decimal("0.0005"),
        Decimal("0.0001"),
        Decimal("0.0025"),
    ]
    assert Decimal(with_fee(model, 0).prices[0].usd) == 0


async def test_calls_by_an_own_account_need_no_balance_and_cost_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway(own_accounts=("lab",)) as running:
        caller = await running.create_caller_in_new_org("0")
        account = await bring(running, caller)
        image = await running.image(caller=caller)
        await chat(running, caller)
        video = await running.video(caller=caller)
        await ended(running, caller, video.json["id"])
        assert image["data"]
        rows = await of_account(running, account)
        assert {row["kind"] for row in rows} == {"image", "chat", "video"}
        assert {(row["cost"], row["hold"]) for row in rows} == {(0, 0)}
        prices = {row["kind"]: row["vendor_cost"] for row in rows}
        assert prices["image"] == IMAGE_USD * NANOS
        assert min(prices.values()) > 0
        await running.gateway.vendor_accounts.refresh()
        spent = await running.rows("SELECT SUM(spent) AS spent FROM account_spend")
        assert spent[0]["spent"] == sum(prices.values()), "what the vendor bills counts against the account's dollars"


async def test_the_operator_may_take_a_fee(open_gateway: OpenGateway) -> None:
    async with open_gateway(own_accounts=("*",), own_account_fee_percent=10) as running:
        caller = await running.create_caller_in_new_org("10")
        account = await bring(running, caller)
        await running.image(caller=caller)
        await running.gateway.vendor_accounts.change(account, {"fee_percent": 50})
        await running.image(caller=caller, prompt="again")
        rows = sorted(await of_account(running, account), key=lambda row: int(row["cost"]))
        assert [row["cost"] for row in rows] == [IMAGE_USD * NANOS / 10, IMAGE_USD * NANOS / 2]
        assert [row["hold"] for row in rows] == [row["cost"] for row in rows]


async def test_what_an_own_account_loses_is_not_the_operators_loss(open_gateway: OpenGateway) -> None:
    async with open_gateway(own_accounts=("lab",), own_account_fee_percent=10) as running:
        caller = await running.create_caller_in_new_org("10")
        await bring(running, caller)
        running.lab.contents.always(faults.broken)
        video = await running.video(caller=caller)
        running.clock.advance(100_000)
        row = await ended(running, caller, video.json["id"])
        assert (row.status, row.cost) == ("upstream_failure", 0)
        assert await running.rows("SELECT kind FROM transfers WHERE kind = 'loss'") == []


async def test_nobody_else_uses_it_and_its_owner_uses_no_other_unless_it_says_so(open_gateway: OpenGateway) -> None:
    async with open_gateway(own_accounts=("lab",)) as running:
        caller = await running.create_caller_in_new_org("10")
        account = await bring(running, caller, priority=9)
        await running.gateway.vendor_accounts.add("lab", SHARED, {})
        for number in range(6):
            await running.image(caller=caller, prompt=str(number))
        assert used(running) == ["theirs"] * 6
        for number in range(8):
            await running.image(prompt=f"of another organization {number}")
        assert set(used(running)[6:]) == {"env", "shared"}
        del running.lab.accounts[THEIRS]
        with pytest.raises(Problem):
            await running.image(caller=caller, prompt="revoked")
        assert used(running)[14:] == [None], "the operator's money is not spent silently"
        await running.gateway.vendor_accounts.change(account, {"fallback_to_shared": True})
        await running.image(caller=caller, prompt="allowed")
        assert used(running)[-1] in ("env", "shared")
        rows = await running.rows("SELECT org_id, cost FROM requests")
        cost = sum(row["cost"] for row in rows if row["org_id"] == caller.org_id)
        assert cost == IMAGE_USD * NANOS, "only the last image was charged"


async def test_an_own_account_whose_dollars_are_used_up_is_not_replaced_silently(open_gateway: OpenGateway) -> None:
    async with open_gateway(own_accounts=("lab",)) as running:
        caller = await running.create_caller_in_new_org("10")
        await bring(running, caller, usd_per_month=0.01)
        await running.image(caller=caller)
        running.clock.advance(10)
        await running.gateway.vendor_accounts.refresh()
        with pytest.raises(ModelDisabled):
            await running.image(caller=caller, prompt="too much")
        assert used(running) == ["theirs"]


async def test_a_job_of_an_own_account_stays_with_it_at_the_fee_of_its_start(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        labs[0].states = ("queued", *["in_progress 50"] * 5, "completed")
        async with open_gateway(labs=labs, own_accounts=("lab",)) as running:
            caller = await running.create_caller_in_new_org("10")
            account = await bring(running, caller, fee_percent=10)
            video = await running.video(caller=caller)
            await running.gateway.vendor_accounts.change(account, {"fee_percent": 100})
        async with open_gateway(labs=labs, own_accounts=("lab",)) as running:
            row = await ended(running, caller, video.json["id"])
            assert (row.status, row.cost, row.account_id) == ("completed", row.hold, account)
            assert row.cost * 10 == row.vendor_cost
        assert labs[0].foreign_calls == []


async def test_only_where_the_operator_allows_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest, match="does not take accounts"):
            await bring(running, running.caller)
    async with open_gateway(own_accounts=("lab",)) as running:
        with pytest.raises(InvalidRequest, match="does not take accounts"):
            await running.gateway.vendor_accounts.add("fal", THEIRS, {}, running.caller.org_id)


async def test_an_organization_can_neither_see_nor_change_accounts_of_others(open_gateway: OpenGateway) -> None:
    async with open_gateway(own_accounts=("lab",)) as running:
        accounts = running.gateway.vendor_accounts
        caller = await running.create_caller_in_new_org("10")
        other = (await running.create_caller_in_new_org("10")).org_id
        account = await bring(running, caller)
        shared = (await accounts.add("lab", SHARED, {}))["id"]
        assert [record["id"] for record in accounts.list_records(caller.org_id)] == [account]
        assert accounts.list_records(other) == []
        assert accounts.names(other) == {}
        for hidden in (account, shared):
            with pytest.raises(NotFound):
                accounts.get_record(hidden, other)
            with pytest.raises(NotFound):
                await accounts.change(hidden, {"weight": 2}, other)
            with pytest.raises(NotFound):
                await accounts.rotate(hidden, OTHERS, other)
            with pytest.raises(NotFound):
                await accounts.delete(hidden, drain=True, owner=other)
        rows = await running.rows("SELECT status, weight, version FROM accounts")
        assert {(row["status"], row["weight"], row["version"]) for row in rows} == {("on", 1, 1)}
        with pytest.raises(Conflict) as caught:
            await accounts.add("lab", THEIRS, {}, other)
        assert caller.org_id not in caught.value.message
        assert account not in caught.value.message
        assert await running.tables_with(THEIRS) == []
        nobody = OrgId("org_nobody")
        found = running.gateway.catalog.find("image-1", ("image",)).candidates
        ids = {candidate.account_id for candidate in accounts.expand(found, nobody)}
        assert ids == {"", shared}


async def test_models_are_listed_by_the_settings_and_not_by_who_has_an_account(open_gateway: OpenGateway) -> None:
    async with open_gateway(own_accounts=("fal",)) as running:
        before = set(running.gateway.catalog.providers.active)
        assert "fal" in before
        caller = await running.create_caller_in_new_org("10")
        with pytest.raises(ModelDisabled) as without:
            await running.image(caller=caller, model="fal/fal-ai/flux/dev")
        await running.gateway.vendor_accounts.add("fal", OTHERS, {}, running.caller.org_id)
        assert set(running.gateway.catalog.providers.active) == before
        with pytest.raises(ModelDisabled) as with_others:
            await running.image(caller=caller, model="fal/fal-ai/flux/dev")
        assert with_others.value.message == without.value.message
