"""Alerts to the operator: once per budget, month and level, once per low balance, from any number of processes."""

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock.accounts import alerts as alerts_module
from penstock.accounts.alerts import Alerts
from penstock.accounts.limits import next_month_ms
from penstock.accounts.orgs import change_org
from penstock.errors import StorageUnavailable
from penstock.schema import Caller
from penstock.settings import Settings
from penstock.typed_config import Misconfigured
from penstock.values import OrgId, nanos
from penstock.webhooks.events import sign
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.webhook_receivers import Receiver

ALERT_URL = "https://ops.example.com/alerts"


def alerts_of(running: RunningGateway, **changes: Any) -> Alerts:
    """What another process of the same installation would use."""
    settings = Settings(**{"alert_url": ALERT_URL, "alert_balance_usd": "0", **changes})
    return Alerts(running.gateway.store, running.clock, settings, lambda: None)


async def stored(running: RunningGateway) -> list[dict[str, Any]]:
    rows = await running.rows("SELECT id, url, body FROM messages WHERE org_id = 'operator' ORDER BY id")
    return [json.loads(bytes(row["body"])) for row in rows]


async def spend(running: RunningGateway, caller: Caller, seconds: int) -> None:
    """Make a video; a second costs 0.10 USD."""
    video = await running.video(caller=caller, seconds=seconds)

    async def met() -> bool:
        return bool((await running.record(video.json["id"], caller))["status"] == "completed")

    await running.wait_until(met)


async def test_budgets_are_announced_at_80_and_100_percent_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller(usd_per_month="1.00", name="studio")
        alerts = alerts_of(running)
        await spend(running, caller, 7)
        assert await alerts.check() == 0, "70 percent"
        await spend(running, caller, 1)
        counts = await asyncio.gather(*[alerts_of(running).check() for _ in range(4)], alerts.check())
        assert sorted(counts) == [0, 0, 0, 0, 1], "several processes"
        [warning] = await stored(running)
        assert warning["type"] == "budget.reached"
        data = warning["data"]
        assert (data["object"], data["org_id"], data["org_name"]) == ("budget", caller.org_id, "default")
        assert (data["key_id"], data["key_name"]) == (caller.key_id, "studio")
        assert (data["percent"], data["usd_per_month"], data["spent"]) == (80, 1, 0.8)
        running.clock.advance(1)
        await spend(running, caller, 2)
        assert [await alerts.check(), await alerts_of(running).check()] == [1, 0]
        assert [each["data"]["percent"] for each in await stored(running)] == [80, 100]

        await running.gateway.keys.change_key(caller.org_id, caller.key_id, {"usd_per_month": "1.10"})
        assert await alerts.check() == 1, "another budget"
        running.clock.advance((next_month_ms(running.clock.now_ms()) - running.clock.now_ms()) / 1000)
        assert await alerts.check() == 0, "a new month"
        await spend(running, caller, 9)
        assert await alerts.check() == 1
        assert len({each["data"]["period"] for each in await stored(running)}) == 2


