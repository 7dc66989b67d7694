"""Accounts at a vendor that are exhausted, revoked and rotated, and workers that are killed, while videos run."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.fake_providers.scripted import KEY_ENV
from tests.faults.rig import Rig, Running, rigged, until
from tests.gateway import postgres_only

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

FIRST = "sk-first-canary-000000000000"
SECOND = "sk-second-canary-00000000000"
ROTATED = "sk-rotated-canary-0000000000"
ACCOUNTS = {FIRST: "first", SECOND: "second", ROTATED: "second"}
NO_VARIABLE = {KEY_ENV: ""}
A_KILL = frozenset({"completed", "UPSTREAM_OUTCOME_UNKNOWN"})  # it may come between a submission and its answer


async def add(served: Running, credential: str) -> str:
    said = await served.ask("POST", "/v1/accounts", {"provider": "lab", "credential": credential})
    assert said.status == 200, said
    return str(said.json["id"])


async def submitted(rig: Rig, count: int) -> None:
    """Wait until the vendor has accepted so many jobs in all."""
    await until(lambda: len(rig.lab.video_jobs) >= count)


async def nothing_queued(rig: Rig) -> bool:
    return not await rig.rows("SELECT id FROM generations WHERE status = 'queued' LIMIT 1")


def asked_with_another_key(rig: Rig) -> list[str]:
    """Calls about jobs whose credential is not one of the account that started the job, from the vendor's log."""
    lab = rig.lab
    wrong = []
    for request in (*lab.polls.received, *lab.contents.received, *lab.cancels.received):
        job_id = request.path.partition("?")[0].split("/")[3]
        credential = request.headers["authorization"].removeprefix("Bearer ")
        if ACCOUNTS[credential] != lab.video_jobs[job_id].account:
            wrong.append(f"{request.method} {request.path}")
    return wrong


@postgres_only
async def test_a_hundred_videos_while_accounts_are_exhausted_revoked_and_rotated(tmp_path: Path, database: str) -> None:
    """None is lost, made twice or asked about with a wrong credential, though two workers are killed."""
    async with rigged(tmp_path, database) as rig:
        lab = rig.lab
        lab.accounts = {FIRST: "first", SECOND: "second"}
        lab.states = ("queued", *[f"in_progress {percent}" for percent in range(5, 100, 5)], "completed")
        async with rig.serve(**NO_VARIABLE, PENSTOCK_WORKER="false") as served:
            await add(served, FIRST)
            second = await add(served, SECOND)
            async with rig.work(**NO_VARIABLE) as one, rig.work(**NO_VARIABLE) as two:
                promised = await rig.promise(served, 30)
                await submitted(rig, 15)
                lab.exhausted.add("first")
                more = asyncio.create_task(rig.promise(served, 20))
                await submitted(rig, 32)
                await one.kill()
                async with rig.work(**NO_VARIABLE) as three:
                    promised += await more
                    await until(partial(nothing_queued, rig))
                    lab.exhausted.clear()
                    del lab.accounts[SECOND]
                    more = asyncio.create_task(rig.promise(served, 30))
                    await submitted(rig, 60)
                    lab.accounts[ROTATED] = "second"
                    rotated = await served.ask("POST", f"/v1/accounts/{second}/rotate", {"credential": ROTATED})
                    assert rotated.status == 200
                    promised += await more
                    await two.kill()
                    promised += await rig.promise(served, 20)
                    videos = await rig.settled(served, 180)
                    assert three.process.returncode is None
        outcomes = Counter((video["error"] or {}).get("code", video["status"]) for video in videos)
        assert {video["id"] for video in videos} == set(promised)
        assert len(promised) == 100
        assert outcomes.keys() <= A_KILL, outcomes
        assert outcomes["completed"] >= 90, outcomes
        billed = Counter(charge.prompt for charge in lab.invoice)
        assert max(billed.values()) == 1, "nothing is made twice"
        assert lab.foreign_calls == []
        assert asked_with_another_key(rig) == []
        assert {job.account for job in lab.video_jobs.values()} == {"first", "second"}
        used = {request.headers["authorization"].removeprefix("Bearer ") for request in lab.polls.received}
        assert used == {FIRST, SECOND, ROTATED}
        assert await rig.breaches() == []
        for log in tmp_path.glob("log-*"):
            assert not any(credential in log.read_text() for credential in ACCOUNTS)
