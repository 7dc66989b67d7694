"""Several processes and one database: stopped with SIGTERM or SIGSTOP, killed, cut off from the database."""

import asyncio
import random
import signal
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.settings import Settings
from penstock.store.opening import open_store
from tests.fake_providers import faults
from tests.fake_providers.exchange import listening
from tests.faults.rig import CREDIT, VIDEO_USD, Rig, Running, rigged, until
from tests.gateway import postgres_only, sqlite_only
from tests.ports import unused_port
from tests.unit.store.small_schema import Cluster

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

ACCEPTS_ONLY = {"PENSTOCK_WORKER": "false"}


async def in_progress(rig: Rig, count: int) -> bool:
    rows = await rig.rows("SELECT id FROM generations WHERE status = 'in_progress'")
    return len(rows) >= count


def finish(rig: Rig) -> None:
    """Let the provider complete every job, started or still to come."""
    rig.lab.states = ("queued", "completed")
    for job in rig.lab.video_jobs.values():
        job.states.append("completed")


# ------------------------------------------------------------------------------------------- providers that are away


async def tried(rig: Rig, count: int) -> bool:
    """Whether so many submissions have failed."""
    rows = await rig.rows("SELECT COUNT(*) AS count FROM attempts WHERE state = 'failed'")
    return bool(rows[0]["count"] >= count)


async def test_a_provider_that_refuses_connections_for_a_while(tmp_path: Path, database: str) -> None:
    """Videos are accepted meanwhile, and all of them are made once it listens, also by the next process."""
    async with rigged(tmp_path, database) as rig:
        rig.lab.port = unused_port()
        async with rig.serve() as served:
            promised = await rig.promise(served, 12)
            await until(partial(tried, rig, 24))
            await served.kill()
        async with rig.serve() as served:
            promised += await rig.promise(served, 12)
            await until(partial(tried, rig, 60))
            assert {video["status"] for video in await rig.videos(served)} == {"queued"}
            async with listening(rig.lab.respond, rig.lab.port):
                assert await rig.check(served, promised) == {"completed": 24}


# ------------------------------------------------------------------------------------------------------- told to stop


async def test_sigterm_under_load(tmp_path: Path, database: str) -> None:
    """No new work is accepted, submissions under way arrive, exit 0; no video is lost, made twice or unknown."""
    async with rigged(tmp_path, database) as rig:
        rig.lab.states = ("queued", "in_progress 10")
        rig.lab.videos.always(faults.slowly(1.0))
        async with rig.serve() as served:
            promised = await rig.promise(served, 24)
            await rig.lab.videos.reached(24)  # all of them on the line, none answered
            stopping = asyncio.create_task(served.stop())
            await until(partial(_is_drained, served))
            assert await stopping == 0
        states = await rig.rows("SELECT state FROM attempts")
        assert [row["state"] for row in states] == ["submitted"] * 24
        leases = await rig.rows("SELECT lease_until_ms, crashes FROM generations")
        assert {(row["lease_until_ms"], row["crashes"]) for row in leases} == {(0, 0)}, "left in good order"
        finish(rig)
        async with rig.serve() as served:
            assert await rig.check(served, promised) == {"completed": 24}


async def _is_drained(served: Running) -> bool:
    """Whether it refuses new work, or has ended."""
    try:
        ready = await served.ask("GET", "/readyz")
        refused = await served.ask("POST", "/compat/v1/videos", {"model": "video-1", "prompt": "late"})
    except (ConnectionError, EOFError):
        return True
    assert refused.status != 202 or ready.status == 200
    if ready.status == 503:
        assert (refused.status, refused.headers["x-should-retry"]) == (503, "true")
    return ready.status == 503


@pytest.mark.slow
@postgres_only
async def test_another_worker_takes_over_at_once(tmp_path: Path, database: str) -> None:
    """A regular stop gives leases back: the next worker does not wait for their end, an hour later."""
    async with rigged(tmp_path, database) as rig, rig.serve(**ACCEPTS_ONLY) as served:
        rig.lab.states = ("queued", "in_progress 10")
        async with rig.work(PENSTOCK_LEASE_SECONDS="3600") as first:
            promised = await rig.promise(served, 24)
            await until(partial(in_progress, rig, 24))
            assert await first.stop() == 0
        finish(rig)
        async with rig.work(PENSTOCK_LEASE_SECONDS="3600"):
            assert await rig.check(served, promised) == {"completed": 24}
        assert await rig.rows("SELECT id FROM procrastinate_jobs") == []


# ------------------------------------------------------------------------------------------------------ killed, stopped


