"""Accounts at vendors: which one a call uses, that a job stays with its own, and that no credential gets out."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.accounts.alerts import Alerts
from penstock.accounts.usage import Accounts, UsageFilters
from penstock.chat.endpoint import complete_chat
from penstock.commands.secret import reseal_rows
from penstock.errors import Conflict, InvalidRequest, ModelDisabled, NotFound, Problem, RateLimited
from penstock.generations import endpoints
from penstock.models.vendor_accounts import VendorAccounts
from penstock.upstream.account_limits import Wait
from penstock.values import DAY_MS
from tests.fake_providers import faults
from tests.fake_providers.scripted import KEY, ScriptedProvider
from tests.gateway import OpenGateway, RunningGateway, two_providers

FIRST = "sk-first-canary-000000000000"
SECOND = "sk-second-canary-00000000000"
ROTATED = "sk-rotated-canary-0000000000"
OURS = {KEY: "env", FIRST: "first", SECOND: "second", ROTATED: "first"}


async def add(running: RunningGateway, credential: str, **options: Any) -> str:
    running.lab.accounts = OURS
    account = await running.gateway.vendor_accounts.add("lab", credential, options)
    return str(account["id"])


def used(lab: ScriptedProvider, endpoint: str = "images") -> Counter[str | None]:
    return Counter(lab.account_of(request) for request in getattr(lab, endpoint).received)


def of_another_process(running: RunningGateway) -> VendorAccounts:
    gateway = running.gateway
    vault = gateway.vendor_accounts._vault
    return VendorAccounts(gateway.store, vault, running.clock, gateway.catalog, gateway.settings)


def without_variable(running: RunningGateway) -> None:
    """Take the credential of the environment away: the accounts are the only ones."""
    running.gateway.catalog._sources = (*running.gateway.catalog._sources[:2], {})
    running.gateway.catalog._build(frozenset())


async def chat(running: RunningGateway) -> None:
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 50}
    await complete_chat(running.gateway, running.call(body, endpoint="/compat/v1/chat/completions"))


# ------------------------------------------------------------------------------------------------------------ choosing


async def test_calls_are_shared_by_weight_and_priority(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await add(running, FIRST, weight=5)
        later = await add(running, SECOND, priority=1)
        for number in range(30):
            await running.image(prompt=str(number))
        shares = used(running.lab)
        assert set(shares) == {"env", "first"}
        assert shares["first"] > shares["env"] > 0
        await running.gateway.vendor_accounts.change(later, {"priority": 0, "weight": 100})
        for _ in range(10):
            await chat(running)
        assert used(running.lab, "chats")["second"] >= 7


async def test_an_account_may_be_limited_to_models_and_switched_off(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        account = await add(running, FIRST, weight=100, models=["video-*"])
        for number in range(5):
            await running.image(prompt=str(number))
        assert used(running.lab) == {"env": 5}
        await running.gateway.vendor_accounts.change(account, {"models": None, "status": "off"})
        await running.image(prompt="again")
        assert used(running.lab) == {"env": 6}


async def test_a_provider_without_a_variable_is_used_by_its_account(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        settings = running.gateway.settings
        without_variable(running)
        assert settings.providers
        with pytest.raises(Problem, match="needs LAB_API_KEY"):
            await running.image()
        account = await add(running, FIRST)
        await running.image()
        assert used(running.lab) == {"first": 1}
        await running.gateway.vendor_accounts.change(account, {"status": "off"})
        with pytest.raises(ModelDisabled, match="No account"):
            await running.image()
        await running.gateway.vendor_accounts.delete(account, drain=False)
        with pytest.raises(Problem, match="needs LAB_API_KEY"):
            await running.image()


async def test_another_account_takes_over_when_one_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await add(running, FIRST, priority=0)
        await add(running, SECOND, priority=1)
        running.lab.accounts = {SECOND: "second"}  # the others are revoked
        for number in range(8):
            await running.image(prompt=str(number))
        await chat(running)
        shares = used(running.lab)
        assert shares["second"] == 8
        assert shares[None] <= 2 * 3, "three failures in a row pause an account, not the provider"


async def test_a_busy_account_is_left_alone_for_as_long_as_it_says(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await add(running, FIRST, priority=1)
        running.lab.images.next(faults.busy(30))
        for number in range(4):
            await running.image(prompt=str(number))
        assert used(running.lab) == {"env": 1, "first": 4}
        running.clock.advance(31)
        await running.image(prompt="later")
        assert used(running.lab) == {"env": 2, "first": 4}


# -------------------------------------------------------------------------------------------------- limits and health


async def test_a_refused_account_is_tried_last_in_every_process_until_it_is_changed(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        accounts = running.gateway.vendor_accounts
        other = of_another_process(running)
        first = await add(running, FIRST, weight=100)
        await other.refresh()
        running.lab.accounts = {KEY: "env", ROTATED: "first"}
        for number in range(12):
            await running.image(prompt=str(number))
        assert used(running.lab)[None] == 1, "one refusal is enough"
        await accounts.refresh()
        await other.refresh()
        for records in (accounts.list_records(), other.list_records()):
            assert [record["health"]["state"] for record in records] == ["refused"]
            assert records[0]["health"]["refused_with"] == 401
        await accounts.rotate(first, ROTATED)
        assert accounts.get_record(first)["health"]["state"] == "works"
        for number in range(12):
            await running.image(prompt=f"again {number}")
        assert used(running.lab)["first"] > 0


async def test_the_operator_is_told_once_of_a_refused_account(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        settings = replace(running.gateway.settings, alert_url="https://ops.example.com/alerts")
        alerts = Alerts(running.gateway.store, running.clock, settings, lambda: None)
        account = await add(running, FIRST, weight=100)
        running.lab.accounts = {KEY: "env"}
        while not used(running.lab)[None]:
            await running.image(prompt="again")
        await running.gateway.vendor_accounts.refresh()
        for _ in range(2):
            await alerts.check()
        [row] = await running.rows("SELECT event, body FROM messages")
        assert row["event"] == "account.failed"
        assert account in str(row["body"])
        assert FIRST not in str(row["body"])


async def test_processes_tell_each_other_how_they_use_accounts(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        accounts = running.gateway.vendor_accounts
        other = of_another_process(running)
        await add(running, FIRST, concurrent=2)
        await other.refresh()
        [mine], [theirs] = accounts._by_id.values(), other._by_id.values()
        mine.limits.begin()
        mine.limits.begin()
        await accounts.share_use("prc_1")
        await other.share_use("prc_2")
        waits = [theirs.wait]
        mine.limits.end()
        mine.limits.end()
        running.clock.advance(20)
        await other.share_use("prc_2")
        waits.append(theirs.wait)
        assert waits == [Wait(1.0, is_set=True), None], "the other process has ended its calls, or is gone"
        rows = await running.rows("SELECT process_id FROM account_use WHERE process_id LIKE 'prc__'")
        assert [row["process_id"] for row in rows] == ["prc_2"]


async def test_a_refused_account_that_serves_again_is_trusted_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        without_variable(running)
        account = await add(running, FIRST)
        running.lab.accounts = {SECOND: "somebody else's"}
        with pytest.raises(Problem):
            await running.image()
        running.lab.accounts = {FIRST: "first"}
        running.clock.advance(400)
        await running.image(prompt="paid again")
        await running.gateway.vendor_accounts.refresh()
        assert running.gateway.vendor_accounts.get_record(account)["health"]["state"] == "works"
        [row] = await running.rows("SELECT failed_status FROM accounts")
        assert row["failed_status"] is None


async def test_images_over_the_set_limit_go_elsewhere_and_are_refused_without_a_charge(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        without_variable(running)
        account = await add(running, FIRST, requests_per_minute=2, priority=0)
        await add(running, SECOND, requests_per_minute=3, priority=1)
        running.lab.accounts = {FIRST: "first", SECOND: "second"}
        for number in range(2):
            await running.image(prompt=str(number))
        for number in range(5):
            with pytest.raises(RateLimited) as caught:
                await running.image(prompt=f"too many {number}")
            assert "retry-after" in caught.value.headers
        assert used(running.lab) == {"first": 1, "second": 1}, "calls are spread over the minute"
        running.clock.advance(60)
        await running.image(prompt="a minute later")
        assert running.gateway.vendor_accounts.get_record(account)["requests_per_minute"] == 2


async def test_videos_over_the_limit_wait_until_others_have_ended(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await add(running, FIRST, concurrent=1)
        running.lab.accounts = {FIRST: "first"}
        running.lab.states = ("queued", "in_progress 50", "completed")
        ids = await start_videos(running, 4)
        for video in ids:
            assert (await running.wait_for_request(video))["status"] == "completed"
        assert running.lab.foreign_calls == []
        [account] = running.gateway.vendor_accounts.list_records()
        assert account["health"]["open"] == 0


async def test_what_an_account_has_spent_is_summed_and_limited(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        without_variable(running)
        account = await add(running, FIRST, usd_per_month=0.01)
        running.lab.accounts = {FIRST: "first"}
        await running.image(prompt="one")
        await running.image(prompt="two")
        await chat(running)
        filters = UsageFilters(start_ms=running.clock.now_ms() - DAY_MS, end_ms=running.clock.now_ms() + 1)
        everything = Accounts(are_all=True)
        usage = running.gateway.usage
        report = await usage.report(running.caller.org_id, filters, "day", ["account"], everything)
        by_account = {group["group"]: group for group in report["groups"]}
        assert by_account[account]["requests"] == 3
        hidden = await usage.report(running.caller.org_id, filters, "day", ["account"])
        assert [(group["group"], group["cost"]) for group in hidden["groups"]] == [(None, report["total"]["cost"])]
        running.clock.advance(10)
        await running.gateway.vendor_accounts.refresh()
        record = running.gateway.vendor_accounts.get_record(account)
        assert record["spent_this_month"] == by_account[account]["cost"] > 0
        assert record["health"]["state"] == "spent"
        with pytest.raises(Problem):
            await running.image(prompt="over the limit")
        [row] = await running.rows("SELECT SUM(cost) AS cost FROM requests WHERE account_id IS NOT NULL")
        [spend] = await running.rows("SELECT spent FROM account_spend")
        assert row["cost"] == spend["spent"]


# ---------------------------------------------------------------------------------------------------------- stickiness


async def until_polled(running: RunningGateway) -> None:
    async def met() -> bool:
        return len(running.lab.polls) > 0

    await running.wait_until(met)


async def start_videos(running: RunningGateway, count: int) -> list[str]:
    await running.add_credit("100")
    videos = [await running.video(prompt=f"train {number}") for number in range(count)]
    return [video.json["id"] for video in videos]


async def test_a_job_is_asked_about_by_the_account_that_started_it(open_gateway: OpenGateway) -> None:
    """Through a restart: 18 videos over three accounts."""
    async with two_providers() as labs:
        lab = labs[0]
        lab.states = ("queued", "in_progress 20", "in_progress 50", "in_progress 80", "completed")
        async with open_gateway(labs=labs) as running:
            await add(running, FIRST)
            await add(running, SECOND)
            ids = await start_videos(running, 18)
            await until_polled(running)
        async with open_gateway(labs=labs) as running:
            for video_id in ids:
                record = await running.wait_for_request(video_id)
                assert record["status"] == "completed", record
            rows = await running.rows("SELECT account_id, COUNT(*) AS count FROM attempts GROUP BY account_id")
            assert sum(row["count"] for row in rows) == 18
            assert len(rows) == 3
        assert lab.foreign_calls == []
        for endpoint in ("videos", "polls", "contents"):
            assert set(used(lab, endpoint)) == {"env", "first", "second"}, endpoint


async def test_two_accounts_may_have_jobs_with_one_id(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await add(running, FIRST, priority=1)
        running.lab.next_ids.extend(["same"])
        [first] = await start_videos(running, 1)
        await running.wait_for_request(first)
        await running.change("UPDATE accounts SET priority = 0, weight = 100")
        await running.gateway.vendor_accounts.change(
            (running.gateway.vendor_accounts.list_records())[0]["id"], {"weight": 100}
        )
        running.lab.video_jobs.clear()
        statuses = []
        for number in range(6):
            running.lab.next_ids.append("same")
            video = await running.video(prompt=str(number))
            statuses.append((await running.wait_for_request(video.json["id"]))["status"])
            if used(running.lab, "videos")["first"]:
                break
            running.lab.video_jobs.clear()
        assert statuses[-1] == "completed", "the same id at another account is another job"


async def test_a_rotated_credential_is_used_for_jobs_that_run(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        account = await add(running, FIRST, weight=100)
        running.lab.accounts = {FIRST: "first", ROTATED: "first"}  # that of the environment is refused
        running.lab.states = ("queued", *["in_progress 50"] * 20, "completed")
        [video] = await start_videos(running, 1)
        await until_polled(running)
        del running.lab.accounts[FIRST]
        rotated = await running.gateway.vendor_accounts.rotate(account, ROTATED)
        assert (rotated["version"], rotated["id"]) == (2, account)
        assert (await running.wait_for_request(video))["status"] == "completed"
        assert running.lab.foreign_calls == []


async def test_an_account_with_open_jobs_drains(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        account = await add(running, FIRST, weight=100)
        running.lab.accounts = {FIRST: "first"}
        running.lab.states = ("queued", *["in_progress 50"] * 10, "completed")
        [video] = await start_videos(running, 1)
        await until_polled(running)
        with pytest.raises(Conflict, match="1 open jobs"):
            await running.gateway.vendor_accounts.delete(account, drain=False)
        left = await running.gateway.vendor_accounts.delete(account, drain=True)
        assert left is not None
        assert left["status"] == "draining"
        running.lab.accounts = {KEY: "env", FIRST: "first"}
        await running.image()
        assert used(running.lab) == {"env": 1}, "no new calls"
        assert (await running.wait_for_request(video))["status"] == "completed"
        assert running.lab.foreign_calls == []
        await running.gateway.vendor_accounts.erase_drained()
        await running.gateway.vendor_accounts.refresh()
        assert running.gateway.vendor_accounts.list_records() == []
        [row] = await running.rows("SELECT secret, fingerprint, status FROM accounts")
        assert (row["secret"], row["fingerprint"], row["status"]) == (None, None, "deleted")


async def test_a_cancel_goes_to_the_account_of_the_job(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await add(running, FIRST, weight=100)
        running.lab.accounts = {FIRST: "first", KEY: "env"}
        running.lab.states = ("in_progress 10",)
        for video in await start_videos(running, 4):
            await running.cancel(video)
            await running.wait_for_request(video)
        assert running.lab.foreign_calls == []
        assert len(running.lab.cancels) == 4


# ------------------------------------------------------------------------------------------------------------- secrets


async def test_credentials_are_sealed_and_in_no_record(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        account = await add(running, FIRST, name="eu")
        assert FIRST not in str(running.gateway.vendor_accounts.list_records())
        assert await running.tables_with(FIRST) == []
        [row] = await running.rows("SELECT last_four, secret FROM accounts")
        assert row["last_four"] == FIRST[-4:]
        assert FIRST.encode() not in bytes(row["secret"])
        with pytest.raises(Conflict) as caught:
            await add(running, f" {FIRST}\n")
        assert FIRST not in caught.value.message
        with pytest.raises(Conflict):
            await add(running, KEY)
        second = await add(running, SECOND)
        with pytest.raises(Conflict):
            await running.gateway.vendor_accounts.rotate(second, FIRST)
        vault = running.gateway.vendor_accounts._vault
        assert await reseal_rows(running.gateway.store, vault, "list_accounts", "reseal_account") == 0
        assert account


@pytest.mark.parametrize(
    ("provider", "credential", "options", "param"),
    [
        ("nothing", "x", {}, "provider"),
        ("lab", " ", {}, "credential"),
        ("lab", "x" * 9000, {}, "credential"),
        ("lab", "x", {"weight": 0}, "weight"),
        ("lab", "x", {"priority": -1}, "priority"),
        ("lab", "x", {"models": []}, "models"),
        ("lab", "x", {"name": "a\nb"}, "name"),
    ],
)
async def test_bad_values_are_named(
    open_gateway: OpenGateway, provider: str, credential: str, options: dict[str, Any], param: str
) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as caught:
            await running.gateway.vendor_accounts.add(provider, credential, options)
        assert caught.value.param == param
        with pytest.raises(NotFound):
            await running.gateway.vendor_accounts.change("acc_1", {"weight": 2})


async def test_another_process_notices_changes(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        other = of_another_process(running)
        account = await add(running, FIRST)
        assert other.list_records() == []
        await other.refresh()
        assert [record["id"] for record in other.list_records()] == [account]


async def test_calls_run_without_accounts_as_before(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        candidates = running.gateway.catalog.find("image-1", ("image",)).candidates
        assert running.gateway.vendor_accounts.expand(candidates, running.caller.org_id) is candidates
        call = running.call({"model": "image-1", "prompt": "x", "size": "64x64"})
        await endpoints.make_images(running.gateway, call)
        [row] = await running.rows("SELECT account_id FROM attempts")
        assert row["account_id"] is None
