"""Videos shared among workers over Postgres: handed out, given back, never lost, never driven by two."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.generations import endpoints
from penstock.jobs.cluster import QUEUE
from penstock.values import nanos
from tests.house import House, OpenHouse, neighbours, postgres_only
from tests.upstreams import faults
from tests.upstreams.lab import Lab

pytestmark = [postgres_only, pytest.mark.usefixtures("dialect")]

JOBS = "SELECT queue_name, task_name, status::text AS status, args, worker_id FROM procrastinate_jobs ORDER BY id"


@asynccontextmanager
async def door(open_house: OpenHouse, labs: tuple[Lab, Lab], **said: Any) -> AsyncIterator[House]:
    """A process that accepts and leaves the rest to others."""
    async with open_house(labs=labs, worker=False, **said) as house:
        yield house


async def soon(met: Callable[[], Awaitable[bool]], seconds: float = 10) -> None:
    """Without letting time pass for the gateways: the queue keeps its own."""
    async with asyncio.timeout(seconds):
        while True:
            if await met():
                return
            await asyncio.sleep(0.005)


async def driving(house: House, count: int = 1) -> None:
    async def met() -> bool:
        return house.gateway.jobs.running == count

    await soon(met)


async def begun(house: House, **body: Any) -> str:
    """A video that is accepted; nobody waits for it to be taken up."""
    answer = await endpoints.start_video(house.gateway, house.call({"model": "film", "prompt": "a train", **body}))
    video_id: str = answer.json["id"]
    return video_id


async def submitted(house: House, video_id: str) -> None:
    """Until the vendor has it, and we know under what name."""

    async def met() -> bool:
        return [row["state"] for row in await house.attempts(video_id)] == ["submitted"]

    await soon(met)


async def test_accepted_here_and_driven_there(open_house: OpenHouse) -> None:
    async with neighbours() as labs, door(open_house, labs) as house:
        video_id = await begun(house)
        (job,) = await house.rows(JOBS)
        assert (job["queue_name"], job["status"], job["args"]) == (QUEUE, "todo", {"request_id": video_id})
        assert (await house.shown(video_id))["status"] == "queued"
        async with open_house(labs=labs) as worker:
            assert (await worker.finished(video_id))["status"] == "completed"
            await worker.idle()

            async def gone() -> bool:
                return await house.rows(JOBS) == []

            await soon(gone)
        assert house.gateway.jobs.running == 0


async def test_picked_up_at_once(open_house: OpenHouse) -> None:
    """By a worker that was waiting already; the clock stands still, so nobody found it by looking around."""
    async with neighbours() as labs, open_house(labs=labs) as worker, door(open_house, labs) as house:
        labs[0].videos.always(faults.never_ends)
        for number in range(1, 4):
            await begun(house)
            await driving(worker, number)
        assert house.gateway.jobs.running == 0


async def test_what_is_not_accepted_is_not_queued(open_house: OpenHouse) -> None:
    async with neighbours() as labs, door(open_house, labs) as house:
        answers = await asyncio.gather(*(begun(house, idempotency_key="k") for _ in range(10)))
        assert len(set(answers)) == 1
        assert len(await house.rows(JOBS)) == 1


async def test_two_workers_share(open_house: OpenHouse) -> None:
    async with (
        neighbours() as labs,
        open_house(labs=labs, jobs_at_once=3) as one,
        open_house(labs=labs, jobs_at_once=3) as other,
        door(open_house, labs) as house,
    ):
        labs[0].videos.always(faults.never_ends)
        for _ in range(7):
            await begun(house)
        await driving(one, 3)
        await driving(other, 3)
        waiting = [job for job in await house.rows(JOBS) if job["status"] == "todo"]
        assert len(waiting) == 1, "the seventh waits until somebody has a place"


async def test_a_worker_that_stops_leaves_its_work_in_good_order(open_house: OpenHouse) -> None:
    async with neighbours() as labs, door(open_house, labs) as house:
        async with open_house(labs=labs) as first:
            video_id = await begun(house)
            await driving(first)
        (job,) = await house.rows(JOBS)
        assert (job["status"], job["worker_id"]) == ("todo", None)
        assert await house.rows("SELECT id FROM procrastinate_workers") == []
        async with open_house(labs=labs) as second:
            await driving(second)
            (row,) = await house.rows("SELECT crashes, lease_token FROM generations")
            assert (row["crashes"], row["lease_token"]) == (0, 2), "no crash, and a token of its own"
            assert (await second.finished(video_id))["status"] == "completed"
        assert len(labs[0].videos) == 1


async def test_what_a_dead_worker_held(open_house: OpenHouse) -> None:
    """Its heart stopped beating long ago, and its leases ran out."""
    async with neighbours() as labs, door(open_house, labs) as house:
        async with open_house(labs=labs) as dead:
            video_id = await begun(house)
            await driving(dead)
            before = (await house.rows("SELECT lease_until_ms FROM generations"))[0]["lease_until_ms"]
        await house.change(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')",
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers)",
            f"UPDATE generations SET lease_until_ms = {before}",  # noqa: S608
        )
        async with open_house(labs=labs) as heir:
            assert (await heir.finished(video_id))["status"] == "completed"
        assert len(labs[0].videos) == 1


async def test_the_job_of_something_that_has_ended(open_house: OpenHouse) -> None:
    """Its worker died between the end of the generation and that of the job."""
    async with neighbours() as labs, open_house(labs=labs) as house:
        video_id = (await house.video()).json["id"]
        await house.ended(video_id)
        await house.gateway.store.write(lambda tx: tx.one("defer_generation", id=video_id))

        async def gone() -> bool:
            return await house.rows(JOBS) == []

        await soon(gone)
        assert house.gateway.jobs.running == 0


async def test_what_has_no_job_although_nobody_drives_it(open_house: OpenHouse) -> None:
    async with neighbours() as labs, door(open_house, labs) as house:
        video_id = await begun(house)
        await house.change("DELETE FROM procrastinate_jobs")
        async with open_house(labs=labs) as worker:
            assert (await worker.finished(video_id))["status"] == "completed"


async def test_an_image_whose_server_died(open_house: OpenHouse) -> None:
    """It was driven where it was accepted; now whoever is there takes it up, and does not send it again."""
    async with neighbours() as labs, open_house(labs=labs) as worker:
        labs[0].images.always(faults.stalled)
        async with door(open_house, labs, drain_seconds=0) as house:
            asked = house.call(
                {"model": "picture", "prompt": "a pear", "size": "64x64"}, headers={"prefer": "respond-async"}
            )
            image_id = (await endpoints.make_images(house.gateway, asked)).json["id"]
            await labs[0].images.reached(1)
        ended = await worker.ended(image_id)
        assert (ended["status"], ended["cost"]) == ("upstream_failure", 0)
        assert len(labs[0].images) == 1


async def test_a_job_that_is_there_twice(open_house: OpenHouse) -> None:
    async with neighbours() as labs, open_house(labs=labs) as worker:
        labs[0].videos.next(faults.never_ends)
        video_id = (await worker.video()).json["id"]
        for _ in range(3):
            await worker.gateway.store.write(lambda tx: tx.one("defer_generation", id=video_id))

            async def attended() -> bool:
                return all(job["status"] == "doing" for job in await worker.rows(JOBS))

            await soon(attended)
        assert worker.gateway.jobs.running == 1
        assert len(labs[0].videos) == 1
        labs[0].films[labs[0].invoice[0].id].states.append("completed")
        assert (await worker.finished(video_id))["status"] == "completed"
        assert await worker.money() == (nanos("9.6"), 0)

        async def gone() -> bool:
            return await worker.rows(JOBS) == []

        await soon(gone)


async def test_a_cancel_that_arrives_elsewhere(open_house: OpenHouse) -> None:
    """Told to the driver at once: its next poll would have been long in coming."""
    async with neighbours() as labs, open_house(labs=labs) as worker, door(open_house, labs) as house:
        labs[0].videos.next(faults.never_ends)
        video_id = await begun(house)
        await submitted(house, video_id)
        await house.cancel(video_id)

        async def cancelled() -> bool:
            return bool((await house.record(video_id))["status"] == "cancelled")

        await soon(cancelled)
        assert labs[0].invoice == []
        await worker.idle()


async def test_connections_that_break(open_house: OpenHouse) -> None:
    """Those of the worker and of its listener; nothing that is driven is disturbed, and new work is heard of."""
    async with neighbours() as labs, open_house(labs=labs) as worker, door(open_house, labs) as house:
        labs[0].videos.next(faults.never_ends)
        first = await begun(house)
        await driving(worker)
        await submitted(house, first)
        token = (await house.rows("SELECT lease_token FROM generations"))[0]["lease_token"]
        await house.change(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        second = await begun(house)
        await driving(worker, 2)
        assert (await worker.finished(second))["status"] == "completed"
        row = await house.rows(f"SELECT lease_token, crashes, status FROM generations WHERE id = '{first}'")  # noqa: S608
        assert (row[0]["lease_token"], row[0]["crashes"]) == (token, 0)


async def test_a_worker_whose_place_was_given_away(open_house: OpenHouse) -> None:
    """Stopped for so long that others forgot it: it cannot fetch under its old name, and takes a new one."""
    async with neighbours() as labs, open_house(labs=labs) as worker, door(open_house, labs) as house:
        labs[0].videos.next(faults.never_ends)
        await begun(house)
        await driving(worker)
        await house.change("DELETE FROM procrastinate_workers")
        second = await begun(house)
        await driving(worker, 2)
        assert len(await house.rows("SELECT id FROM procrastinate_workers")) == 1
        assert (await worker.finished(second))["status"] == "completed"
        assert len(labs[0].videos) == 2


async def test_a_clock_that_is_late(open_house: OpenHouse) -> None:
    """What was just accepted is free, whatever the worker's own clock says."""
    async with neighbours() as labs, door(open_house, labs) as house:
        late = ManualClock(house.clock.now_ms() - 3_600_000)
        async with open_house(labs=labs, clock=late) as worker:
            video_id = await begun(house)
            assert (await worker.finished(video_id))["status"] == "completed"
