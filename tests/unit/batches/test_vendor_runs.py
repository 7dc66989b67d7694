"""Chats that go with batches of their provider: at its price, held for in full, and each made and paid once."""

from typing import Any

import pytest

from penstock.batches import vendor_runs
from penstock.batches.records import BatchRecord
from penstock.errors import StorageUnavailable
from penstock.guards.verdict_counts import sum_verdicts
from tests.fake_providers import faults
from tests.fake_providers.openai_batches import OpenAIBatches
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway, RunningGateway
from tests.unit.batches.batch_calls import IMAGE, batch, change, create, wait_for
from tests.unit.batches.vendor_calls import chat_row, chat_rows, opened


@pytest.fixture
def provider() -> OpenAIBatches:
    return OpenAIBatches()


async def end(running: RunningGateway, provider: OpenAIBatches, **body: Any) -> BatchRecord:
    """A batch of five chats, once it has ended; its money is in order."""
    before, _ = await running.money()
    made = await create(running, **{"requests": chat_rows(5), "vendor_batch": "auto", **body})
    ended = await wait_for(running, made["id"])
    available, held = await running.money()
    assert (before - available, held) == (ended.cost, 0)
    return ended


async def test_chats_go_as_one_batch_at_half_the_price(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    async with opened(open_gateway, provider) as running:
        alone = await end(running, provider, vendor_batch="never")
        assert (alone.rows_completed, len(provider.received("chat")), provider.jobs) == (5, 5, {})
        ended = await end(running, provider)
        assert (ended.status, ended.rows_completed, ended.rows_failed) == ("completed", 5, 0)
        assert (len(provider.jobs), len(provider.billed), len(provider.received("chat"))) == (1, 5, 5)
        assert 0 < ended.cost * 2 == alone.cost
        records = [record for record in await running.records() if record["cost"]]
        assert {record["upstream_model"] for record in records} == {"gpt-4o-mini"}
        found = await running.rows("SELECT ended_at_ms FROM vendor_batches")
        assert [row["ended_at_ms"] is not None for row in found] == [True]
        assert not await running.rows("SELECT id FROM processes WHERE id LIKE 'vbt%'")


async def test_the_whole_price_is_held_while_the_provider_works(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    provider.usual = ("in_progress",)
    async with opened(open_gateway, provider) as running:
        body: dict[str, Any] = {"requests": chat_rows(4), "vendor_batch": "auto"}
        estimate = await create(running, query={"dryRun": "true"}, **body)
        assert estimate["vendor_batch_rows"] == 4
        assert 0 < estimate["estimated_cost"] * 2 <= estimate["highest_cost"]
        made = await create(running, **body)
        await running.wait_until(lambda: _looked(provider, 1))
        _, held = await running.money()
        assert estimate["estimated_cost"] * 1_000_000_000 < held <= estimate["highest_cost"] * 1_000_000_000
        assert {record["status"] for record in await running.records()} == {"processing"}
        assert await running.run_audit() == []
        _release(provider)
        assert (await wait_for(running, made["id"])).rows_completed == 4


async def test_a_call_that_fails_in_the_batch_costs_nothing(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    provider.faulty["name plum 2"] = (400, {"error": {"message": "No.", "code": "content_policy_violation"}})
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider, vendor_batch="only")
        assert (ended.status, ended.rows_completed, ended.rows_failed) == ("completed", 4, 1)
        found = await running.rows("SELECT number, cost, error_code FROM batch_rows WHERE status = 'failed'")
        assert found == [{"number": 2, "cost": 0, "error_code": "CONTENT_POLICY_VIOLATION"}]


@pytest.mark.parametrize("vendor_batch", ["auto", "only"])
async def test_a_call_that_a_guard_refuses_is_not_sent(
    open_gateway: OpenGateway, provider: OpenAIBatches, vendor_batch: str
) -> None:
    guards = {"words": {"rules": {"words": ["2"]}, "when": "input"}}
    async with opened(open_gateway, provider, guards=guards) as running:
        ended = await end(running, provider, vendor_batch=vendor_batch)
        assert (ended.rows_completed, ended.rows_failed) == (4, 1)
        assert (len(provider.billed), len(provider.received("chat"))) == (4, 0)
        found = await running.rows("SELECT number, cost, error_code FROM batch_rows WHERE status = 'failed'")
        assert found == [{"number": 2, "cost": 0, "error_code": "CONTENT_POLICY_VIOLATION"}]
        assert len([record for record in await running.records() if record["status"] == "rejected"]) == 1
        await running.gateway.guards.counts.write()
        said = await sum_verdicts(running.gateway.store, running.gateway.clock, running.caller.org_id, 1)
        assert (said["words"]["pass"], said["words"]["refuse"]) == (4, 1)


@pytest.mark.parametrize("state", ["expired", "cancelled"])
async def test_calls_that_the_batch_did_not_come_to_are_made_alone(
    open_gateway: OpenGateway, provider: OpenAIBatches, state: str
) -> None:
    provider.usual = ("in_progress", state)
    provider.answered = 2
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider)
        assert (ended.status, ended.rows_completed, ended.rows_failed) == ("completed", 5, 0)
        assert (len(provider.billed), len(provider.received("chat"))) == (2, 3)


async def test_a_batch_that_the_provider_finds_faulty_is_made_alone(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    provider.next_states.append(("failed",))
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider)
        assert (ended.rows_completed, len(provider.billed), len(provider.received("chat"))) == (5, 0, 5)


async def test_with_only_a_call_without_an_answer_fails(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    provider.usual = ("expired",)
    provider.answered = 4
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider, vendor_batch="only")
        assert (ended.status, ended.rows_completed, ended.rows_failed) == ("completed", 4, 1)
        assert not provider.received("chat")


async def test_a_provider_that_refuses_the_batch_gets_the_calls_alone(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    provider.always("create_batch", responds({"error": {"message": "Not on your plan."}}, 403))
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider)
        assert (ended.rows_completed, len(provider.received("chat"))) == (5, 5)


async def test_a_batch_whose_start_was_not_confirmed_is_found_and_not_sent_again(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    provider.next("create_batch", faults.dropped)
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider)
        assert (ended.rows_completed, len(provider.billed), len(provider.received("create_batch"))) == (5, 5, 1)


async def test_a_batch_that_never_arrived_is_sent_again(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    provider.next("create_batch", responds({"error": {"message": "Busy."}}, 503))
    provider.next("upload", responds({"error": {"message": "Busy."}}, 503))
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider)
        assert (ended.rows_completed, len(provider.billed), len(provider.jobs)) == (5, 5, 1)


async def test_a_cancelled_batch_is_cancelled_at_the_provider_and_pays_what_was_answered(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    provider.usual = ("in_progress",)
    provider.answered = 2
    async with opened(open_gateway, provider) as running:
        made = await create(running, requests=chat_rows(5), vendor_batch="auto")
        await running.wait_until(lambda: _looked(provider, 1))
        await change(running, "cancel", made["id"])
        ended = await wait_for(running, made["id"])
        assert (ended.status, ended.rows_completed, ended.rows_failed) == ("cancelled", 2, 3)
        assert {job.cancelled for job in provider.jobs.values()} == {True}
        found = await running.rows("SELECT error_code FROM batch_rows WHERE status = 'failed'")
        assert {row["error_code"] for row in found} == {"CANCELLED"}
        assert (await running.money())[1] == 0


async def test_rows_that_cannot_go_with_a_batch_run_alone(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    async with opened(open_gateway, provider) as running:
        image = {"url": "/v1/images/generations", "body": {**IMAGE, "model": "openai/gpt-image-2"}}
        seen = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        text = {"type": "text", "text": "what is it"}
        ended = await end(
            running, provider, requests=[*chat_rows(2), image, chat_row("alone", messages=[_user([text, seen])])]
        )
        assert (ended.rows_total, len(provider.billed), len(provider.received("chat"))) == (4, 2, 1)


async def test_a_key_with_a_limit_of_requests_sends_no_batches(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    async with opened(open_gateway, provider) as running:
        running.caller = await running.create_caller(concurrent_requests=2)
        ended = await end(running, provider)
        assert (ended.rows_completed, len(provider.billed)) == (5, 0)


async def test_no_more_is_sent_than_the_budget_and_the_balance_allow(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    async with opened(open_gateway, provider) as running:
        each = (await create(running, query={"dryRun": "true"}, requests=chat_rows(1)))["highest_cost"]
        made = await create(running, requests=chat_rows(4), vendor_batch="only", max_cost=float(each) * 2.5)
        paused = await wait_for(running, made["id"], "completed", "paused")
        assert (paused.status, paused.reason) == ("completed", None) or paused.rows_completed >= 2
        assert len(provider.jobs) >= 2
        if paused.status == "paused":
            await change(running, "resume", made["id"], max_cost=1)
        assert (await wait_for(running, made["id"])).rows_completed == 4


async def test_a_low_balance_sends_a_part_and_pauses(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    async with opened(open_gateway, provider) as running:
        each = (await create(running, query={"dryRun": "true"}, requests=chat_rows(1)))["highest_cost"]
        running.caller = await running.create_caller_in_new_org(f"{float(each) * 2.2:.9f}")
        made = await create(running, requests=chat_rows(4), vendor_batch="only")
        await wait_for(running, made["id"], "paused", "completed")
        await running.add_credit("1", running.caller.org_id)
        if (await batch(running, made["id"])).status == "paused":
            await change(running, "resume", made["id"])
        ended = await wait_for(running, made["id"])
        assert (ended.rows_completed, len(provider.billed)) == (4, 4)
        assert len(provider.jobs) >= 2


async def test_large_batches_go_in_several_parts(
    open_gateway: OpenGateway, provider: OpenAIBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_runs, "ROWS_MAX", 3)
    async with opened(open_gateway, provider) as running:
        ended = await end(running, provider, requests=[*chat_rows(7), chat_row("other", model="openai/gpt-4o")])
        assert (ended.rows_completed, len(provider.jobs)) == (8, 4)
        assert not any(job.fields.get("errors") for job in provider.jobs.values())


async def test_a_revoked_key_still_gets_what_was_sent(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    provider.usual = ("in_progress",)
    async with opened(open_gateway, provider) as running:
        running.caller = await running.create_caller()
        made = await create(running, requests=chat_rows(3), vendor_batch="auto")
        await running.wait_until(lambda: _looked(provider, 1))
        await running.gateway.keys.revoke_key(running.caller.org_id, running.caller.key_id)
        _release(provider)
        await running.wait_until(lambda: _has_completed(running, made["id"], 3))


async def test_a_restart_goes_on_with_what_was_sent(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    provider.usual = ("in_progress",)
    async with opened(open_gateway, provider) as running:
        made = await create(running, requests=chat_rows(3), vendor_batch="auto")
        await running.wait_until(lambda: _looked(provider, 1))
    async with opened(open_gateway, provider) as running:
        _release(provider)
        ended = await wait_for(running, made["id"])
        assert (ended.rows_completed, len(provider.billed), len(provider.jobs)) == (3, 3, 1)
        assert (await running.money())[1] == 0


async def test_a_paused_batch_still_gets_what_was_sent_also_after_a_restart(
    open_gateway: OpenGateway, provider: OpenAIBatches
) -> None:
    provider.usual = ("in_progress",)
    async with opened(open_gateway, provider) as running:
        made = await create(running, requests=chat_rows(3), vendor_batch="auto")
        await running.wait_until(lambda: _looked(provider, 1))
        await change(running, "pause", made["id"])
    async with opened(open_gateway, provider) as running:
        _release(provider)
        await running.wait_until(lambda: _has_completed(running, made["id"], 3))
        assert (await batch(running, made["id"])).status == "paused"
        await change(running, "resume", made["id"])
        assert (await wait_for(running, made["id"])).rows_completed == 3


async def test_a_database_that_fails_after_the_start_does_not_send_twice(
    open_gateway: OpenGateway, provider: OpenAIBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(open_gateway, provider) as running:
        write = running.gateway.store.write
        failures = [1]

        async def fail_once(runs: vendor_runs.VendorRuns, query: str, **values: str) -> None:
            if query == "set_vendor_id" and failures:
                failures.pop()
                raise StorageUnavailable("The database is gone.")
            await write(lambda tx: tx.run(query, **values))

        monkeypatch.setattr(vendor_runs.VendorRuns, "_write", fail_once)
        ended = await end(running, provider)
        assert (ended.rows_completed, len(provider.billed), len(provider.jobs)) == (5, 5, 1)


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _release(provider: OpenAIBatches) -> None:
    """Let the batches at the provider come to their ends."""
    for job in provider.jobs.values():
        job.states.clear()
        job.states.append("completed")


async def _looked(provider: OpenAIBatches, count: int) -> bool:
    return len(provider.received("get_batch")) >= count


async def _has_completed(running: RunningGateway, batch_id: str, count: int) -> bool:
    return (await batch(running, batch_id)).rows_completed == count
