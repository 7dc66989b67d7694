"""Videos shared among workers over Postgres: handed out, given back, never lost, never run by two workers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import psycopg
import pytest
import structlog
from procrastinate import PsycopgConnector, exceptions, sql

from penstock.event_loop import cancel_and_wait
from penstock.generations import endpoints
from penstock.jobs import cluster
from penstock.jobs.cluster import QUEUE, Cluster, JobPlaces
from penstock.jobs.leases import Jobs
from penstock.schema import Caller
from penstock.store.postgres import PostgresStore, connection_string
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.gateway import OpenGateway, RunningGateway, postgres_only, two_providers
from tests.leases import claim_lease
from tests.manual_clock import ManualClock

pytestmark = [postgres_only, pytest.mark.usefixtures("dialect")]

JOBS = "SELECT queue_name, task_name, status::text AS status, args, worker_id FROM procrastinate_jobs ORDER BY id"


@asynccontextmanager
async def open_server(
    open_gateway: OpenGateway, labs: tuple[ScriptedProvider, ScriptedProvider], **settings: Any
) -> AsyncIterator[RunningGateway]:
    """A process that accepts videos and runs none."""
    async with open_gateway(labs=labs, worker=False, **settings) as running:
        yield running


@asynccontextmanager
async def open_connector(running: RunningGateway, places: JobPlaces) -> AsyncIterator[tuple[cluster._Connector, int]]:
    """The connection of a worker to the queue, with the worker's number."""
    gateway = running.gateway
    connector = cluster._Connector(gateway.jobs, gateway.store, places, gateway.settings.database)
    await connector.open_async()
    try:
        yield connector, (await connector.execute_query_one_async(sql.queries["register_worker"]))["worker_id"]
    finally:
        await connector.close_async()


