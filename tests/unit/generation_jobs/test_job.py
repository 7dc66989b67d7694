"""What a running job may write: only while it holds its lease, and however long the store is away."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from penstock.accounts.prices import snapshot_prices
from penstock.generation_jobs.job import Job, check_lease, is_cancel_requested, record_attempt, restore_candidate
from penstock.generation_jobs.rows import get_generation
from penstock.jobs.running import Lease, LeaseLost, RunningJob
from penstock.providers.spec import Price, Result
from penstock.schema import PlannedCandidate
from penstock.store.base import StorageUnavailable, Store
from penstock.store.postgres_session import PostgresConnection, Statement
from penstock.upstream.failures import Failure
from tests.databases import COMMIT_OF_A_GROUP
from tests.gateway import OpenGateway, RunningGateway, postgres_only
from tests.unit.generations.running_video import start_video


async def job_of(running: RunningGateway, video_id: str, token: int) -> Job:
    row = await get_generation(running.gateway.store, video_id, running.caller.org_id)
    assert row is not None
    request = row.decode_request()
    assert request is not None
    return Job(RunningJob(Lease(video_id, token)), row, running.caller.key_id, request, row.decode_plan(), ())


async def test_only_the_holder_of_the_lease_may_write(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await start_video(running)
        mine = await job_of(running, video_id, 1)
        await running.gateway.store.write(lambda tx: check_lease(tx, mine))
        theirs = await job_of(running, video_id, 2)
        with pytest.raises(LeaseLost):
            await running.gateway.store.write(lambda tx: check_lease(tx, theirs))


async def test_progress_resets_the_number_of_crashes(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        job = await job_of(running, await start_video(running), 1)

        async def crashes(is_progress: bool) -> int:
            await running.gateway.store.write(lambda tx: check_lease(tx, job, is_progress=is_progress))
            return int((await running.rows("SELECT crashes FROM generations"))[0]["crashes"])

        await running.change("UPDATE generations SET crashes = 4")
        assert await crashes(False) == 4
        assert await crashes(True) == 0


async def test_a_record_after_the_lease_was_lost_changes_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await start_video(running)
        before = await running.attempts(video_id)
        job = await job_of(running, video_id, 2)
        with pytest.raises(LeaseLost):
            await record_attempt(running.gateway, job, before[0]["id"], "failed", failure=Failure("broken", "no"))
        assert await running.attempts(video_id) == before


@postgres_only
async def test_an_attempt_and_the_id_of_its_job_are_each_stored_in_two_round_trips(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed between the provider's response and the commit does not know what became of the job. The
    first progress is stored with the id.
    """
    trips: list[list[str]] = []
    run_together = PostgresConnection.run_together

    async def observed(connection: PostgresConnection, statements: Iterable[Statement]) -> list[Any]:
        sent = list(statements)
        trips.append([statement.query.name for statement in sent])
        return await run_together(connection, sent)

    async with open_gateway() as running:
        monkeypatch.setattr(PostgresConnection, "run_together", observed)
        await start_video(running)
    assert [names for names in trips if "check_lease" in names] == [["begin", "limit_locks", "check_lease"]] * 2
    assert [names for names in trips if "add_attempt" in names] == [
        ["add_attempt", "start_request", *COMMIT_OF_A_GROUP]
    ]
    assert [names for names in trips if "set_attempt" in names] == [["set_attempt", *COMMIT_OF_A_GROUP]]
    assert not any("is_cancel_requested" in names for names in trips)


async def test_an_ended_attempt_stays_as_it_is(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await start_video(running)
        job, (row,) = await job_of(running, video_id, 1), await running.attempts(video_id)
        await record_attempt(running.gateway, job, row["id"], "failed", failure=Failure("broken", "first"))
        await record_attempt(
            running.gateway, job, row["id"], "submitted", result=Result(ref={"id": "x"}, upstream_id="x")
        )
        (after,) = await running.attempts(video_id)
        assert (after["state"], after["failure_message"], after["upstream_id"]) == (
            "failed",
            "first",
            row["upstream_id"],
        )


async def test_a_cancel_request_is_seen(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = await start_video(running)
        job = await job_of(running, video_id, 1)
        assert not await is_cancel_requested(running.gateway, job)
        await running.change("UPDATE generations SET cancel_requested = 1")
        assert await is_cancel_requested(running.gateway, job)


async def test_an_attempt_is_recorded_when_the_store_is_back(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        video_id = await start_video(running)
        job, (row,) = await job_of(running, video_id, 1), await running.attempts(video_id)
        store, tries = running.gateway.store, 0
        write = type(store).write

        async def failing_write(self: Store, work: Any, **options: Any) -> Any:
            nonlocal tries
            if options.get("lock_ms"):  # of a group; others write too
                tries += 1
                if tries < 4:
                    raise StorageUnavailable("Storage is unavailable.")
            return await write(self, work, **options)

        monkeypatch.setattr(type(store), "write", failing_write)
        waiting = asyncio.create_task(
            record_attempt(running.gateway, job, row["id"], "failed", failure=Failure("broken", ""))
        )

        async def done() -> bool:
            return waiting.done()

        await running.wait_until(done)
        await waiting
        assert tries >= 4  # other steps of the job may be written in groups, too
        assert [row["state"] for row in await running.attempts(video_id)] == ["failed"]


async def test_a_candidate_is_restored_with_its_prices_at_acceptance(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        candidate = running.gateway.routing.route("video-1", ("video",), running.caller.org_id).first
        planned = PlannedCandidate(candidate.provider.slug, candidate.model.id, candidate.model.upstream)
        then = msgspec.structs.replace(planned, prices=snapshot_prices([Price(unit="second", usd="7")]))
        restored = await restore_candidate(running.gateway, then, "video")
        assert restored is not None
        assert [price.usd for price in restored.model.prices] == ["7"]
        now = msgspec.structs.replace(planned, prices=snapshot_prices(candidate.model.prices))
        assert await restore_candidate(running.gateway, now, "video") == candidate
        gone = msgspec.structs.replace(planned, provider="gone")
        assert await restore_candidate(running.gateway, gone, "video") is None
