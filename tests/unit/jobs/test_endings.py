"""Jobs that wait for the end of another generation share the questions about it."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from penstock.errors import StorageUnavailable
from penstock.generations import endpoints
from penstock.jobs.endings import Endings
from penstock.jobs.leases import Jobs
from penstock.settings import Settings
from penstock.store.base import Row
from tests.api.raw_http import until
from tests.gateway import OpenGateway, RunningGateway, postgres_only, sqlite_only, two_providers
from tests.manual_clock import ManualClock

RUNNING = 2**62  # the end of the lease of a generation that a worker runs


class Statuses:
    """A store that knows the status of each generation, and counts the questions."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.of: dict[str, str] = {}
        self.is_away = False

    async def one(self, name: str, /, **values: Any) -> Row | None:
        assert name == "get_generation_status"
        self.asked[values["id"]] += 1
        if self.is_away:
            raise StorageUnavailable("gone")
        status = self.of.get(values["id"])
        return None if status is None else {"status": status, "lease_until_ms": RUNNING, "crashes": 0}


def endings_of(store: Statuses, clock: ManualClock) -> Endings:
    return Endings(store, clock, Jobs(store, clock, Settings()))  # type: ignore[arg-type]


async def test_all_who_wait_for_a_generation_ask_together() -> None:
    store, clock = Statuses(), ManualClock()
    store.of = {"a": "queued", "b": "in_progress"}
    endings = endings_of(store, clock)
    waits = [asyncio.create_task(endings.wait(name)) for name in ["a"] * 1000 + ["b"]]
    await until(lambda: store.asked == {"a": 1, "b": 1})
    store.of["a"] = "completed"
    clock.advance(1)
    await until(lambda: sum(wait.done() for wait in waits) == 1000)
    assert store.asked == {"a": 2, "b": 2}
    store.of["b"] = "failed"
    clock.advance(1)
    await asyncio.gather(*waits)
    assert endings._asked == {}


async def test_a_generation_that_nobody_waits_for_is_not_asked_about() -> None:
    store, clock = Statuses(), ManualClock()
    store.of = {"a": "queued"}
    endings = endings_of(store, clock)
    first, second = (asyncio.create_task(endings.wait("a")) for _ in range(2))
    await until(lambda: store.asked["a"] == 1)
    first.cancel()
    await asyncio.wait([first])
    clock.advance(1)
    await until(lambda: store.asked["a"] == 2)
    second.cancel()
    await asyncio.wait([second])
    assert endings._asked == {}
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def test_an_unknown_generation_is_not_waited_for() -> None:
    await endings_of(Statuses(), ManualClock()).wait("a")


async def test_an_unavailable_store_is_told_to_all() -> None:
    store = Statuses()
    store.is_away = True
    endings = endings_of(store, ManualClock())
    ended = await asyncio.gather(*(endings.wait("a") for _ in range(3)), return_exceptions=True)
    assert [type(problem) for problem in ended] == [StorageUnavailable] * 3
    store.is_away = False
    await endings.wait("a")


# ---------------------------------------------------------------------------------------------- followers in all places


async def begin(running: RunningGateway) -> str:
    """Accept a video that follows the first one of its kind, without waiting until it is claimed."""
    running.clock.advance(0.001)  # so that its id is greater than those before
    call = running.call({"model": "video-1", "prompt": "a train"}, headers={"x-service-replay": "replay-or-record"})
    response = await endpoints.start_video(running.gateway, call)
    video_id: str = response.json["id"]
    return video_id


@postgres_only
@pytest.mark.parametrize("lease_until_ms", [0, 1], ids=["given back", "expired"])
async def test_followers_that_have_all_places_of_a_worker_run_the_video_that_they_follow(
    open_gateway: OpenGateway, lease_until_ms: int
) -> None:
    """It is queued again behind them, because its worker has stopped or died, and no place becomes free."""
    async with two_providers() as labs, open_gateway(labs=labs, worker=False) as server:
        leader = await begin(server)
        followers = [await begin(server) for _ in range(3)]
        await server.change(
            f"UPDATE generations SET lease_token = 1, lease_until_ms = {lease_until_ms} WHERE id = '{leader}'",  # noqa: S608
            f"DELETE FROM procrastinate_jobs WHERE queueing_lock = '{leader}'",  # noqa: S608
        )
        values = {"id": leader, "org_id": server.caller.org_id}
        await server.gateway.store.write(lambda tx: tx.one("defer_generation", **values))
        async with open_gateway(labs=labs, concurrent_jobs=2) as worker:
            for video_id in (*followers, leader):
                assert (await worker.wait_for_request(video_id))["status"] == "completed"
        assert len(labs[0].videos) == 1


@sqlite_only
async def test_a_follower_that_has_the_only_place_after_a_restart_runs_the_video_that_it_follows(
    open_gateway: OpenGateway,
) -> None:
    """That one took over when the first one failed, so its follower is older and was resumed before it."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs, works=False) as running:
            first, second, third = [await begin(running) for _ in range(3)]
            (claim,) = await running.rows("SELECT kind, hex(digest) AS digest FROM recording_claims")
            await running.cancel(first)
            org_id = running.caller.org_id
            await running.change(
                f"INSERT INTO recording_claims (org_id, kind, digest, request_id) "  # noqa: S608
                f"VALUES ('{org_id}', '{claim['kind']}', x'{claim['digest']}', '{third}')"
            )
        async with open_gateway(labs=labs, concurrent_jobs=1) as running:
            for video_id in (second, third):
                assert (await running.wait_for_request(video_id))["status"] == "completed"
        assert len(labs[0].videos) == 1
