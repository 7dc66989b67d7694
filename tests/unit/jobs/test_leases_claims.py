"""A claim that is under way when its caller is cancelled or the process stops: no lease is left without a job. And
calls that are served during one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.app import _run_jobs
from penstock.jobs.leases import Jobs
from penstock.store.base import Store
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


def jobs_on(running: RunningGateway, store: SlowStore, run: ManualRun) -> Jobs:
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
        async with _run_jobs(replace(running.gateway, jobs=jobs)):
            await store.committed.wait()
            assert jobs.running == 0, "the claim has not been reported yet"
            (accepted,) = await accept_videos(running)
            store.report.set()
            await let_others_run()
            assert run.ids == left
            assert (await get_row(running, accepted))["lease_token"] == 0
