"""Accepted generations run in one process at a time, run again after a crash, and are given back at a stop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from penstock.errors import StorageUnavailable
from penstock.event_loop import cancel_and_wait
from penstock.jobs.leases import Jobs, Run
from penstock.jobs.running import Lease, LeaseLost, RunningJob
from penstock.jobs.steps import Step, write_steps
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.leases import claim_lease
from tests.unit.jobs.manual_run import ManualRun, accept_videos, get_row, let_others_run


@asynccontextmanager
async def open_jobs(running: RunningGateway, run: Run) -> AsyncIterator[Jobs]:
    """One more process on the same database."""
    jobs = Jobs(running.gateway.store, running.clock, running.gateway.settings)
    jobs.run_with(run)
    try:
        yield jobs
    finally:
        await jobs.stop()


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if met():
                return
            await asyncio.sleep(0.002)


@asynccontextmanager
async def renewing(running: RunningGateway, jobs: Jobs, *, worker: bool = False) -> AsyncIterator[Callable[[], Any]]:
    """Renew leases in a task. Yields a function that lets it look once more, and waits until it has."""
    jobs._settings = msgspec.structs.replace(running.gateway.settings, worker=worker)
    task = asyncio.create_task(jobs.renew_forever())
    clock = running.clock
    await until(lambda: clock.sleeping == 1)

    async def look() -> None:
        clock.advance(running.gateway.settings.lease_seconds / 12)
        assert clock.sleeping == 0
        await until(lambda: clock.sleeping == 1)

    try:
        yield look
    finally:
        await cancel_and_wait([task])


# ------------------------------------------------------------------------------------------------------------- running


@sqlite_only
async def test_a_job_can_be_started_and_waited_for(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            (request_id,) = await accept_videos(running)
            lease = await claim_lease(ours, request_id)
            assert lease is not None
            job = ours.start(lease)
            assert ours.running == 1
            assert await job.wait(0.01) is False, "it goes on"
            run.finish(request_id)
            assert await job.wait(5) is True
            await until(lambda: ours.running == 0)
            assert await job.wait(5) is True, "there is nothing to wait for any more"


@sqlite_only
async def test_a_job_that_fails_does_not_stop_others(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            first, second, third, fourth = ids = await accept_videos(running, 4)
            assert await ours.resume() == 4
            await let_others_run()
            assert sorted(run.ids) == ids
            run.fail(first, ValueError("a bug"))
            run.fail(second, LeaseLost(second))
            run.fail(third, StorageUnavailable("away"))
            await until(lambda: ours.running == 1)
            run.finish(fourth)
            await until(lambda: ours.running == 0)
            assert run.ended == [fourth]


@sqlite_only
async def test_wake_wakes_the_job(open_gateway: OpenGateway) -> None:
    woken = asyncio.Event()

    async def run(job: RunningJob) -> None:
        with job.wakeups.waiting() as wakeup:
            await wakeup.wait()
        woken.set()

    async with open_gateway(works=False, worker=False) as running, open_jobs(running, run) as ours:
        (request_id,) = await accept_videos(running)
        await ours.resume()
        await let_others_run()
        ours.wake("req_of_another_process")
        await let_others_run()
        assert not woken.is_set()
        ours.wake(request_id)
        await asyncio.wait_for(woken.wait(), 60)


# ------------------------------------------------------------------------------------------------------------- claiming


async def test_only_one_of_many_claims_succeeds(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running, open_jobs(running, ManualRun()) as ours:
        (request_id,) = await accept_videos(running)
        leases = await asyncio.gather(*(claim_lease(ours, request_id) for _ in range(20)))
        (lease,) = [lease for lease in leases if lease is not None]
        found = await get_row(running, request_id)
        assert (found["lease_token"], found["crashes"]) == (lease.token, 0)


async def test_a_lease_that_is_not_renewed_expires(open_gateway: OpenGateway) -> None:
    """After two thirds of `lease_seconds` another worker may claim it, and the first one's writes change nothing."""
    async with open_gateway(works=False, worker=False) as running, open_jobs(running, ManualRun()) as ours:
        (request_id,) = await accept_videos(running)
        first = await claim_lease(ours, request_id)
        assert first is not None
        running.clock.advance(19)
        assert await claim_lease(ours, request_id) is None
        running.clock.advance(2)
        second = await claim_lease(ours, request_id)
        assert second is not None
        assert (second.token, second.crashes) == (first.token + 1, 1)

        steps = [Step(first, percent=5), Step(second, percent=7)]
        assert await running.gateway.store.write(lambda tx: write_steps(tx, steps)) == [None, False]
        assert (await get_row(running, request_id))["progress"] == 7


