"""kill -9 at every failpoint between acceptance and end, and at random: nothing is lost, made or charged twice."""

import asyncio
import random
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from penstock import failpoints
from tests.faults.rig import EndedEarly, Rig, Running, rigged, until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

BATCH = 16
# At which passage of each place the process dies, with a batch under way. Messages first: where others may be alive,
# what was being sent, or was about to be, waits for a lease to end, and that time is better used.
PLACES = {
    "hook.sent": 8,
    "hook.after_2xx": 8,
    "hook.between": 8,
    "settle.after_commit": 8,
    "accept.in_tx": 8,
    "accept.after_commit": 8,
    "submit.intent_committed": 8,
    "submit.response_read": 8,
    "submit.id_committed": 8,
    "poll.mid": 16,
    "fetch.start": 8,
    "fetch.mid": 8,
    "seal.before_sign": 8,
    "seal.after_sign": 8,
    "media.after_fsync": 8,
    "settle.in_tx": 8,
}
# Not between a promise and its end, or in test_deliveries.py.
ELSEWHERE = {"purge.files_gone", "migrate.mid", "deliver.after_made", "deliver.after_copy"}
UNKNOWN = frozenset({"UPSTREAM_OUTCOME_UNKNOWN"})


def test_every_failpoint_is_killed_at() -> None:
    assert {*PLACES, "accept.before_tx", *ELSEWHERE} == failpoints.NAMES


async def test_killed_at_every_failpoint(tmp_path: Path, database: str) -> None:
    """One installation survives all kills; each process goes on with what the last one left."""
    promised: list[str] = []
    async with rigged(tmp_path, database) as rig:
        for place, passage in PLACES.items():
            promised += await rig.struck(f"{place}=kill:{passage}", BATCH)
            assert await rig.breaches() == [], place
        async with rig.serve() as served:
            outcomes = await rig.check(served, promised, UNKNOWN)
            # Killed between the intent to send and the answer's arrival: sent at most once, and never again.
            assert outcomes["completed"] > BATCH
            assert outcomes["UPSTREAM_OUTCOME_UNKNOWN"] > 0
            assert await served.stop() == 0
        said = await rig.audit()
        assert said.startswith(f"{outcomes['UPSTREAM_OUTCOME_UNKNOWN']} orphans: ")


async def test_killed_before_and_after_the_commit_of_an_acceptance(tmp_path: Path, database: str) -> None:
    """Killed before the commit there is nothing: no video, no hold, nothing sent. Right after it there is a video, even
    though nobody heard of it.
    """
    async with rigged(tmp_path, database) as rig:
        assert await rig.struck("accept.before_tx=kill", 1) == []
        assert await rig.struck("accept.in_tx=kill", 1) == []
        assert await rig.rows("SELECT id FROM requests") == []
        assert await rig.breaches() == []
        assert await rig.struck("accept.after_commit=kill", 1) == []
        assert len(await rig.rows("SELECT id FROM generations WHERE status = 'queued'")) == 1
        assert len(rig.lab.videos) == 0
        async with rig.serve() as served:
            assert await rig.check(served, []) == {"completed": 1}
            assert len(rig.lab.videos) == 1


@pytest.mark.slow
async def test_killed_after_the_response_was_sent(tmp_path: Path, database: str) -> None:
    async with rigged(tmp_path, database) as rig:
        async with rig.serve() as served:
            (video_id,) = await rig.promise(served)
            await served.kill()
        async with rig.serve() as served:
            assert (await served.ask("GET", f"/compat/v1/videos/{video_id}")).json["id"] == video_id
            await rig.check(served, [video_id], UNKNOWN)


@pytest.mark.slow
async def test_a_video_that_crashes_each_worker_fails_alone(tmp_path: Path, database: str) -> None:
    """It fails after five processes; the other videos, which ran each time, do not."""
    async with rigged(tmp_path, database) as rig:
        rig.lab.states = ("queued", "in_progress 10")
        async with rig.serve() as served:
            promised = await rig.promise(served, 20)
            await until(partial(_are_polled, rig, 20))
            guilty = rig.lab.video_jobs[sorted(rig.lab.video_jobs)[7]]
            await served.kill()
        guilty.states.append("completed")
        deaths = 0
        while deaths < 12:
            with suppress(EndedEarly):
                async with rig.serve("fetch.start=kill") as served:
                    await until(partial(_is_over, rig, served))
                    if served.process.returncode is None:
                        break
            deaths += 1
        assert 3 <= deaths <= 5, "the one at the beginning may count"
        for job in rig.lab.video_jobs.values():
            job.states.append("completed")
        async with rig.serve() as served:
            outcomes = await rig.check(served, promised, frozenset({"INTERNAL_ERROR"}))
            assert outcomes == {"completed": 19, "INTERNAL_ERROR": 1}
            (failed,) = [video for video in await rig.videos(served) if video["error"]]
            assert failed["prompt"] == guilty.fields["prompt"]


async def _are_polled(rig: Rig, videos: int) -> bool:
    """All videos are at the provider, their ids are stored, and they were polled twice on average."""
    submitted = await rig.rows("SELECT id FROM attempts WHERE state = 'submitted'")
    return len(submitted) == videos and len(rig.lab.polls) > 2 * videos


async def _is_over(rig: Rig, served: Running) -> bool:
    """The process crashed, or the video failed."""
    failed = await rig.rows("SELECT id FROM generations WHERE status = 'failed'")
    return served.process.returncode is not None or bool(failed)


@pytest.mark.slow
async def test_killed_at_random(tmp_path: Path, database: str, request: pytest.FixtureRequest) -> None:
    """`--kills 500` runs for a night."""
    kills: int = request.config.getoption("--kills")
    chance = random.Random(kills)
    promised: list[str] = []
    async with rigged(tmp_path, database) as rig:
        for _ in range(kills):
            async with rig.serve() as served:
                asking = asyncio.create_task(_keep_asking(rig, promised, served, chance))
                await asyncio.sleep(chance.uniform(0.05, 2.0))
                await served.kill()
                await asking
            assert await rig.breaches() == []
        async with rig.serve() as served:
            promised += await rig.promise(served, 20)
            promised += await rig.promise_sounds(served, 2)
            # Who is killed five times in a row before it got anywhere is taken for a killer: seldom, and for free.
            outcomes = await rig.check(served, promised, UNKNOWN | {"INTERNAL_ERROR"})
            assert outcomes["INTERNAL_ERROR"] <= len(promised) // 100


async def _keep_asking(rig: Rig, promised: list[str], served: Running, chance: random.Random) -> None:
    while served.process.returncode is None:
        try:
            promised += await rig.promise(served, 8)
            promised += await rig.promise_sounds(served, 1)
        except OSError:
            return
        await asyncio.sleep(chance.uniform(0, 0.3))
