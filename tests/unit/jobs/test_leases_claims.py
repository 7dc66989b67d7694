"""Claims share transactions, and calls are served during one. If one is under way when its caller is cancelled or the
process stops, no lease is left without a job.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.app.background import _run_jobs
from penstock.errors import StorageUnavailable
from penstock.jobs.leases import Jobs
from penstock.store.base import Store
from tests.api.raw_http import until
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.jobs.manual_run import ManualRun, accept_videos, get_row, let_others_run


class SlowStore:
    """A store whose writes have been committed, but are only reported when the test lets them be."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.committed = asyncio.Event()
        self.report = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        value = await self._store.write(work, **options)
        self.committed.set()
        await self.report.wait()
        return value


def jobs_on(running: RunningGateway, store: Any, run: ManualRun) -> Jobs:
    jobs = Jobs(store, running.clock, running.gateway.settings)
    jobs.run_with(run)
    return jobs


TAKING: dict[str, Callable[[Jobs, str], Awaitable[Any]]] = {
    "a job from the queue": lambda jobs, video: jobs.run_until_ended(video),
    "what nobody runs": lambda jobs, _: jobs.resume(),
    "a suspect": lambda jobs, _: jobs._start_next_suspect(),
}


async def make_free(running: RunningGateway, taking: str) -> str:
    """A video that nobody runs; a suspect has crashed twice."""
    (video,) = await accept_videos(running)
    crashes = 2 if taking == "a suspect" else 0
    await running.change(f"UPDATE generations SET lease_until_ms = 0, crashes = {crashes}")  # noqa: S608
    return video


@pytest.mark.parametrize("taking", TAKING)
async def test_a_process_that_stops_gives_back_what_it_is_claiming(open_gateway: OpenGateway, taking: str) -> None:
    """Otherwise it would go on with the video after the stop, or its lease would expire and count as a crash."""
    async with open_gateway(works=False, worker=False) as running:
        video = await make_free(running, taking)
        before = await get_row(running, video)
        store, run = SlowStore(running.gateway.store), ManualRun()
        jobs = jobs_on(running, store, run)
        taken = asyncio.ensure_future(TAKING[taking](jobs, video))
        await store.committed.wait()
        stopped = asyncio.create_task(jobs.stop())
        await let_others_run()
        store.report.set()
        await stopped
        await taken
        assert jobs.running == 0
        after = await get_row(running, video)
        assert (after["lease_until_ms"], after["crashes"]) == (0, before["crashes"])


@pytest.mark.parametrize("taking", TAKING)
async def test_what_was_claimed_runs_although_the_caller_was_cancelled(open_gateway: OpenGateway, taking: str) -> None:
    async with open_gateway(works=False, worker=False) as running:
        video = await make_free(running, taking)
        store, run = SlowStore(running.gateway.store), ManualRun()
        jobs = jobs_on(running, store, run)
        taken = asyncio.ensure_future(TAKING[taking](jobs, video))
        await store.committed.wait()
        taken.cancel()
        await asyncio.wait([taken])
        store.report.set()
        await let_others_run()
        assert run.ids == [video]
        await jobs.stop()
        assert (await get_row(running, video))["lease_until_ms"] == 0


@sqlite_only
async def test_calls_are_served_while_what_the_last_process_left_is_resumed(open_gateway: OpenGateway) -> None:
    """Ten thousand videos take seconds. What is accepted meanwhile is not taken for something that was left."""
    async with open_gateway(works=False, worker=False) as running:
        left = await accept_videos(running, 2)
        store, run = SlowStore(running.gateway.store), ManualRun()
        jobs = jobs_on(running, store, run)
        async with asyncio.timeout(30), _run_jobs(replace(running.gateway, jobs=jobs)):
            await store.committed.wait()
            assert jobs.running == 0, "the claim has not been reported yet"
            (accepted,) = await accept_videos(running)
            store.report.set()
            await let_others_run()
            assert run.ids == left
            assert (await get_row(running, accepted))["lease_token"] == 0


# ---------------------------------------------------------------------------------------------------------- together


class CountingStore:
    """A store that counts its transactions and reads, of which the first `failures` transactions fail."""

    def __init__(self, store: Store, failures: int = 0) -> None:
        self._store = store
        self._failures = failures
        self.writes = 0
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def one(self, name: str, /, **values: Any) -> Any:
        self.reads.append(name)
        return await self._store.one(name, **values)

    async def write(self, work: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        self.writes += 1
        if self.writes <= self._failures:
            await asyncio.sleep(0)
            raise StorageUnavailable("gone")
        return await self._store.write(work, **options)


async def test_videos_that_come_together_are_claimed_together(open_gateway: OpenGateway) -> None:
    """The first alone, the others in one more transaction. Nothing is read, neither before they run nor after."""
    async with open_gateway(works=False, worker=False) as running:
        videos = await accept_videos(running, 20)
        await running.change("UPDATE generations SET lease_until_ms = 0")
        store, run = CountingStore(running.gateway.store), ManualRun()
        jobs = jobs_on(running, store, run)
        taken = [asyncio.create_task(jobs.run_until_ended(video)) for video in videos]
        await until(lambda: len(run.started) == len(videos))
        assert sorted(run.ids) == videos
        assert store.writes == 2
        await let_others_run(100)  # each learns that its video runs
        for video in videos:
            run.finish(video)
        assert await asyncio.gather(*taken) == [True] * len(videos)
        assert store.reads == []
        await jobs.stop()


async def test_a_claim_that_fails_is_told_to_one_and_tried_again_by_the_next(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        videos = await accept_videos(running, 4)
        await running.change("UPDATE generations SET lease_until_ms = 0")
        store, run = CountingStore(running.gateway.store, failures=2), ManualRun()
        jobs = jobs_on(running, store, run)
        taken = [asyncio.create_task(jobs.run_until_ended(video)) for video in videos]
        await until(lambda: len(run.started) == 2)
        assert [isinstance(task.exception(), StorageUnavailable) for task in taken[:2]] == [True, True]
        assert sorted(run.ids) == videos[2:], "those that failed are left to others"
        await jobs.stop()
        await asyncio.wait(taken)


async def test_a_suspect_is_not_claimed_with_the_others(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        suspect, other = await accept_videos(running, 2)
        await running.change(
            "UPDATE generations SET lease_until_ms = 0",
            f"UPDATE generations SET crashes = 1, lease_until_ms = 1 WHERE id = '{suspect}'",  # noqa: S608
        )
        run = ManualRun()
        jobs = jobs_on(running, CountingStore(running.gateway.store), run)
        taken = [asyncio.create_task(jobs.run_until_ended(video)) for video in (suspect, other)]
        await until(lambda: suspect in jobs._waiting and bool(run.started))
        assert run.ids == [other]
        row = await get_row(running, suspect)
        assert (row["crashes"], row["lease_until_ms"]) == (1, 1), "it is as it was"
        await jobs.stop()
        await asyncio.wait(taken)