@pytest.mark.slow
@postgres_only
async def test_a_worker_is_killed(tmp_path: Path, database: str) -> None:
    """Calls are accepted meanwhile, and another worker takes over."""
    async with (
        rigged(tmp_path, database) as rig,
        rig.serve(**ACCEPTS_ONLY) as served,
        rig.work() as first,
    ):
        rig.lab.states = ("queued", "in_progress 10")
        promised = await rig.promise(served, 12)
        await until(partial(in_progress, rig, 12))
        async with rig.work():
            await first.kill()
            promised += await rig.promise(served, 12)
            finish(rig)
            assert await rig.check(served, promised) == {"completed": 24}
            jobs = "SELECT id FROM procrastinate_jobs"

            async def gone() -> bool:
                return await rig.rows(jobs) == []

            await until(gone)


@pytest.mark.slow
@postgres_only
async def test_a_worker_that_was_taken_for_dead(tmp_path: Path, database: str) -> None:
    """Stopped until its leases expired, while another worker finished its videos; afterwards it changes nothing."""
    async with (
        rigged(tmp_path, database) as rig,
        rig.serve(**ACCEPTS_ONLY) as served,
        rig.work() as first,
    ):
        rig.lab.states = ("queued", "in_progress 10")
        promised = await rig.promise(served, 20)
        await until(partial(in_progress, rig, 20))
        first.process.send_signal(signal.SIGSTOP)
        finish(rig)
        async with rig.work():
            outcomes = await rig.check(served, promised)
            assert outcomes == {"completed": 20}
            before = await facts(rig)
            first.process.send_signal(signal.SIGCONT)
            await until(lambda: first.said.count("lease lost") >= 20)
            await until(partial(idle, rig))
            assert await facts(rig) == before
            assert first.process.returncode is None
            # It is one of the workers again.
            promised += await rig.promise(served, 10)
            assert await rig.check(served, promised) == {"completed": 30}
        assert await first.stop() == 0
    assert (await facts(rig))["capture"] == 30


@postgres_only
async def test_an_end_after_the_lease_was_lost_changes_nothing(tmp_path: Path, database: str) -> None:
    """Stopped between download and end, while another worker takes over and is stopped too. The video is unfinished as
    before, so only the token in its write shows that the first worker is too late.
    """
    async with (
        rigged(tmp_path, database) as rig,
        rig.serve(**ACCEPTS_ONLY) as served,
        rig.work("media.after_fsync=stop:1", PENSTOCK_LEASE_SECONDS="3600") as first,
    ):
        (video_id,) = await rig.promise(served)
        await until(first.is_stopped)
        await rig.rows("UPDATE generations SET lease_until_ms = 1 RETURNING id")  # an hour goes by
        async with rig.work("fetch.start=stop:1") as second:
            await until(second.is_stopped)
            first.process.send_signal(signal.SIGCONT)
            await until(lambda: "lease lost" in first.said)
            before = await facts(rig)
            assert (before.get("capture"), before["messages"]) == (None, [])
            assert [row["status"] for row in before["ended"]] == ["in_progress"]
            second.process.send_signal(signal.SIGCONT)
            assert await rig.check(served, [video_id]) == {"completed": 1}
            assert await second.stop() == 0
        assert await first.stop() == 0


async def facts(rig: Rig) -> dict[str, Any]:
    """What each video may have exactly once."""
    kinds = await rig.rows("SELECT kind, COUNT(*) AS count FROM transfers GROUP BY kind")
    files = sorted(path.name for path in (rig.data / "media").rglob("med_*") if path.suffix != ".part")
    messages = await rig.rows("SELECT id, event FROM messages ORDER BY id")
    ended = await rig.rows("SELECT id, status, result, completed_at_ms FROM generations ORDER BY id")
    return {row["kind"]: row["count"] for row in kinds} | {"files": files, "messages": messages, "ended": ended}


async def idle(rig: Rig) -> bool:
    return await rig.rows("SELECT id FROM procrastinate_jobs") == []


# ----------------------------------------------------------------------------------------------------------- two doors


@pytest.mark.slow
@postgres_only
async def test_one_idempotency_key_at_two_servers(tmp_path: Path, database: str) -> None:
    async with rigged(tmp_path, database) as rig, rig.serve() as one, rig.serve() as other:

        async def create(number: int) -> str:
            body = {
                "model": "video-1",
                "prompt": "video 1",
                "seconds": 4,
                "idempotency_key": "k",
                "webhook_url": rig.hook,
            }
            said = await (one if number % 2 else other).ask("POST", "/compat/v1/videos", body)
            assert said.status == 202
            return str(said.json["id"])

        ids = await asyncio.gather(*(create(number) for number in range(50)))
        assert len(set(ids)) == 1
        assert await rig.check(one, ids[:1]) == {"completed": 1}
        assert len(rig.lab.videos) == 1
        assert len(rig.deliveries) == 1


