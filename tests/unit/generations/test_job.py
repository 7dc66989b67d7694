"""What a running job may write: only while it holds its lease, and however long the store is away."""

import asyncio
from typing import Any

import msgspec
import pytest

from penstock.generations.job import Job, cancel_asked, check_lease, record_attempt
from penstock.jobs.leases import Lease, LeaseLost
from penstock.providers.spec import Result
from penstock.schema import Plan, Request
from penstock.store.base import StorageUnavailable, Store
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway


async def video(running: RunningGateway) -> str:
    """One that is under way for as long as the test likes."""
    running.lab.videos.next(faults.never_ends)
    video_id: str = (await running.video()).json["id"]
    await running.lab.videos.reached(1)

    async def submitted() -> bool:
        return [row["state"] for row in await running.attempts(video_id)] == ["submitted"]

    await running.until(submitted, step_seconds=0)
    return video_id


async def job_of(running: RunningGateway, video_id: str, token: int) -> Job:
    row = await running.gateway.store.one("get_generation", id=video_id, org_id=running.caller.org_id)
    assert row is not None
    request = msgspec.json.decode(row["request"], type=Request)
    return Job(Lease(video_id, token), row, request, msgspec.json.decode(row["plan"], type=Plan), {})


async def test_whoever_holds_the_lease_may_write(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await video(running)
        mine = await job_of(running, video_id, 1)
        await running.gateway.store.write(lambda tx: check_lease(tx, mine))
        theirs = await job_of(running, video_id, 2)
        with pytest.raises(LeaseLost):
            await running.gateway.store.write(lambda tx: check_lease(tx, theirs))


async def test_what_moves_it_on_shows_that_crashes_were_survived(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        job = await job_of(running, await video(running), 1)

        async def crashes(moves: bool) -> int:
            await running.gateway.store.write(lambda tx: check_lease(tx, job, moves=moves))
            return int((await running.rows("SELECT crashes FROM generations"))[0]["crashes"])

        await running.change("UPDATE generations SET crashes = 4")
        assert await crashes(False) == 4
        assert await crashes(True) == 0


async def test_a_note_of_who_was_shut_out_changes_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await video(running)
        before = await running.attempts(video_id)
        job = await job_of(running, video_id, 2)
        with pytest.raises(LeaseLost):
            await record_attempt(running.gateway, job, before[0]["id"], "failed", kind="broken", message="no")
        assert await running.attempts(video_id) == before


async def test_an_ended_attempt_stays_as_it_is(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await video(running)
        job, (row,) = await job_of(running, video_id, 1), await running.attempts(video_id)
        await record_attempt(running.gateway, job, row["id"], "failed", kind="broken", message="first")
        await record_attempt(
            running.gateway, job, row["id"], "submitted", result=Result(ref={"id": "x"}, upstream_id="x")
        )
        (after,) = await running.attempts(video_id)
        assert (after["state"], after["failure_message"], after["upstream_id"]) == (
            "failed",
            "first",
            row["upstream_id"],
        )


async def test_a_cancel_is_seen_inside_and_outside_a_transaction(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await video(running)
        job = await job_of(running, video_id, 1)
        assert not await cancel_asked(running.gateway.store, job)
        await running.change("UPDATE generations SET cancel_requested = 1")
        assert await cancel_asked(running.gateway.store, job)
        assert await running.gateway.store.write(lambda tx: cancel_asked(tx, job))


async def test_an_attempt_is_recorded_when_the_store_is_back(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        video_id = await video(running)
        job, (row,) = await job_of(running, video_id, 1), await running.attempts(video_id)
        store, tries = running.gateway.store, 0
        write = type(store).write

        async def failing_write(self: Store, work: Any) -> Any:
            nonlocal tries
            if work.__qualname__.startswith("record_attempt."):  # others write too
                tries += 1
                if tries < 4:
                    raise StorageUnavailable("Storage is unavailable.")
            return await write(self, work)

        monkeypatch.setattr(type(store), "write", failing_write)
        waiting = asyncio.create_task(record_attempt(running.gateway, job, row["id"], "failed", kind="broken"))

        async def done() -> bool:
            return waiting.done()

        await running.until(done)
        await waiting
        assert tries == 4
        assert [row["state"] for row in await running.attempts(video_id)] == ["failed"]