async def test_the_budget_of_an_organization_counts_all_its_keys(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        one = await running.create_caller_in_new_org()
        two = await running.create_caller(one.org_id)
        await change_org(running.gateway.store, running.clock, one.org_id, {"nanos_per_month": nanos("1")})
        for caller in (one, two):
            await spend(running, caller, 4)
        assert await alerts_of(running).check() == 1
        [alert] = await stored(running)
        assert (alert["data"]["org_id"], alert["data"]["key_id"], alert["data"]["percent"]) == (one.org_id, None, 80)


@sqlite_only
async def test_a_refused_call_shows_that_a_budget_is_used_up(open_gateway: OpenGateway) -> None:
    """The rest may be too small for any call, so 100 percent might never be spent."""
    async with open_gateway() as running:
        caller = await running.create_caller(usd_per_month="1.00")
        await spend(running, caller, 7)
        alerts = alerts_of(running)
        for process in (alerts, alerts, alerts_of(running)):
            await process.note_refusal(caller.key_id)
        assert [(each["data"]["percent"], each["data"]["spent"]) for each in await stored(running)] == [(100, 0.7)]
        await spend(running, caller, 2)
        assert await alerts.check() == 0, "no warning after the last one"


async def test_an_organization_causes_few_alerts_however_many_keys_it_creates(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor by changing the budget of a key again and again. Others, and the organization itself, are announced."""
    monkeypatch.setattr(alerts_module, "_KEY_ALERTS_MAX", 3)
    async with open_gateway() as running:
        alerts = alerts_of(running)
        org_id = running.caller.org_id
        for number in range(5):
            key = await running.create_caller(usd_per_month="0.01")
            await running.gateway.keys.change_key(org_id, key.key_id, {"usd_per_month": f"0.0{number + 1}"})
            await alerts.note_refusal(key.key_id)
            assert len(await stored(running)) == min(number + 1, 3)
        await change_org(running.gateway.store, running.clock, org_id, {"nanos_per_month": nanos("1")})
        await alerts.note_refusal(org_id)
        other = await running.create_caller_in_new_org()
        theirs = await running.create_caller(other.org_id, usd_per_month="0.01")
        await alerts.note_refusal(theirs.key_id)
        told = {(each["data"]["org_id"], each["data"]["key_id"]) for each in await stored(running)}
        assert len(told) == 5
        assert told >= {(org_id, None), (other.org_id, theirs.key_id)}


async def test_the_log_says_once_a_month_that_alerts_about_keys_are_dropped(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts_module, "_KEY_ALERTS_MAX", 2)
    async with open_gateway() as running:
        alerts = alerts_of(running)
        keys = [(await running.create_caller(usd_per_month="0.01")).key_id for _ in range(4)]

        async def dropped(alerts: Alerts, key_ids: list[str]) -> list[dict[str, Any]]:
            with capture_logs() as lines:
                for key_id in key_ids:
                    await alerts.note_refusal(key_id)
            return [dict(line) for line in lines if "dropped" in line["event"]]

        assert await dropped(alerts, keys[:2]) == []
        [line] = await dropped(alerts, keys[2:])
        assert (line["org_id"], line["limit"], line["log_level"]) == (running.caller.org_id, 2, "warning")
        assert await dropped(alerts_of(running), keys[:2]) == [], "those were sent, by another process"
        running.clock.advance((next_month_ms(running.clock.now_ms()) - running.clock.now_ms()) / 1000)
        assert len(await dropped(alerts, keys)) == 1


@sqlite_only
async def test_an_alert_that_cannot_be_stored_disturbs_nobody_and_is_tried_again(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller(usd_per_month="1.00")
        alerts = alerts_of(running)

        async def fail(*_: Any, **__: Any) -> Any:
            raise StorageUnavailable("away")

        with monkeypatch.context() as patched:
            patched.setattr(running.gateway.store, "write", fail)
            await alerts.note_refusal(caller.key_id)
        assert await stored(running) == []
        await alerts.note_refusal(caller.key_id)
        assert len(await stored(running)) == 1


async def test_a_low_balance_is_announced_once_for_each_credit(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller_in_new_org("1.00")
        alerts = alerts_of(running, alert_balance_usd="0.50")
        assert await alerts.check() == 0
        await spend(running, caller, 6)
        other = alerts_of(running, alert_balance_usd="0.50")
        assert [await alerts.check(), await alerts.check(), await other.check()] == [1, 0, 0]
        [alert] = await stored(running)
        assert (alert["type"], alert["data"]["object"]) == ("balance.low", "balance")
        assert (alert["data"]["org_id"], alert["data"]["available"]) == (caller.org_id, 0.4)
        running.clock.advance(1)
        await running.add_credit("1.00", caller.org_id)
        assert await alerts.check() == 0
        await spend(running, caller, 10)
        assert await alerts.check() == 1


@sqlite_only
async def test_alerts_are_delivered_signed_by_a_running_gateway(open_gateway: OpenGateway) -> None:
    async with open_gateway(alert_url=ALERT_URL, alert_balance_usd="11") as running:
        receiver = Receiver(running.clock, 204)
        running.gateway.sender._client = receiver

        async def met() -> bool:
            return bool(receiver.sent)

        await running.wait_until(met)
        [sent] = receiver.sent
        assert sent.url == ALERT_URL
        secret = await running.gateway.webhook_secrets.get_secret(OrgId("operator"))
        signature = sign(secret, sent.headers["webhook-id"], int(sent.headers["webhook-timestamp"]), sent.body)
        assert sent.headers["webhook-signature"] == signature
        assert json.loads(sent.body)["data"]["id"] == sent.headers["webhook-id"]


@sqlite_only
async def test_without_a_url_nothing_is_looked_for(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        alerts = alerts_of(running, alert_url="", alert_balance_usd="11")
        assert not alerts.is_on
        assert await alerts.check() == 0
        await alerts.note_refusal(running.caller.org_id)
        assert await stored(running) == []


@sqlite_only
async def test_a_bad_url_stops_the_start(open_gateway: OpenGateway) -> None:
    for url in ("http://ops.example.com/", "https://10.0.0.1/", "https://localhost/", "ops"):
        with pytest.raises(Misconfigured, match="alert_url"):
            async with open_gateway(alert_url=url):
                pass
