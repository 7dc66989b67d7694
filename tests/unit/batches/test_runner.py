"""Running batches: each row is made and paid once, also after a crash, and callers come first."""

import asyncio
from typing import Any

import pytest

from penstock.errors import Conflict
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.server import Act, FakeCall, serve
from tests.gateway import OpenGateway, RunningGateway, two_providers
from tests.unit.batches.batch_calls import CHAT, batch, change, create, image_rows, wait_for


def held_back() -> tuple[Act, asyncio.Event, list[int]]:
    """An act that waits for an event, and the number of calls that wait or waited so far."""
    event = asyncio.Event()
    calls: list[int] = []

    async def act(call: FakeCall) -> None:
        calls.append(1)
        await event.wait()
        await serve(call)

    return act, event, calls


async def test_every_row_is_made_once_and_the_batch_costs_their_sum(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before, _ = await running.money()
        video = {"url": "/v1/videos", "body": {"model": "video-1", "prompt": "a train", "seconds": 4}}
        chat = {"url": "/v1/chat/completions", "body": CHAT}
        made = await create(running, requests=[*image_rows(5), chat, video])
        assert (made["status"], made["counts"]["total"]) == ("in_progress", 7)
        ended = await wait_for(running, made["id"])
        assert (ended.status, ended.rows_completed, ended.rows_failed) == ("completed", 7, 0)
        available, held = await running.money()
        assert (before - available, held) == (ended.cost, 0)
        assert sorted(record["kind"] for record in await running.records()) == ["chat", *["image"] * 5, "video"]
        assert len(running.lab.invoice) == 7
        assert not await running.rows("SELECT number FROM batch_rows WHERE body IS NOT NULL")


async def test_a_row_that_fails_costs_nothing_and_stops_no_other(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.blocked)
        made = await create(running, requests=image_rows(3), concurrency=1)
        ended = await wait_for(running, made["id"])
        assert (ended.status, ended.rows_completed, ended.rows_failed) == ("completed", 2, 1)
        rows = await running.rows("SELECT status, cost, error_code FROM batch_rows ORDER BY number")
        assert rows[0] == {"status": "failed", "cost": 0, "error_code": "CONTENT_POLICY_VIOLATION"}


async def test_a_batch_pauses_before_it_passes_its_budget_and_goes_on_with_a_larger_one(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        made = await create(running, requests=image_rows(4), max_cost=0.1)
        paused = await wait_for(running, made["id"], "paused")
        assert (paused.reason, paused.rows_completed, paused.cost) == ("max_cost", 2, nanos("0.08"))
        await change(running, "resume", made["id"], max_cost=1)
        ended = await wait_for(running, made["id"])
        assert (ended.status, ended.rows_completed) == ("completed", 4)


async def test_a_batch_pauses_when_the_balance_is_used_up(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await running.create_caller_in_new_org("0.05")
        running.caller = caller
        made = await create(running, requests=image_rows(3))
        await wait_for(running, made["id"], "paused")
        await running.wait_until(lambda: _completed(running, made["id"], 1), step_seconds=0.1)
        paused = await batch(running, made["id"])
        assert (paused.reason, paused.rows_completed, paused.rows_failed) == ("insufficient_balance", 1, 0)
        await running.add_credit("1", caller.org_id)
        await change(running, "resume", made["id"])
        assert (await wait_for(running, made["id"])).rows_completed == 3


async def test_a_batch_pauses_when_its_key_is_revoked(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.caller = await running.create_caller()
        made = await create(running, requests=image_rows(2), start=False)
        assert (made["status"], made["reason"]) == ("paused", "not_started")
        await running.gateway.keys.revoke_key(running.caller.org_id, running.caller.key_id)
        running.clock.advance(2)
        await change(running, "resume", made["id"])
        paused = await wait_for(running, made["id"], "paused")
        assert (paused.reason, paused.rows_completed) == ("key_revoked", 0)


async def test_a_cancelled_batch_ends_with_the_rows_that_have_begun(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        act, event, calls = held_back()
        running.lab.images.always(act)
        made = await create(running, requests=image_rows(4), concurrency=2)
        await running.wait_until(lambda: _are(calls, 2), step_seconds=0.1)
        assert (await change(running, "cancel", made["id"]))["status"] == "cancelling"
        event.set()
        ended = await wait_for(running, made["id"])
        assert (ended.status, ended.rows_completed, len(calls)) == ("cancelled", 2, 2)
        assert not await running.rows("SELECT number FROM batch_rows WHERE body IS NOT NULL")
        with pytest.raises(Conflict):
            await change(running, "resume", made["id"])


async def test_a_paused_batch_begins_no_rows_until_it_is_resumed(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        act, event, calls = held_back()
        running.lab.images.always(act)
        made = await create(running, requests=image_rows(3), concurrency=1)
        await running.wait_until(lambda: _are(calls, 1), step_seconds=0.1)
        await change(running, "pause", made["id"])
        event.set()
        await running.wait_until(lambda: _completed(running, made["id"], 1), step_seconds=0.1)
        assert ((await batch(running, made["id"])).status, len(calls)) == ("paused", 1)
        await change(running, "resume", made["id"])
        assert (await wait_for(running, made["id"])).rows_completed == 3


async def test_rows_take_only_the_places_that_callers_leave(open_gateway: OpenGateway) -> None:
    async with open_gateway(batch_rows_at_once=3) as running:
        act, event, calls = held_back()
        running.lab.images.always(act)
        waiting = [asyncio.create_task(running.image()) for _ in range(2)]
        await running.wait_until(lambda: _are(calls, 2), step_seconds=0)
        made = await create(running, requests=image_rows(5))
        await running.wait_until(lambda: _are(calls, 3), step_seconds=0.1)
        for _ in range(20):
            running.clock.advance(0.1)
            await asyncio.sleep(0.001)
        assert len(calls) == 3
        event.set()
        await asyncio.gather(*waiting)
        assert (await wait_for(running, made["id"])).rows_completed == 5


async def test_a_row_waits_while_its_key_may_make_no_more_calls(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.caller = await running.create_caller(requests_per_minute=2)
        made = await create(running, requests=image_rows(3))
        ended = await wait_for(running, made["id"])
        assert (ended.status, ended.rows_completed) == ("completed", 3)


async def _completed(running: RunningGateway, batch_id: str, count: int) -> bool:
    return (await batch(running, batch_id)).rows_completed == count


async def _are(calls: list[int], count: int) -> bool:
    return len(calls) >= count


@pytest.mark.parametrize("rows", ["images", "chats"])
async def test_after_a_restart_in_the_middle_every_row_is_charged_once(open_gateway: OpenGateway, rows: str) -> None:
    requests: list[dict[str, Any]] = image_rows(6)
    if rows == "chats":
        requests = [{"url": "/v1/chat/completions", "body": CHAT} for _ in range(6)]
    async with two_providers() as labs:
        act, event, calls = held_back()
        async with open_gateway(labs=labs, drain_seconds=0.0) as running:
            endpoint = running.lab.images if rows == "images" else running.lab.chats
            endpoint.next(serve, serve, act, act)
            made = await create(running, requests=requests, concurrency=2)
            await running.wait_until(lambda: _are(calls, 2), step_seconds=0.1)
            before = await batch(running, made["id"])
        event.set()
        async with open_gateway(labs=labs) as running:
            running.clock.advance(1)
            ended = await wait_for(running, made["id"])
            assert (ended.status, ended.rows_completed, ended.rows_failed) == ("completed", 6, 0)
            assert before.rows_completed <= 2
            assert await _charged(running) == ended.cost


async def _charged(running: RunningGateway) -> int:
    rows = await running.rows("SELECT amount FROM transfers WHERE kind = 'capture'")
    return sum(row["amount"] for row in rows)
