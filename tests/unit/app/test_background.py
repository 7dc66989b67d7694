"""What a gateway does beside its calls."""

import asyncio

import pytest

from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.values import OrgId
from tests.fake_providers import faults
from tests.gateway import Installation, OpenGateway, sqlite_only, two_providers

ORG = OrgId("org_1")


async def test_unfinished_generations_of_the_last_process_are_resumed(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        async with open_gateway(labs=labs, works=False, worker=False) as running:
            ids = [(await running.video(seconds=1)).json["id"] for _ in range(5)]
        async with open_gateway(labs=labs) as running:
            assert {(await running.wait_for_video(video_id))["status"] for video_id in ids} == {"completed"}


@sqlite_only
async def test_a_process_that_is_no_worker_runs_no_videos(open_gateway: OpenGateway) -> None:
    """It accepts them, and makes images while callers wait."""
    async with open_gateway(worker=False) as running:
        video_id = (await running.video()).json["id"]
        assert await running.image()
        for _ in range(20):
            running.clock.advance(30)
            assert (await running.record(video_id))["status"] == "pending"
        assert len(running.lab.videos) == 0
        await running.cancel(video_id)


async def test_stopping_gives_running_videos_back(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        labs[0].videos.always(faults.never_ends)
        async with open_gateway(labs=labs) as running:
            for _ in range(3):
                await running.video(seconds=1)
            await labs[0].videos.reached(3)
            leases = await running.rows("SELECT id FROM generations WHERE lease_until_ms > 0")
        async with open_gateway(labs=labs, works=False) as running:
            assert len(leases) == 3
            rows = await running.rows("SELECT lease_until_ms, crashes FROM generations")
            assert [(row["lease_until_ms"], row["crashes"]) for row in rows] == [(0, 0)] * 3


_SWEEPS = {
    "erase drained accounts",
    "release abandoned chats",
    "remove expired payloads",
    "check orphans",
    "delete expired media",
    "delete expired uploads",
    "delete old batches",
    "delete old verdicts of guards",
    "delete old trials",
    "look for alerts",
    "delete stray files",
}
_LEASES = {
    "refresh accounts",
    "refresh destinations",
    "write verdicts of guards",
    "renew leases",
    "renew lease of chats",
    "log the head of the audit log",
}


_WORK = {"deliver webhooks", "look for batches"}


@sqlite_only
@pytest.mark.parametrize(
    ("worker", "sweeps", "expected"),
    [
        (True, True, {*_LEASES, *_SWEEPS, *_WORK}),
        (True, False, {*_LEASES, *_WORK}),
        (False, True, _LEASES),
    ],
)
async def test_the_work_that_is_repeated(
    installation: Installation, worker: bool, sweeps: bool, expected: set[str]
) -> None:
    """Of each task by its name: without one of them something would never be renewed, released or deleted."""
    chosen = installation.own_settings(worker=worker, alert_url="https://ops.example/alerts")
    async with build_gateway(chosen, installation.clock, {}) as gateway:
        before = asyncio.all_tasks()
        async with run_background_work(gateway, sweeps=sweeps):
            started = asyncio.all_tasks() - before
            begun = {task for task in started if task.get_name() not in expected}
            if begun:
                await asyncio.wait(begun, timeout=30)  # what the work has begun soon ends
            assert {task.get_name() for task in started if not task.done()} == expected


async def test_the_lease_of_chats_is_renewed(open_gateway: OpenGateway) -> None:
    """Otherwise another process would soon end the chats of this one."""
    async with open_gateway() as running:
        (row,) = await running.rows("SELECT lease_until_ms FROM processes")

        async def is_renewed() -> bool:
            (now,) = await running.rows("SELECT lease_until_ms FROM processes")
            return bool(now["lease_until_ms"] > row["lease_until_ms"])

        await running.wait_until(is_renewed)