async def test_leases_of_running_jobs_are_renewed(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours, open_jobs(running, ManualRun()) as theirs:
            (request_id,) = await accept_videos(running)
            await ours.resume()
            async with renewing(running, ours) as look:
                for _ in range(48):  # two minutes
                    await look()
                    assert await theirs.resume() == 0
            assert len(run.started) == 1
            assert (await get_row(running, request_id))["lease_until_ms"] > running.clock.steady_ms()


async def test_a_cancel_whose_notification_got_lost_wakes_its_job_with_the_next_renewal(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            cancelled, other = await accept_videos(running, 2)
            await ours.resume()
            async with renewing(running, ours) as look:
                cancel = {"id": cancelled, "org_id": running.caller.org_id}
                await running.gateway.store.write(lambda tx: tx.one("request_cancel", **cancel))
                for _ in range(2):  # one of two looks renews
                    await look()
                woken = {job.id: job.wakeups.was_woken for job in run.started}
                assert woken == {cancelled: True, other: False}
                for job in run.started:
                    with job.wakeups.waiting() as wakeup:
                        assert wakeup.is_set() == (job.id == cancelled)
                for _ in range(2):
                    await look()
                with run.started[0].wakeups.waiting() as wakeup:
                    assert not wakeup.is_set(), "a job that knows of it is not woken again and again"


async def test_a_job_that_lost_its_lease_is_stopped(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours, open_jobs(running, ManualRun()) as theirs:
            (request_id,) = await accept_videos(running)
            await ours.resume()
            await let_others_run()
            store = running.gateway.store
            await store.write(lambda tx: tx.run("release_lease", id=request_id, lease_token=run.started[0].lease.token))
            assert await claim_lease(theirs, request_id) is not None
            async with renewing(running, ours) as look:
                await look()
                await until(lambda: ours.running == 0)
            assert run.ended == []


async def test_a_job_whose_generation_has_just_ended_is_not_stopped(open_gateway: OpenGateway) -> None:
    """Its lease cannot be renewed any more, but no other worker has it."""
    async with open_gateway(works=False, worker=False, audited=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            ended, other = await accept_videos(running, 2)
            await ours.resume()
            await let_others_run()
            await running.change(f"UPDATE generations SET status = 'failed' WHERE id = '{ended}'")  # noqa: S608
            before = (await get_row(running, other))["lease_until_ms"]
            async with renewing(running, ours) as look:
                await look()
                assert (await get_row(running, other))["lease_until_ms"] > before
                assert ours.running == 2
            run.finish(ended)
            await until(lambda: run.ended == [ended])


@pytest.mark.parametrize("lease_seconds", [6.0, 30.0])
async def test_another_worker_goes_on_within_the_lease(open_gateway: OpenGateway, lease_seconds: float) -> None:
    """The first one dies right after it has renewed its leases."""
    opened = open_gateway(works=False, worker=False, lease_seconds=lease_seconds)
    async with opened as running, open_jobs(running, ManualRun()) as theirs:
        (request_id,) = await accept_videos(running)
        dead = Jobs(running.gateway.store, running.clock, running.gateway.settings)
        assert await claim_lease(dead, request_id) is not None
        looks = 0
        async with renewing(running, theirs, worker=True) as look:
            while not theirs.running:
                await look()
                looks += 1
        assert looks <= 9, "of twelve in the time of a lease"


# --------------------------------------------------------------------------------------------------------- slow workers


async def test_a_worker_that_was_only_slow_takes_the_crash_off(open_gateway: OpenGateway) -> None:
    """Another one counted a crash when it took the job over. The first finds out when it renews, or when it writes."""
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as slow, open_jobs(running, ManualRun()) as theirs:
            ids = await accept_videos(running, 2)
            await slow.resume()
            await let_others_run()
            running.clock.advance(31)
            assert [(await claim_lease(theirs, request_id)).crashes for request_id in ids] == [1, 1]  # type: ignore[union-attr]
            run.fail(ids[0], LeaseLost(ids[0]))
            await until(lambda: slow.running == 1)
            assert [(await get_row(running, request_id))["crashes"] for request_id in ids] == [0, 1]
            async with renewing(running, slow) as look:
                await look()
                await until(lambda: slow.running == 0)
            assert [(await get_row(running, request_id))["crashes"] for request_id in ids] == [0, 0]


async def test_a_crash_after_a_slow_worker_still_counts(open_gateway: OpenGateway) -> None:
    """Each crash is taken off by the worker whose lease was taken over, and by nobody else."""
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as slow, open_jobs(running, ManualRun()) as theirs:
            (request_id,) = await accept_videos(running)
            await slow.resume()
            await let_others_run()
            for _ in range(3):
                running.clock.advance(31)
                assert await claim_lease(theirs, request_id) is not None
            async with renewing(running, slow) as look:
                await look()
                await until(lambda: slow.running == 0)
            assert (await get_row(running, request_id))["crashes"] == 3


async def test_nothing_is_taken_over_right_after_an_outage_of_the_store(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker could renew its leases. All of them get the time for it, so no crash is counted."""
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours, open_jobs(running, ManualRun()) as theirs:
            (request_id,) = await accept_videos(running)
            await ours.resume()
            async with renewing(running, theirs, worker=True) as look:
                with monkeypatch.context() as broken:
                    broken.setattr(theirs, "_renew", unavailable)
                    broken.setattr(theirs, "_rescue", unavailable)
                    for _ in range(24):
                        await look()
                for _ in range(2):
                    await look()
                    assert (theirs.running, (await get_row(running, request_id))["crashes"]) == (0, 0)
                await ours._renew()
                for _ in range(4):
                    await look()
            assert (theirs.running, ours.running) == (0, 1)


async def unavailable() -> None:
    raise StorageUnavailable("The store is unavailable.")


# ------------------------------------------------------------------------------------------------------------- resuming


@sqlite_only
async def test_resume_starts_all_free_generations(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when there are more than one statement claims, and when leases of the last process have not expired."""
    monkeypatch.setattr("penstock.jobs.leases._CLAIMS_AT_ONCE", 4)
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            ids = await accept_videos(running, 11)
            for request_id in ids[:6]:
                assert await claim_lease(ours, request_id) is not None
            assert await ours.resume() == 5
            assert await ours.resume() == 0
            assert await ours.resume_left(await ours.list_left()) == 6
            await let_others_run()
            assert sorted(run.ids) == ids


@sqlite_only
async def test_what_a_crash_left_is_logged_in_one_line(open_gateway: OpenGateway) -> None:
    """A process may have run ten thousand videos."""
    async with open_gateway(works=False, worker=False) as running, open_jobs(running, ManualRun()) as ours:
        ids = await accept_videos(running, 7)
        for request_id in ids:
            assert await claim_lease(ours, request_id) is not None
        with capture_logs() as lines:
            assert await ours.resume_left(await ours.list_left()) == 7
        (line,) = lines
        assert (line["event"], line["jobs"]) == ("jobs taken over after a crash", 7)
        assert len(line["request_ids"]) == 5
        assert set(line["request_ids"]) < set(ids)


@sqlite_only
async def test_resume_starts_at_most_concurrent_jobs(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False, concurrent_jobs=3) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            await accept_videos(running, 5)
            assert await ours.resume() == 3
            await let_others_run()
            run.finish(run.started[0].id)
            await until(lambda: ours.running == 2)
            assert await ours.resume() == 1


@sqlite_only
async def test_resume_lets_organizations_take_turns(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when there are more than one statement claims, and whatever runs already."""
    monkeypatch.setattr("penstock.jobs.leases._CLAIMS_AT_ONCE", 2)
    async with open_gateway(works=False, worker=False, concurrent_jobs=5) as running:
        other = await running.create_caller_in_new_org()
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            many = await accept_videos(running, 7)
            assert await ours.resume() == 5
            few = await accept_videos(running, 2, other)
            await let_others_run()
            for ended in many[:3]:
                await running.cancel(ended)
                run.finish(ended)
            await until(lambda: ours.running == 2)
            assert await ours.resume_left(await ours.list_left()) == 3
            await let_others_run()
            assert {*run.ids[5:]} == {many[5], *few}


@sqlite_only
async def test_ended_generations_are_not_claimed(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running, open_jobs(running, ManualRun()) as ours:
        (request_id,) = await accept_videos(running)
        await running.cancel(request_id)
        assert await ours.resume_left(await ours.list_left()) == 0
        assert await claim_lease(ours, request_id) is None


# ------------------------------------------------------------------------------------------------------------- stopping


async def test_stopping_gives_leases_back(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        (request_id,) = await accept_videos(running)
        async with open_jobs(running, ManualRun()) as ours:
            await ours.resume()
            await let_others_run()
            await ours.stop()
            assert ours.running == 0
            found = await get_row(running, request_id)
            assert (found["lease_until_ms"], found["crashes"]) == (0, 0), "it was no crash"
            assert await ours.resume() == 0, "a process that stops starts nothing"
        async with open_jobs(running, ManualRun()) as other:
            assert await other.resume() == 1


async def test_crashes_are_counted(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running, open_jobs(running, ManualRun()) as ours:
        (request_id,) = await accept_videos(running)
        hopeless = []
        for _ in range(6):
            lease = await claim_lease(ours, request_id)
            assert lease is not None
            hopeless.append(lease.is_hopeless)
            running.clock.advance(31)
        assert hopeless == [False] * 5 + [True]
        last = Lease(request_id, (await get_row(running, request_id))["lease_token"])
        await running.gateway.steps.add(Step(last, is_progress=True), running.caller.org_id)
        lease = await claim_lease(ours, request_id)
        assert lease is not None
        assert lease.crashes == 1, "progress reset the count"


# ------------------------------------------------------------------------------------------------------------- suspects


async def set_crashes(running: RunningGateway, request_id: str, times: int) -> None:
    """Make it look as if so many processes had crashed while they ran it."""
    await running.change(f"UPDATE generations SET crashes = {times - 1}, lease_until_ms = 1 WHERE id = '{request_id}'")  # noqa: S608


@pytest.fixture
def tries_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.jobs.suspects._FIRST_TRIAL_SECONDS", 0.0)


@pytest.mark.usefixtures("tries_at_once")
async def test_suspects_are_tried_one_at_a_time(open_gateway: OpenGateway) -> None:
    """If the next process crashes too, only the suspect on trial counts a crash; those that wait do not."""
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            innocent, *suspects = await accept_videos(running, 4)
            for request_id in suspects:
                await set_crashes(running, request_id, 2)
            assert await ours.resume() == 1
            await until(lambda: len(run.started) == 2)
            assert run.ids == [innocent, suspects[0]]
            assert [(await get_row(running, suspect))["crashes"] for suspect in suspects] == [2, 1, 1]
            assert await ours.resume() == 0, "each waits for its trial"
            run.started[1].survived.set()
            await until(lambda: len(run.started) == 3)
            run.finish(run.ids[2])
            await until(lambda: len(run.started) == 4)
            assert sorted({*run.ids} - {innocent}) == suspects


@pytest.mark.usefixtures("tries_at_once")
async def test_suspects_of_organizations_take_turns(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            many = await accept_videos(running, 3)
            (one,) = await accept_videos(running, 1, await running.create_caller_in_new_org())
            for request_id in (*many, one):
                await set_crashes(running, request_id, 2)
            await ours.resume()
            for number in range(4):
                await until(lambda number=number: len(run.started) == number + 1)  # type: ignore[misc]
                run.started[number].survived.set()
            assert run.ids == [many[0], one, *many[1:]]


@pytest.mark.usefixtures("tries_at_once")
async def test_only_the_generation_that_crashes_processes_fails(open_gateway: OpenGateway) -> None:
    """It crashes the process before any other job made progress, so that at first all of them are suspects."""
    async with open_gateway(works=False, worker=False, audited=False) as running:
        ids = await accept_videos(running, 8)
        guilty = ids[3]
        survivors = []
        for _ in range(5):
            process = CrashingProcess(running, guilty)
            async with open_jobs(running, process) as ours:
                await ours.resume_left(await ours.list_left())
                await asyncio.wait_for(process.crashed.wait(), 30)
                await ours._trials.stop()  # a crashed process begins no trial
                process.is_over.set()
                await until(lambda ours=ours: ours.running == 0)  # type: ignore[misc]
            assert process.failed == []
            survivors.append(len(process.survivors))
        assert survivors[:2] == [0, 0], "two processes crashed with all their jobs"
        process = CrashingProcess(running, guilty)
        async with open_jobs(running, process) as ours:
            await ours.resume_left(await ours.list_left())
            await until(lambda: len(process.survivors) + len(process.failed) == 8)
            assert process.failed == [guilty]
            assert not process.crashed.is_set()
            process.is_over.set()
            await until(lambda: ours.running == 0)


@pytest.mark.usefixtures("tries_at_once")
async def test_trials_do_not_claim_what_this_process_has_just_claimed(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start of the only process old leases count for nothing, and a new one looks like an old one."""
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            innocent, suspect = await accept_videos(running, 2)
            await set_crashes(running, innocent, 1)
            await set_crashes(running, suspect, 2)
            claim = ours._claim_all

            async def claim_slowly(ids: list[str], now_ms: int, crashes_max: int) -> list[Lease]:
                leases = await claim(ids, now_ms, crashes_max)
                for _ in range(20):  # while these are read, the trials begin and look for a suspect
                    await get_row(running, innocent)
                return leases

            monkeypatch.setattr(ours, "_claim_all", claim_slowly)
            assert await ours.resume_left(await ours.list_left()) == 1
            await until(lambda: len(run.started) == 2)
            assert sorted(run.ids) == sorted([innocent, suspect])
            assert (await get_row(running, innocent))["crashes"] == 1


class CrashingProcess:
    """Runs jobs as a process that crashes, with all its jobs, when it runs the guilty one."""

    def __init__(self, running: RunningGateway, guilty: str) -> None:
        self.crashed = asyncio.Event()
        self.is_over = asyncio.Event()
        self.survivors: list[str] = []
        self.failed: list[str] = []
        self._store = running.gateway.store
        self._guilty = guilty

    async def __call__(self, job: RunningJob) -> None:
        if job.lease.is_hopeless:
            self.failed.append(job.id)
            return
        if job.id == self._guilty:
            self.crashed.set()
        await let_others_run()  # a round of work
        if not self.crashed.is_set():
            await self._store.write(lambda tx: write_steps(tx, [Step(job.lease, is_progress=True)]))
            self.survivors.append(job.id)
            job.survived.set()
        await self.is_over.wait()
        raise LeaseLost(job.id)  # without giving the lease back, as in a crash


@pytest.mark.usefixtures("tries_at_once")
async def test_kills_with_another_cause_fail_no_generation(open_gateway: OpenGateway) -> None:
    """A process is killed again and again during a trial. The suspects with the fewest crashes are tried first, in
    whatever order the queue names them, so that the crashes are shared among them.
    """
    async with open_gateway(works=False, worker=False) as running:
        suspects = await accept_videos(running, 4)
        for request_id in suspects:
            await set_crashes(running, request_id, 2)
        for _ in range(8):
            run = ManualRun()
            killed = Jobs(running.gateway.store, running.clock, running.gateway.settings)
            killed.run_with(run)
            waiting = [asyncio.create_task(killed.run_until_ended(request_id)) for request_id in suspects]
            await until(lambda run=run: len(run.started) == 1)  # type: ignore[misc]
            assert not run.started[0].lease.is_hopeless
            await killed._trials.stop()
            await cancel_and_wait([*waiting, run.started[0].task])  # the lease is not given back
            running.clock.advance(31)
        crashes = [(await get_row(running, request_id))["crashes"] for request_id in suspects]
        assert crashes == [3] * 4, "and one more when they are taken over: four, while five are too many"


async def test_a_process_tries_no_suspect_in_its_first_seconds(open_gateway: OpenGateway) -> None:
    """Processes that crash soon after their start, for another reason, count nothing against suspects."""
    async with open_gateway(works=False, worker=False) as running:
        other, suspect = await accept_videos(running, 2)
        await set_crashes(running, suspect, 2)
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            assert await ours.resume() == 1
            running.clock.advance(4.9)
            await let_others_run()
            assert run.ids == [other]
            running.clock.advance(5.1)
            await until(lambda: run.ids == [other, suspect])


@sqlite_only
@pytest.mark.usefixtures("tries_at_once")
async def test_stopping_counts_no_crash(open_gateway: OpenGateway) -> None:
    """Neither for the suspect on trial nor for those that wait, however often; a crash afterwards counts as one."""
    async with open_gateway(works=False, worker=False) as running:
        suspects = await accept_videos(running, 3)
        for request_id in suspects:
            await set_crashes(running, request_id, 4)
        for _ in range(4):
            run = ManualRun()
            async with open_jobs(running, run) as ours:
                await ours.resume()
                await until(lambda run=run: len(run.started) == 1)  # type: ignore[misc]
                assert (run.started[0].lease.crashes, run.started[0].lease.is_hopeless) == (4, False)
                await ours.stop()
                assert len(run.ids) == 1, "one at a time"
        async with open_jobs(running, ManualRun()) as ours:
            lease = await claim_lease(ours, suspects[0])
            assert lease is not None
            running.clock.advance(31)
            again = await claim_lease(ours, suspects[0])
            assert again is not None
            assert (lease.crashes, again.crashes, again.is_hopeless) == (4, 5, True)


@pytest.mark.usefixtures("tries_at_once")
async def test_stopping_while_suspects_wait_for_their_trial(open_gateway: OpenGateway) -> None:
    """As in a cluster, where a job of the queue waits for each of them: none is claimed after the stop."""
    async with open_gateway(works=False, worker=False) as running:
        run = ManualRun()
        async with open_jobs(running, run) as ours:
            suspects = await accept_videos(running, 3)
            for request_id in suspects:
                await set_crashes(running, request_id, 3)
            waiting = [asyncio.create_task(ours.run_until_ended(request_id)) for request_id in suspects]
            await until(lambda: len(run.started) == 1)
            for request_id in {*suspects} - {*run.ids}:
                assert await ours.run_until_ended(request_id) is False, "it waits already"
            await ours.stop()
            assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [False] * 3
            assert len(run.started) == 1
        assert sorted([(await get_row(running, suspect))["crashes"] for suspect in suspects]) == [2, 2, 3]
        assert {(await get_row(running, suspect))["lease_until_ms"] for suspect in suspects} == {0, 1}, (
            "unchanged, or given back"
        )


@sqlite_only
async def test_stopping_waits_for_a_submission_that_is_being_sent(open_gateway: OpenGateway) -> None:
    arrived = asyncio.Event()

    async def run(job: RunningJob) -> None:
        with job.send_guard.sending():
            await arrived.wait()
            done.append("sent")
        await asyncio.Event().wait()

    done: list[str] = []
    async with open_gateway(works=False, worker=False) as running, open_jobs(running, run) as ours:
        await accept_videos(running)
        await ours.resume()
        await let_others_run()
        stopping = asyncio.create_task(ours.stop())
        await let_others_run()
        assert not stopping.done()
        arrived.set()
        await asyncio.wait_for(stopping, 60)
        assert done == ["sent"]


@sqlite_only
async def test_stopping_waits_for_the_end_of_a_job_with_an_output_that_is_only_in_memory(
    open_gateway: OpenGateway,
) -> None:
    stored = asyncio.Event()

    async def run(job: RunningJob) -> None:
        with job.send_guard.sending():
            job.send_guard.run_to_the_end()
        await stored.wait()
        done.append("stored")

    done: list[str] = []
    async with open_gateway(works=False, worker=False) as running, open_jobs(running, run) as ours:
        await accept_videos(running)
        await ours.resume()
        await let_others_run()
        stopping = asyncio.create_task(ours.stop())
        await let_others_run()
        assert not stopping.done()
        stored.set()
        await asyncio.wait_for(stopping, 60)
        assert done == ["stored"]


@sqlite_only
async def test_stopping_waits_for_a_submission_only_for_the_drain_time(open_gateway: OpenGateway) -> None:
    async def run(job: RunningJob) -> None:
        with job.send_guard.sending():
            await asyncio.Event().wait()

    async with open_gateway(works=False, worker=False, drain_seconds=0.05) as running, open_jobs(running, run) as ours:
        await accept_videos(running)
        await ours.resume()
        await let_others_run()
        await asyncio.wait_for(ours.stop(), 60)
        assert ours.running == 0