async def soon(met: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Wait without moving the gateways' clock: the queue uses real time."""
    async with asyncio.timeout(seconds):
        while True:
            if await met():
                return
            await asyncio.sleep(0.005)


async def driving(running: RunningGateway, count: int = 1) -> None:
    async def met() -> bool:
        return running.gateway.jobs.running == count

    await soon(met)


async def begun(running: RunningGateway, caller: Caller | None = None, **body: Any) -> str:
    """Accept a video without waiting until it is claimed."""
    call = running.call({"model": "video-1", "prompt": "a train", **body}, caller=caller)
    response = await endpoints.start_video(running.gateway, call)
    video_id: str = response.json["id"]
    return video_id


async def claimed(running: RunningGateway, count: int) -> set[str]:
    """The videos that workers have taken from the queue, once there are so many."""
    found: set[str] = set()

    async def met() -> bool:
        found.update(row["id"] for row in await running.rows("SELECT id FROM generations WHERE lease_token > 0"))
        return len(found) >= count

    await soon(met)
    return found


async def submitted(running: RunningGateway, video_id: str) -> None:
    """Wait until the provider has the job and its upstream id is stored."""

    async def met() -> bool:
        return [row["state"] for row in await running.attempts(video_id)] == ["submitted"]

    await soon(met)


async def test_accepted_by_one_process_and_run_by_another(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        video_id = await begun(running)
        (job,) = await running.rows(JOBS)
        assert (job["queue_name"], job["status"], job["args"]) == (QUEUE, "todo", {"request_id": video_id})
        assert (await running.get_video(video_id))["status"] == "queued"
        async with open_gateway(labs=labs) as worker:
            assert (await worker.wait_for_video(video_id))["status"] == "completed"
            await worker.wait_until_idle()

            async def gone() -> bool:
                return await running.rows(JOBS) == []

            await soon(gone)
        assert running.gateway.jobs.running == 0


async def test_a_waiting_worker_starts_at_once(open_gateway: OpenGateway) -> None:
    """The worker is notified: the clock does not move, so it was not found by a periodic search."""
    async with two_providers() as labs, open_gateway(labs=labs) as worker, open_server(open_gateway, labs) as running:
        labs[0].videos.always(faults.never_ends)
        for number in range(1, 4):
            await begun(running)
            await driving(worker, number)
        assert running.gateway.jobs.running == 0


async def test_a_refused_call_is_not_queued(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        videos = await asyncio.gather(*(begun(running, idempotency_key="k") for _ in range(10)))
        assert len(set(videos)) == 1
        assert len(await running.rows(JOBS)) == 1


async def test_two_workers_share_the_videos(open_gateway: OpenGateway) -> None:
    async with (
        two_providers() as labs,
        open_gateway(labs=labs, concurrent_jobs=4) as one,
        open_gateway(labs=labs, concurrent_jobs=4) as other,
        open_server(open_gateway, labs) as running,
    ):
        labs[0].videos.always(faults.never_ends)
        for _ in range(7):
            await begun(running)
        await driving(one, 3)
        await driving(other, 3)
        waiting = [job for job in await running.rows(JOBS) if job["status"] == "todo"]
        assert len(waiting) == 1, "the seventh waits until somebody has a place"


async def test_organizations_take_turns(open_gateway: OpenGateway) -> None:
    """Several videos of one organization wait before those of two others: each gets as many places."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        labs[0].videos.always(faults.never_ends)
        callers = [running.caller, *[await running.create_caller_in_new_org() for _ in range(2)]]
        videos = {caller.org_id: [await begun(running, caller) for _ in range(3)] for caller in callers}
        async with open_gateway(labs=labs, concurrent_jobs=7) as worker:
            await driving(worker, 6)
            taken = await claimed(running, 6)
            for first, second, third in videos.values():
                assert taken >= {first, second}, "the oldest of each organization"
                assert third not in taken


async def test_a_full_worker_takes_the_video_of_another_organization_next(open_gateway: OpenGateway) -> None:
    """It passes the videos of the organization that has more places than others."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        labs[0].videos.always(faults.never_ends)
        second, third = [await running.create_caller_in_new_org() for _ in range(2)]
        async with open_gateway(labs=labs, concurrent_jobs=3) as worker:
            videos = [await begun(running) for _ in range(4)]
            await driving(worker, 2)
            await begun(running, second)
            await driving(worker, 3)
            before = await claimed(running, 3)
            theirs = await begun(running, third)
            await submitted(running, videos[0])
            await running.cancel(videos[0])
            assert await claimed(running, 4) - before == {theirs}


async def test_an_organization_leaves_places_to_others_however_many_videos_it_has(open_gateway: OpenGateway) -> None:
    """Their videos start although none of the many ends."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        labs[0].videos.always(faults.never_ends)
        for _ in range(14):
            await begun(running)
        async with open_gateway(labs=labs, concurrent_jobs=12) as worker:
            await driving(worker, 10)
            for number in range(2):
                other = await running.create_caller_in_new_org()
                theirs = await begun(running, other)
                assert theirs in await claimed(running, 11 + number)
            await driving(worker, 12)


async def test_a_place_that_is_given_back_is_taken_at_once(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a video of the same organization, which had all places that it may have; the worker need not look again."""
    monkeypatch.setattr(cluster, "_LOOK_SECONDS", 3600.0)
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        labs[0].videos.always(faults.never_ends)
        videos = [await begun(running) for _ in range(3)]
        async with open_gateway(labs=labs, concurrent_jobs=2, lease_seconds=36_000.0) as worker:
            await driving(worker, 1)
            for number, video in enumerate(videos[:2], 1):
                await submitted(running, video)
                await running.cancel(video)
                assert videos[number] in await claimed(running, number + 1)


async def test_a_video_that_another_worker_is_taking_is_not_replaced_by_one_too_many(open_gateway: OpenGateway) -> None:
    """While it is locked, it looks as if only the organization that has all its places had videos."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        for caller in (running.caller, await running.create_caller_in_new_org()):
            await begun(running, caller)
        numbers = [job["priority"] for job in await running.rows("SELECT priority FROM procrastinate_jobs ORDER BY 1")]
        places = JobPlaces(2)
        places.take(numbers[0])
        database = running.gateway.settings.database
        async with (
            open_connector(running, places) as (connector, worker_id),
            await psycopg.AsyncConnection.connect(connection_string(database)) as other,
        ):
            await other.execute("SELECT id FROM procrastinate_jobs WHERE priority = %s FOR UPDATE", numbers[1:])
            assert await connector._fetch_next(worker_id) == {"id": None}
            await other.rollback()
            assert (await connector._fetch_next(worker_id))["priority"] == numbers[1]


async def test_the_turn_of_one_organization_after_another_is_found_with_one_query(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the last one comes before the first, as always if there is only one."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        callers = [running.caller, *[await running.create_caller_in_new_org() for _ in range(2)]]
        for caller in callers:
            for _ in range(2):
                await begun(running, caller)
        numbers = [job["priority"] for job in await running.rows("SELECT priority FROM procrastinate_jobs ORDER BY 1")]
        highest, lowest, middle = numbers[-1], numbers[0], numbers[2]
        await begun(running)
        alone = (await running.rows("SELECT priority FROM procrastinate_jobs ORDER BY id DESC"))[0]["priority"]
        queries = 0
        execute = PsycopgConnector.execute_query_all_async

        async def counted(self: PsycopgConnector, query: Any, **arguments: Any) -> Any:
            nonlocal queries
            queries += 1
            return await execute(self, query, **arguments)

        monkeypatch.setattr(PsycopgConnector, "execute_query_all_async", counted)
        async with open_connector(running, JobPlaces(1000)) as (connector, worker_id):
            found = [(await connector._fetch_next(worker_id))["priority"] for _ in range(7)]
        assert found == [highest, middle, lowest, highest, middle, lowest, alone]
        assert queries == 7


async def test_organizations_without_a_place_are_passed_over_also_after_the_last(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn is that of the lowest; the highest has all its places, so the middle one comes, and then nobody."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        for caller in (running.caller, *[await running.create_caller_in_new_org() for _ in range(2)]):
            await begun(running, caller)
        lowest, middle, highest = [
            job["priority"] for job in await running.rows("SELECT priority FROM procrastinate_jobs ORDER BY 1")
        ]
        async with open_connector(running, JobPlaces(1000)) as (connector, worker_id):
            connector._turn = lowest
            monkeypatch.setattr(connector._places, "full", lambda: [lowest, highest])
            assert (await connector._fetch_next(worker_id))["priority"] == middle
            assert await connector._fetch_next(worker_id) == {"id": None}


async def test_the_queue_is_read_by_its_index_whatever_is_known_of_its_length(open_gateway: OpenGateway) -> None:
    """The plan is made once, perhaps when the queue is empty."""
    async with open_gateway(works=False, worker=False) as running:
        await running.change("DELETE FROM procrastinate_jobs", "ANALYZE procrastinate_jobs")
        async with open_connector(running, JobPlaces(10)) as (connector, worker_id):
            values = {"turn": 0, "full": [1, 2], "worker_id": worker_id}
            rows = await connector.execute_query_all_async("EXPLAIN " + cluster._FETCH_NEXT, **values)
        plan = "\n".join(row["QUERY PLAN"] for row in rows)
        assert "procrastinate_jobs_priority_idx_v1" in plan
        assert "Seq Scan" not in plan
        assert "Sort" not in plan


async def test_jobs_that_end_together_are_removed_together(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(works=False, worker=False) as running:
        for _ in range(5):
            await begun(running)
        ids = [job["id"] for job in await running.rows("SELECT id FROM procrastinate_jobs")]
        transactions = 0
        write = PostgresStore.write

        async def counted(store: PostgresStore, work: Any, **options: Any) -> Any:
            nonlocal transactions
            transactions += 1
            return await write(store, work, **options)

        monkeypatch.setattr(PostgresStore, "write", counted)
        async with open_connector(running, JobPlaces(10)) as (connector, _):
            finished = {"status": "succeeded", "delete_job": True}
            ends = [
                connector.execute_query_async(sql.queries["finish_job"], job_id=job_id, **finished)
                for job_id in [*ids[1:], 2**60]  # the last was removed by somebody else
            ]
            await asyncio.gather(*ends)
        assert [job["id"] for job in await running.rows("SELECT id FROM procrastinate_jobs")] == ids[:1]
        assert transactions == 1


def test_each_organization_may_have_nine_tenths_of_the_places_that_others_leave() -> None:
    places = JobPlaces(1000)

    def take_all(organization: int) -> int:
        taken = 0
        while organization not in places.full():
            places.take(organization)
            taken += 1
        return taken

    assert [take_all(organization) for organization in range(4)] == [900, 90, 9, 1]
    places.give_back(0)
    assert 4 not in places.full(), "the place is for those that have none"
    assert set(places.full()) == {0, 1, 2, 3}


def test_a_worker_with_one_place_uses_it() -> None:
    places = JobPlaces(1)
    assert places.full() == []
    places.take(7)
    assert places.full() == [7]
    places.give_back(7)
    assert places.full() == []


async def test_a_worker_that_stops_gives_its_videos_back(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        async with open_gateway(labs=labs) as first:
            video_id = await begun(running)
            await driving(first)
        (job,) = await running.rows(JOBS)
        assert (job["status"], job["worker_id"]) == ("todo", None)
        assert await running.rows("SELECT id FROM procrastinate_workers") == []
        async with open_gateway(labs=labs) as second:
            await driving(second)
            (row,) = await running.rows("SELECT crashes, lease_token FROM generations")
            assert (row["crashes"], row["lease_token"]) == (0, 2), "no crash, and a token of its own"
            assert (await second.wait_for_video(video_id))["status"] == "completed"
        assert len(labs[0].videos) == 1


@pytest.mark.parametrize("failures", [1, 4])
async def test_a_worker_that_stops_gives_its_videos_back_although_connections_are_lost(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        async with open_gateway(labs=labs) as worker:
            await begun(running)
            await driving(worker)
            lose_connections(monkeypatch, sql.queries["retry_job"], failures)
        (job,) = await running.rows(JOBS)
        assert (job["status"], job["worker_id"]) == ("todo", None)


@pytest.mark.parametrize("query", ["retry_job", "unregister_worker"])
async def test_a_worker_that_stops_while_the_database_is_unavailable(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """No task of its fails unnoticed, and what it could not write is done by others."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        with structlog.testing.capture_logs() as lines:
            async with open_gateway(labs=labs) as worker:
                await begun(running)
                await driving(worker)
                lose_connections(monkeypatch, sql.queries[query], 1000)
        assert [line["log_level"] for line in lines if line["event"] == "queue not reached while stopping"] == [
            "warning"
        ]
        assert len(await running.rows("SELECT id FROM procrastinate_workers")) == (query == "unregister_worker")
        assert [job["status"] for job in await running.rows(JOBS)] == ["doing" if query == "retry_job" else "todo"]


def lose_connections(monkeypatch: pytest.MonkeyPatch, lost_query: str, count: int) -> None:
    """Let so many executions of one of Procrastinate's queries fail."""
    execute = PsycopgConnector.execute_query_async
    failures = iter(range(count))

    async def execute_or_fail(connector: PsycopgConnector, query: Any, **arguments: Any) -> None:
        if query == lost_query and next(failures, None) is not None:
            raise exceptions.ConnectorException from psycopg.OperationalError("the connection is lost")
        await execute(connector, query, **arguments)

    monkeypatch.setattr(PsycopgConnector, "execute_query_async", execute_or_fail)


async def test_videos_of_a_dead_worker_are_put_back(open_gateway: OpenGateway) -> None:
    """Its last heartbeat is long ago, and its leases have expired."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        async with open_gateway(labs=labs) as dead:
            video_id = await begun(running)
            await driving(dead)
            before = (await running.rows("SELECT lease_until_ms FROM generations"))[0]["lease_until_ms"]
        await running.change(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')",
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers)",
            f"UPDATE generations SET lease_until_ms = {before}",  # noqa: S608
        )
        async with open_gateway(labs=labs) as heir:
            assert (await heir.wait_for_video(video_id))["status"] == "completed"
        assert len(labs[0].videos) == 1


async def test_the_queued_job_of_an_ended_video_is_removed(open_gateway: OpenGateway) -> None:
    """Its worker died between the end of the generation and the end of the job."""
    async with two_providers() as labs, open_gateway(labs=labs) as running:
        video_id = (await running.video()).json["id"]
        await running.wait_for_request(video_id)
        values = {"id": video_id, "org_id": running.caller.org_id}
        await running.gateway.store.write(lambda tx: tx.one("defer_generation", **values))

        async def gone() -> bool:
            return await running.rows(JOBS) == []

        await soon(gone)
        assert running.gateway.jobs.running == 0


async def test_a_video_without_job_and_worker_is_queued_again(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        video_id = await begun(running)
        await running.change("DELETE FROM procrastinate_jobs")
        async with open_gateway(labs=labs) as worker:
            assert (await worker.wait_for_video(video_id))["status"] == "completed"


async def test_an_image_whose_process_died(open_gateway: OpenGateway) -> None:
    """It ran where it was accepted; now another worker claims it, and does not send it again."""
    async with two_providers() as labs, open_gateway(labs=labs) as worker:
        labs[0].images.always(faults.stalled)
        async with open_server(open_gateway, labs, drain_seconds=0) as running:
            asked = running.call(
                {"model": "image-1", "prompt": "a pear", "size": "64x64"}, headers={"prefer": "respond-async"}
            )
            image_id = (await endpoints.make_images(running.gateway, asked)).json["id"]
            await labs[0].images.reached(1)
        ended = await worker.wait_for_request(image_id)
        assert (ended["status"], ended["cost"]) == ("upstream_failure", 0)
        assert len(labs[0].images) == 1


async def test_a_job_that_is_queued_twice(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs, open_gateway(labs=labs) as worker:
        labs[0].videos.next(faults.never_ends)
        video_id = (await worker.video()).json["id"]
        values = {"id": video_id, "org_id": worker.caller.org_id}
        for _ in range(3):
            await worker.gateway.store.write(lambda tx: tx.one("defer_generation", **values))

            async def attended() -> bool:
                return all(job["status"] == "doing" for job in await worker.rows(JOBS))

            await soon(attended)
        assert worker.gateway.jobs.running == 1
        assert len(labs[0].videos) == 1
        labs[0].video_jobs[labs[0].invoice[0].id].states.append("completed")
        assert (await worker.wait_for_video(video_id))["status"] == "completed"
        assert await worker.money() == (nanos("9.6"), 0)

        async def gone() -> bool:
            return await worker.rows(JOBS) == []

        await soon(gone)


async def test_a_cancel_that_arrives_at_another_process(open_gateway: OpenGateway) -> None:
    """The worker is notified at once; its next poll would be much later."""
    async with two_providers() as labs, open_gateway(labs=labs) as worker, open_server(open_gateway, labs) as running:
        labs[0].videos.next(faults.never_ends)
        video_id = await begun(running)
        await submitted(running, video_id)
        await running.cancel(video_id)

        async def cancelled() -> bool:
            return bool((await running.record(video_id))["status"] == "cancelled")

        await soon(cancelled)
        assert labs[0].invoice == []
        await worker.wait_until_idle()


async def test_broken_connections_disturb_nothing(open_gateway: OpenGateway) -> None:
    """Those of the worker and of its listener: running jobs go on, and new ones are noticed."""
    async with two_providers() as labs, open_gateway(labs=labs) as worker, open_server(open_gateway, labs) as running:
        labs[0].videos.next(faults.never_ends)
        first = await begun(running)
        await driving(worker)
        await submitted(running, first)
        token = (await running.rows("SELECT lease_token FROM generations"))[0]["lease_token"]
        await running.change(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        second = await begun(running)
        await driving(worker, 2)
        assert (await worker.wait_for_video(second))["status"] == "completed"
        row = await running.rows(f"SELECT lease_token, crashes, status FROM generations WHERE id = '{first}'")  # noqa: S608
        assert (row[0]["lease_token"], row[0]["crashes"]) == (token, 0)


async def test_a_worker_that_was_removed_registers_again(open_gateway: OpenGateway) -> None:
    """Stopped for so long that others removed it: it cannot fetch under its old id and takes a new one."""
    async with two_providers() as labs, open_gateway(labs=labs) as worker, open_server(open_gateway, labs) as running:
        labs[0].videos.next(faults.never_ends)
        await begun(running)
        await driving(worker)
        await running.change("DELETE FROM procrastinate_workers")
        second = await begun(running)
        await driving(worker, 2)
        assert len(await running.rows("SELECT id FROM procrastinate_workers")) == 1
        assert (await worker.wait_for_video(second))["status"] == "completed"
        assert len(labs[0].videos) == 2


async def test_a_job_that_got_lost_is_queued_again_within_the_lease(open_gateway: OpenGateway) -> None:
    """Its worker died right after it had taken the lease."""
    async with open_gateway(works=False, worker=False) as running:
        video_id = await begun(running)
        await running.change("DELETE FROM procrastinate_jobs")
        store = running.gateway.store
        settings = msgspec.structs.replace(running.gateway.settings, worker=True)
        assert await claim_lease(Jobs(store, running.clock, settings), video_id) is not None
        ours = Jobs(store, running.clock, settings)
        cluster = Cluster(ours, store, running.clock, settings)
        ours.rescue_with(cluster.rescue)
        async with cluster._app.open_async():
            renewing = asyncio.create_task(ours.renew_forever())
            looks = 0

            async def sleeps() -> bool:
                return running.clock.sleeping == 1

            await soon(sleeps)
            while not await running.rows(JOBS):
                running.clock.advance(settings.lease_seconds / 12)
                await soon(sleeps)
                looks += 1
            await cancel_and_wait([renewing])
        assert looks <= 10, "of twelve in the time of a lease; a worker reads the queue once in this time too"


async def test_a_worker_whose_clock_is_slow(open_gateway: OpenGateway) -> None:
    """A video that was just accepted can be claimed, whatever the worker's clock says."""
    async with two_providers() as labs, open_server(open_gateway, labs) as running:
        late = ManualClock(running.clock.now_ms() - 3_600_000)
        async with open_gateway(labs=labs, clock=late) as worker:
            video_id = await begun(running)
            assert (await worker.wait_for_video(video_id))["status"] == "completed"