@pytest.mark.slow
async def test_cancels_at_any_moment_give_one_end(tmp_path: Path, database: str) -> None:
    """Twenty parallel DELETEs of each video at some moment: one outcome, one event, the right charge."""
    chance = random.Random(4)
    async with rigged(tmp_path, database) as rig, rig.serve() as served:
        promised = await rig.promise(served, 20)

        connections = asyncio.Semaphore(100)  # one address may have 200 at the same time

        async def delete(video_id: str) -> int:
            async with connections:
                return (await served.ask("DELETE", f"/compat/v1/videos/{video_id}")).status

        async def cancel(video_id: str) -> None:
            await asyncio.sleep(chance.uniform(0, 0.8))
            assert set(await asyncio.gather(*(delete(video_id) for _ in range(20)))) == {204}

        await asyncio.gather(*(cancel(video_id) for video_id in promised))
        outcomes = await rig.check(served, promised, frozenset({"CANCELLED"}))
        assert sum(outcomes.values()) == 20
        for video_id in promised:
            assert (await served.ask("DELETE", f"/compat/v1/videos/{video_id}")).status == 204
        assert await rig.check(served, promised, frozenset({"CANCELLED"})) == outcomes


# ------------------------------------------------------------------------------------------------- without a database


@pytest.mark.slow
@postgres_only
async def test_a_database_that_is_restarted(
    tmp_path: Path, database: str, cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    """`--monkey-seconds 600` runs longer. Each call is accepted or told to retry; nothing has to be repaired.

    Only a call whose commit got no answer is told not to retry: it may be accepted.
    """
    seconds: float = request.config.getoption("--monkey-seconds")
    chance = random.Random(7)
    promised: list[str] = []
    refused: list[int] = []
    async with rigged(tmp_path, database) as rig, rig.serve() as served, rig.work():
        until_then = asyncio.get_running_loop().time() + seconds

        async def ask() -> None:
            while asyncio.get_running_loop().time() < until_then:
                body = {
                    "model": "video-1",
                    "prompt": f"video {len(promised) + len(refused)}/{id(asyncio.current_task())}",
                }
                said = await served.ask("POST", "/compat/v1/videos", body | {"seconds": 4, "webhook_url": rig.hook})
                if said.status == 202:
                    promised.append(said.json["id"])
                else:
                    may_be_accepted = "broke while committing" in said.json["error"]["message"]
                    expected = (503, "false" if may_be_accepted else "true")
                    assert (said.status, said.headers["x-should-retry"]) == expected, said
                    refused.append(said.status)
                await asyncio.sleep(0.2)

        async def restart() -> None:
            while asyncio.get_running_loop().time() < until_then:
                await asyncio.sleep(chance.uniform(2, 4))
                await asyncio.to_thread(cluster.stop, chance.choice([signal.SIGINT, signal.SIGQUIT]))
                await asyncio.sleep(chance.uniform(0, 2))
                await asyncio.to_thread(cluster.start)

        await asyncio.gather(restart(), *(ask() for _ in range(4)))
        assert len(promised) > 20
        shown = await rig.settled(served)
        assert {video["id"] for video in shown} >= set(promised)
        assert {(video["error"] or {}).get("code", "completed") for video in shown} == {"completed"}
        await rig.check(served, promised)


# -------------------------------------------------------------------------------------------------------------- backups


@pytest.mark.slow
@sqlite_only
async def test_an_old_backup(tmp_path: Path, database: str) -> None:
    """Restored while the provider has gone on: what the backup knows is completed and charged once."""
    async with rigged(tmp_path, database) as rig:
        rig.lab.states = ("queued", "in_progress 10")
        async with rig.serve() as served:
            known = await rig.promise(served, 10)
            await until(partial(in_progress, rig, 10))
            store = await open_store(Settings(data=rig.data))
            await store.backup(tmp_path / "backup.db")
            await store.close()
            await rig.promise(served, 10)
            await until(partial(in_progress, rig, 20))
            finish(rig)
            await rig.settled(served)
            await served.kill()
        for stale in rig.data.glob("penstock.db*"):
            stale.unlink()
        (tmp_path / "backup.db").rename(rig.data / "penstock.db")
        rig.deliveries.clear()
        async with rig.serve() as served:
            shown = {video["id"]: video["status"] for video in await rig.settled(served)}
            assert shown == dict.fromkeys(known, "completed")
            assert len(rig.lab.videos) == 20, "nothing was sent again"
            left = (await served.ask("GET", "/v1/balance")).json["available"]["amount"]
            assert Decimal(str(left)) == CREDIT - 10 * VIDEO_USD
