"""Accepted work is driven once at a time, taken up again after a crash, and left in good order."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from penstock.clock import cancel_and_wait
from penstock.errors import StorageUnavailable
from penstock.jobs.leases import Drive, Jobs, Lease, LeaseLost
from penstock.store.base import Transaction
from tests.gateway import OpenGateway, RunningGateway, sqlite_only


class Drivers:
    """Stands where `drive` does: each generation waits for the test, which says how it ends."""

    def __init__(self) -> None:
        self.begun: list[Lease] = []
        self.ended: list[str] = []
        self._ends: dict[str, asyncio.Future[None]] = {}

    async def __call__(self, lease: Lease) -> None:
        self.begun.append(lease)
        end = self._ends[lease.id] = asyncio.get_running_loop().create_future()
        await end
        self.ended.append(lease.id)

    def finish(self, request_id: str) -> None:
        self._ends[request_id].set_result(None)

    def fail(self, request_id: str, problem: Exception) -> None:
        self._ends[request_id].set_exception(problem)

    @property
    def ids(self) -> list[str]:
        return [lease.id for lease in self.begun]


@asynccontextmanager
async def jobs(running: RunningGateway, driver: Drive) -> AsyncIterator[Jobs]:
    """One more process on the same database."""
    made = Jobs(running.gateway.store, running.clock, running.gateway.settings)
    made.driven_by(driver)
    try:
        yield made
    finally:
        await made.stop()


async def promised(running: RunningGateway, count: int = 1) -> list[str]:
    """Videos that nobody drives yet, in the order of their ids."""
    ids = []
    for _ in range(count):
        running.clock.advance(0.001)
        ids.append((await running.video(seconds=1)).json["id"])
    return ids


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while True:
            if met():
                return
            await asyncio.sleep(0.002)


async def row(running: RunningGateway, request_id: str) -> dict[str, int]:
    found = await running.gateway.store.one("get_generation", id=request_id, org_id=running.caller.org_id)
    assert found is not None
    return found


# ------------------------------------------------------------------------------------------------------------- driving


@sqlite_only
async def test_work_is_started_and_awaited(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            (request_id,) = await promised(running)
            lease = await ours.claim(request_id)
            assert lease is not None
            ours.start(lease)
            assert ours.running == 1
            assert await ours.wait(request_id, 0.01) is False, "it goes on"
            driver.finish(request_id)
            assert await ours.wait(request_id, 5) is True
            assert ours.running == 0
            assert await ours.wait(request_id, 5) is True, "nothing to wait for any more"


@sqlite_only
async def test_a_driver_that_fails_takes_nobody_along(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            first, second, third, fourth = ids = await promised(running, 4)
            assert await ours.resume() == 4
            await turns()
            assert sorted(driver.ids) == ids
            driver.fail(first, ValueError("a fault of ours"))
            driver.fail(second, LeaseLost(second))
            driver.fail(third, StorageUnavailable("away"))
            await until(lambda: ours.running == 1)
            driver.finish(fourth)
            await until(lambda: ours.running == 0)
            assert driver.ended == [fourth]


@sqlite_only
async def test_a_nudge_reaches_the_driver(open_gateway: OpenGateway) -> None:
    heard = asyncio.Event()

    async def driver(lease: Lease) -> None:
        with lease.bell() as bell:
            await bell.wait()
        heard.set()

    async with open_gateway(works=False, worker=False) as running, jobs(running, driver) as ours:
        (request_id,) = await promised(running)
        await ours.resume()
        await turns()
        ours.nudge("req_somebody_elses")
        await turns()
        assert not heard.is_set()
        ours.nudge(request_id)
        await asyncio.wait_for(heard.wait(), 5)


def test_a_nudge_that_came_before_anybody_listened() -> None:
    async def main() -> None:
        lease = Lease("req_1", 1)
        lease.nudge()
        with lease.bell() as bell:
            assert bell.is_set()
        with lease.bell() as bell, lease.bell() as other:
            assert not bell.is_set()
            lease.nudge()
            assert bell.is_set()
            assert other.is_set()

    asyncio.run(main())


# ------------------------------------------------------------------------------------------------------------- claiming


async def test_of_many_one_takes_it(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running, jobs(running, Drivers()) as ours:
        (request_id,) = await promised(running)
        leases = await asyncio.gather(*(ours.claim(request_id) for _ in range(20)))
        (lease,) = [one for one in leases if one is not None]
        found = await row(running, request_id)
        assert (found["lease_token"], found["crashes"]) == (lease.token, 0)


async def test_a_lease_that_nobody_renews(open_gateway: OpenGateway) -> None:
    """Thirty seconds without a sign of life, and whoever comes next shuts the first one out."""
    async with open_gateway(works=False, worker=False) as running, jobs(running, Drivers()) as ours:
        (request_id,) = await promised(running)
        first = await ours.claim(request_id)
        assert first is not None
        running.clock.advance(29)
        assert await ours.claim(request_id) is None
        running.clock.advance(2)
        second = await ours.claim(request_id)
        assert second is not None
        assert (second.token, second.crashes) == (first.token + 1, 1)

        async def write(tx: Transaction) -> tuple[int, int]:
            values = {"id": request_id, "progress": 5}
            late = await tx.run("show_progress", **values, lease_token=first.token)
            return late, await tx.run("show_progress", **values, lease_token=second.token)

        assert await running.gateway.store.write(write) == (0, 1)


async def test_leases_of_what_runs_are_renewed(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            (request_id,) = await promised(running)
            await ours.resume()
            keeping = asyncio.create_task(ours.keep())
            before = (await row(running, request_id))["lease_until_ms"]
            for _ in range(12):
                await turns()
                running.clock.advance(10)
                await asyncio.sleep(0.02)
            assert (await row(running, request_id))["lease_until_ms"] > before + 60_000
            assert len(driver.begun) == 1, "nobody took it over in two minutes"
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


async def test_who_lost_its_lease_is_stopped(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours, jobs(running, Drivers()) as theirs:
            (request_id,) = await promised(running)
            await ours.resume()
            await turns()
            keeping = asyncio.create_task(ours.keep())
            await turns()
            store = running.gateway.store
            await store.write(lambda tx: tx.run("release_lease", id=request_id, lease_token=driver.begun[0].token))
            assert await theirs.claim(request_id) is not None
            running.clock.advance(10)
            await until(lambda: ours.running == 0)
            assert driver.ended == []
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


async def test_who_has_just_written_the_end_is_not_broken_off(open_gateway: OpenGateway) -> None:
    """Its lease cannot be renewed any more, and nobody else has it."""
    async with open_gateway(works=False, worker=False, audited=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            ended, other = await promised(running, 2)
            await ours.resume()
            await turns()
            keeping = asyncio.create_task(ours.keep())
            await turns()
            await running.change(f"UPDATE generations SET status = 'failed' WHERE id = '{ended}'")  # noqa: S608
            before = (await row(running, other))["lease_until_ms"]
            running.clock.advance(10)

            async def renewed() -> bool:
                return (await row(running, other))["lease_until_ms"] > before

            await running.until(renewed)
            await asyncio.sleep(0.05)
            assert ours.running == 2
            driver.finish(ended)
            await until(lambda: driver.ended == [ended])
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


# ------------------------------------------------------------------------------------------------------------- resuming


@sqlite_only
async def test_all_that_is_free_is_taken_up(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is more than one statement takes, and the last process's leases still look alive."""
    monkeypatch.setattr("penstock.jobs.leases._CLAIMS_AT_ONCE", 4)
    async with open_gateway(works=False, worker=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            ids = await promised(running, 11)
            for request_id in ids[:6]:
                assert await ours.claim(request_id) is not None
            assert await ours.resume() == 5
            assert await ours.resume() == 0
            assert await ours.resume(all_are_free=True) == 6
            await turns()
            assert sorted(driver.ids) == ids


@sqlite_only
async def test_not_more_than_one_process_can_bear(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False, concurrent_jobs=3) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            await promised(running, 5)
            assert await ours.resume() == 3
            await turns()
            driver.finish(driver.begun[0].id)
            await until(lambda: ours.running == 2)
            assert await ours.resume() == 1


@sqlite_only
async def test_what_has_ended_is_left_alone(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running, jobs(running, Drivers()) as ours:
        (request_id,) = await promised(running)
        await running.cancel(request_id)
        assert await ours.resume(all_are_free=True) == 0
        assert await ours.claim(request_id) is None


# ------------------------------------------------------------------------------------------------------------- stopping


async def test_stopping_gives_leases_back(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        (request_id,) = await promised(running)
        async with jobs(running, Drivers()) as ours:
            await ours.resume()
            await turns()
            await ours.stop()
            assert ours.running == 0
            found = await row(running, request_id)
            assert (found["lease_until_ms"], found["crashes"]) == (0, 0), "it was no crash"
            assert await ours.resume() == 0, "who stops begins nothing"
        async with jobs(running, Drivers()) as next_one:
            assert await next_one.resume() == 1


async def test_crashes_are_counted(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running, jobs(running, Drivers()) as ours:
        (request_id,) = await promised(running)
        poison = []
        for _ in range(6):
            lease = await ours.claim(request_id)
            assert lease is not None
            poison.append(lease.is_poison)
            running.clock.advance(31)
        assert poison == [False] * 5 + [True]
        values = {"id": request_id, "lease_token": (await row(running, request_id))["lease_token"], "moves": 1}
        assert await running.gateway.store.write(lambda tx: tx.run("hold_lease", **values))
        lease = await ours.claim(request_id)
        assert lease is not None
        assert lease.crashes == 1, "what moved it on shows that it can be survived"


# ------------------------------------------------------------------------------------------------------------- suspects


async def crashed(running: RunningGateway, request_id: str, times: int) -> None:
    """So many processes died while they drove it."""
    await running.change(f"UPDATE generations SET crashes = {times - 1}, lease_until_ms = 1 WHERE id = '{request_id}'")  # noqa: S608


async def test_what_died_with_its_process_again_and_again_is_driven_by_itself(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the next process die too, it is clear what killed it; those that wait are not to blame."""
    monkeypatch.setattr("penstock.jobs.leases._HEAD_START_SECONDS", 0.2)
    async with open_gateway(works=False, worker=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            innocent, *suspects = await promised(running, 4)
            for request_id in suspects:
                await crashed(running, request_id, 2)
            resuming = asyncio.create_task(ours.resume())
            await until(lambda: len(driver.begun) == 1)
            assert sorted([(await row(running, one))["crashes"] for one in suspects]) == [1, 1, 2]
            assert not resuming.done(), "the others wait as well, for a moment"
            assert await resuming == 4
            await until(lambda: len(driver.begun) == 2)
            assert driver.ids[1] == innocent
            assert await ours.resume() == 0, "each waits for its turn"
            driver.begun[0].survived()
            await until(lambda: len(driver.begun) == 3)
            driver.finish(driver.ids[2])
            await until(lambda: len(driver.begun) == 4)
            assert sorted({*driver.ids} - {innocent}) == suspects


async def test_of_many_that_die_together_only_the_guilty_one_is_given_up(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It strikes before anybody else has got anywhere, so that in the beginning they all look alike."""
    monkeypatch.setattr("penstock.jobs.leases._HEAD_START_SECONDS", 0.1)
    async with open_gateway(works=False, worker=False, audited=False) as running:
        ids = await promised(running, 8)
        guilty, tried = ids[3], []
        for _ in range(5):
            process = Mortal(running, guilty)
            async with jobs(running, process) as ours:
                await ours.resume(all_are_free=True)
                await asyncio.wait_for(process.death.wait(), 30)
                await cancel_and_wait(ours._suspects.values())  # the dead take nobody's turn
                process.is_buried.set()
                await until(lambda ours=ours: ours.running == 0)  # type: ignore[misc]
            assert process.given_up == []
            tried.append(len(process.survivors))
        assert tried[:2] == [0, 0], "two died with all that they had"
        process = Mortal(running, guilty)
        async with jobs(running, process) as ours:
            await ours.resume(all_are_free=True)
            await until(lambda: len(process.survivors) + len(process.given_up) == 8)
            assert process.given_up == [guilty]
            assert not process.death.is_set()
            process.is_buried.set()
            await until(lambda: ours.running == 0)


class Mortal:
    """A process that dies, with all that it drives, as soon as it comes to the guilty one."""

    def __init__(self, running: RunningGateway, guilty: str) -> None:
        self.death, self.is_buried = asyncio.Event(), asyncio.Event()
        self.survivors: list[str] = []
        self.given_up: list[str] = []
        self._house, self._guilty = running, guilty

    async def __call__(self, lease: Lease) -> None:
        if lease.is_poison:
            self.given_up.append(lease.id)
            return
        if lease.id == self._guilty:
            self.death.set()
        await asyncio.sleep(0.01)  # a round of work, for whoever lives so long
        if not self.death.is_set():
            values = {"id": lease.id, "lease_token": lease.token, "moves": 1}
            await self._house.gateway.store.write(lambda tx: tx.run("hold_lease", **values))
            self.survivors.append(lease.id)
            lease.survived()
        await self.is_buried.wait()
        raise LeaseLost(lease.id)  # without giving anything back, like the dead


@sqlite_only
async def test_stopping_charges_nobody(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the suspect on trial nor those that wait, however often; and a crash afterwards counts as one."""
    monkeypatch.setattr("penstock.jobs.leases._HEAD_START_SECONDS", 0.1)
    async with open_gateway(works=False, worker=False) as running:
        suspects = await promised(running, 3)
        for request_id in suspects:
            await crashed(running, request_id, 4)
        for _ in range(4):
            driver = Drivers()
            async with jobs(running, driver) as ours:
                await ours.resume()
                await until(lambda driver=driver: len(driver.begun) == 1)  # type: ignore[misc]
                assert (driver.begun[0].crashes, driver.begun[0].is_poison) == (4, False)
                await ours.stop()
                assert len(driver.ids) == 1, "one at a time"
        async with jobs(running, Drivers()) as ours:
            lease = await ours.claim(suspects[0])
            assert lease is not None
            running.clock.advance(31)
            again = await ours.claim(suspects[0])
            assert again is not None
            assert (lease.crashes, again.crashes, again.is_poison) == (4, 5, True)


async def test_stopping_while_suspects_wait_for_their_turn(open_gateway: OpenGateway) -> None:
    """As in a cluster, where each has somebody who attends to it: all go away, and take nothing up."""
    async with open_gateway(works=False, worker=False) as running:
        driver = Drivers()
        async with jobs(running, driver) as ours:
            suspects = await promised(running, 3)
            for request_id in suspects:
                await crashed(running, request_id, 3)
            attending = [asyncio.create_task(ours.attend(request_id)) for request_id in suspects]
            await until(lambda: len(driver.begun) == 1)
            for request_id in {*suspects} - {*driver.ids}:
                assert await ours.attend(request_id) is False, "somebody does already"
            await ours.stop()
            assert await asyncio.wait_for(asyncio.gather(*attending), 10) == [False] * 3
            assert len(driver.begun) == 1
        assert sorted([(await row(running, one))["crashes"] for one in suspects]) == [2, 2, 3]
        assert {(await row(running, one))["lease_until_ms"] for one in suspects} == {0, 1}, (
            "as they were, or given back"
        )


@sqlite_only
async def test_what_is_being_sent_arrives_before_the_process_stops(open_gateway: OpenGateway) -> None:
    arrived = asyncio.Event()

    async def driver(lease: Lease) -> None:
        with lease.sending():
            await arrived.wait()
            done.append("sent")
        await asyncio.Event().wait()

    done: list[str] = []
    async with open_gateway(works=False, worker=False) as running, jobs(running, driver) as ours:
        await promised(running)
        await ours.resume()
        await turns()
        stopping = asyncio.create_task(ours.stop())
        await turns()
        assert not stopping.done()
        arrived.set()
        await asyncio.wait_for(stopping, 5)
        assert done == ["sent"]


@sqlite_only
async def test_nobody_waits_for_ever_for_what_is_being_sent(open_gateway: OpenGateway) -> None:
    async def driver(lease: Lease) -> None:
        with lease.sending():
            await asyncio.Event().wait()

    async with open_gateway(works=False, worker=False, drain_seconds=0.05) as running, jobs(running, driver) as ours:
        await promised(running)
        await ours.resume()
        await turns()
        await asyncio.wait_for(ours.stop(), 5)
        assert ours.running == 0
