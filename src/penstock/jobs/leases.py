"""Run accepted generations to their end: one worker at a time, and again after a crash."""

import asyncio
from collections.abc import Awaitable, Callable, Set
from contextlib import suppress
from functools import partial
from itertools import count

import msgspec
import structlog

from penstock.clock import Clock
from penstock.errors import StorageUnavailable
from penstock.event_loop import cancel_and_wait
from penstock.jobs.running import SUSPECT_CRASHES, Lease, LeaseLost, RunningJob
from penstock.jobs.suspects import SuspectTrials
from penstock.schema import JOB_TASKS
from penstock.settings import Settings
from penstock.store.base import Change, Row, Store, Transaction
from penstock.store.database_time import follow_database_time
from penstock.store.renewals import Renewals
from penstock.values import OrgId

log = structlog.get_logger()
_CLAIMS_AT_ONCE = 500
_RENEWALS_AT_ONCE = 1000
_LOGGED_IDS = 5
# Parts of `lease_seconds`: how long a lease lasts, how often it is renewed, and how often workers look for jobs that
# nobody runs. A lease and three looks, one of them the queue's, are less than the whole: another goes on in time.
LEASE_PART = 2 / 3
RENEWAL_PART = 1 / 6
LOOK_PART = 1 / 12
_LOOKS_PER_RENEWAL = round(RENEWAL_PART / LOOK_PART)
_BEYOND_ALL_LEASES_MS = 2**62
_ANY = 2**31 - 1  # number of crashes
Run = Callable[[RunningJob], Awaitable[None]]


class Jobs:
    """The jobs that run in this process.

    `run`, set by `run_with`, may be stopped at any point and called again, and must end.

    On SQLite the process that accepts a generation also runs it, and resumes at its start what the last process left
    unfinished. On Postgres a queue has videos and sounds, from the transaction on that accepts them: `cluster`.

    A generation may crash the process that works on it, and must not do so for ever. A worker that stops in good order
    gives its leases back. So an expired lease was lost in a crash, and claiming it counts one; a worker that was only
    slow takes it off again when it finds that its lease is gone. The count goes back to zero when the job makes
    progress that cannot be made twice, or when a round of polling is survived. After five crashes in a row the
    generation fails.

    A process that crashes takes all its jobs with it and cannot tell which one was the cause. So from the second crash
    on a generation is a suspect. Each process tries one suspect at a time, the one with the fewest crashes first, after
    it has lived for a few seconds; it does not claim suspects that wait. If the process crashes, only the suspect on
    trial counts a crash. If it survives, that suspect is cleared. So one bad generation costs two crashes together with
    all others and three alone. One that is not yet suspect can crash the process twice while another is on trial, which
    is not enough to fail that other one.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._running: dict[str, RunningJob] = {}
        self._run: Run | None = None
        self._rescue: Callable[[], Awaitable[int]] = self.resume
        self._trials = SuspectTrials(clock, self._start_next_suspect)
        self._waiting: set[str] = set()  # suspects that wait for their trial
        self._wanted: set[str] = set()  # others that wait to be claimed
        self._is_alone = False
        # Held from reading what is free until it runs: with `is_alone` a lease that this process took looks free too.
        self._claiming = asyncio.Lock()
        seconds = settings.lease_seconds
        self._renewals = Renewals(clock, lease_seconds=seconds * LEASE_PART, seconds_between=seconds * RENEWAL_PART)
        self._claims: set[asyncio.Task[list[RunningJob]]] = set()  # those that are under way
        self._tried: set[str] = set()  # suspects that were started since the trials began
        self.is_stopping = False

    def run_with(self, run: Run) -> None:
        """Set the function that runs a job."""
        self._run = run

    def rescue_with(self, rescue: Callable[[], Awaitable[int]]) -> None:
        """Set what `renew_forever` calls for generations that nobody runs; by default `resume`."""
        self._rescue = rescue

    @property
    def running(self) -> int:
        """How many jobs run in this process."""
        return len(self._running)

    def count_others(self, request_ids: Set[str]) -> int:
        """How many jobs run in this process besides these."""
        return len(self._running.keys() - request_ids)

    @property
    def lease_until_ms(self) -> int:
        """When a lease that is taken or renewed now expires."""
        return self._clock.steady_ms() + int(self._settings.lease_seconds * LEASE_PART * 1000)

    # --------------------------------------------------------------------------------------------------------- starting

    def runs_here(self, task: str) -> bool:
        """Whether the process that accepts a generation also runs it: always where callers may wait."""
        return task not in JOB_TASKS or (self._settings.worker and not self._is_shared)

    @property
    def _is_shared(self) -> bool:
        return self._store.dialect == "postgres"

    def queue_changes(self, request_id: str, org_id: OrgId, task: str) -> list[Change]:
        """What queues a generation that another worker may run, in the transaction that accepts it."""
        is_queued = self._is_shared and not self.runs_here(task)
        return [("defer_generation", {"id": request_id, "org_id": org_id})] if is_queued else []

    def start(self, lease: Lease, run: Run | None = None) -> RunningJob:
        """Run a generation in this process; the lease was taken in the transaction that accepted or claimed it.

        `run` takes the place of the function that `run_with` has set.
        """
        job = RunningJob(lease)
        job.task = asyncio.create_task(self._run_job(job, run or self._run), name=f"run {lease.id}")
        self._running[lease.id] = job
        job.task.add_done_callback(lambda _: self._forget(job))
        return job

    def _forget(self, job: RunningJob) -> None:
        job.survived.set()
        if self._running.get(job.id) is job:
            del self._running[job.id]

    async def _run_job(self, job: RunningJob, run: Run | None) -> None:
        assert run is not None, "run_with was not called"
        try:
            await run(job)
            job.has_ended = True
        except LeaseLost:
            log.warning("lease lost", request_id=job.id)
            with suppress(StorageUnavailable):
                await self._take_off_crashes([job])
        except asyncio.CancelledError:
            raise
        except StorageUnavailable:
            log.warning("storage unavailable, job waits", request_id=job.id)
        except Exception:
            log.exception("job failed", request_id=job.id)

    def wake(self, request_id: str) -> None:
        """Wake the job of a generation if it runs in this process."""
        if job := self._running.get(request_id):
            job.wakeups.wake()

    async def wake_everywhere(self, tx: Transaction, request_id: str) -> None:
        """Wake the job of a generation in the other processes of a cluster when the transaction is committed."""
        if self._is_shared:
            await tx.one("notify_workers", id=request_id)

    # --------------------------------------------------------------------------------------------------------- claiming

    def may_take(self, lease_until_ms: int) -> bool:
        """Whether this worker may run an unfinished generation whose lease, if it was not given back, ends then."""
        is_free = lease_until_ms < self._clock.steady_ms()
        return self._settings.worker and is_free and (not lease_until_ms or self._renewals.others_had_time)

    async def run_until_ended(self, request_id: str) -> bool:
        """Run a generation, or wait for it if it runs here already; return whether it has ended."""
        if not (self.is_stopping or request_id in self._running or request_id in self._waiting):
            await self._take(request_id)
        if job := self._running.get(request_id):
            await asyncio.wait({job.task})  # cancelling the caller does not stop the job
            if job.has_ended:
                return True
        row = await self._store.one("get_generation_status", id=request_id)
        return row is None or row["status"] in ("completed", "failed")

    async def _take(self, request_id: str) -> None:
        """Start a generation if nobody runs it; a suspect waits for its trial first."""
        await self._claim_wanted(request_id)
        if request_id in self._running:
            return
        row = await self._store.one("get_generation_status", id=request_id)
        if row is None or row["crashes"] < SUSPECT_CRASHES:
            return
        self._waiting.add(request_id)
        try:
            self._try_suspects()
            await self._trials.wait()
        finally:
            self._waiting.discard(request_id)

    async def _claim_wanted(self, request_id: str) -> None:
        """Claim and start a generation that is no suspect, together with others that wait for that at the moment."""
        self._wanted.add(request_id)
        try:
            async with self._claiming:
                ids = sorted(self._wanted)
                await self._claim_and_start(ids, self._clock.steady_ms(), crashes_max=SUSPECT_CRASHES - 1)
                self._wanted.difference_update(ids)  # if this raised, the next of those who wait tries again
        finally:
            self._wanted.discard(request_id)

    async def resume(self) -> int:
        """Start what nobody runs, by organizations in turn; return how many, without suspects: they are tried later."""
        async with self._claiming:
            now = self._clock.steady_ms()
            return await self._start_free(await self._list_free(now), now)

    async def list_left(self) -> list[Row]:
        """What the last process left unfinished. No other process may live: leases do not count. And this one may have
        accepted nothing yet, because it would be listed, too.
        """
        return await self._list_free(_BEYOND_ALL_LEASES_MS)

    async def resume_left(self, left: list[Row]) -> int:
        """Start what `list_left` has returned, as `resume` does."""
        async with self._claiming:
            return await self._start_free(left, _BEYOND_ALL_LEASES_MS)

    async def _list_free(self, now_ms: int) -> list[Row]:
        look = {"now_ms": now_ms, "crashes": SUSPECT_CRASHES, "limit": self._settings.concurrent_jobs}
        return await self._store.slow("list_free_generations", **look)  # reads every unfinished generation

    async def _start_free(self, rows: list[Row], now_ms: int) -> int:
        free = [row for row in rows if row["id"] not in self._running]
        if any(row["crashes"] >= SUSPECT_CRASHES for row in free):
            self._try_suspects(is_alone=now_ms == _BEYOND_ALL_LEASES_MS)
        others = [row["id"] for row in free if row["crashes"] < SUSPECT_CRASHES]
        started = 0
        while (count := min(self._room, len(others), _CLAIMS_AT_ONCE)) > 0 and not self.is_stopping:
            started += len(await self._claim_and_start(others[:count], now_ms))
            del others[:count]
        return started

    @property
    def _room(self) -> int:
        return self._settings.concurrent_jobs - len(self._running)

    def _try_suspects(self, *, is_alone: bool = False) -> None:
        """Begin the trials of all suspects that nobody runs. With `is_alone` no other process lives, and leases do not
        count.
        """
        self._is_alone = self._is_alone or is_alone
        self._trials.begin()

    async def _start_next_suspect(self) -> RunningJob | None:
        """Claim and start the suspect with the fewest crashes of those that nobody runs; None when there is none.

        So in a series of crashes that have another cause, the crashes are shared among all suspects.
        """
        while not self.is_stopping:
            now = _BEYOND_ALL_LEASES_MS if self._is_alone else self._clock.steady_ms()
            look = {"now_ms": now, "crashes": SUSPECT_CRASHES, "limit": _CLAIMS_AT_ONCE}
            async with self._claiming:
                rows = await self._store.all("list_suspects", **look)
                seen = self._tried | self._running.keys()
                suspect = next((row["id"] for row in rows if row["id"] not in seen), None)
                if suspect is None:
                    break
                self._tried.add(suspect)
                for job in await self._claim_and_start([suspect], now):  # none if another process was faster
                    return job
        self._tried.clear()
        self._is_alone = False
        return None

    async def _claim_and_start(self, ids: list[str], now_ms: int, *, crashes_max: int = _ANY) -> list[RunningJob]:
        """Claim generations and start those that nobody ran and that have had at most `crashes_max` crashes.

        What has been claimed is started although the caller is cancelled, and `stop` waits for it: a lease without a
        job would expire and count as a crash.
        """
        if not ids or self.is_stopping:
            return []

        async def claim_and_start() -> list[RunningJob]:
            return [self.start(lease) for lease in await self._claim_all(ids, now_ms, crashes_max)]

        claim = asyncio.create_task(claim_and_start(), name="claim jobs")
        self._claims.add(claim)
        claim.add_done_callback(self._forget_claim)
        return await asyncio.shield(claim)

    def _forget_claim(self, claim: asyncio.Task[list[RunningJob]]) -> None:
        self._claims.discard(claim)
        if not claim.cancelled():
            claim.exception()  # the caller has it, unless it was cancelled

    async def _claim_all(self, ids: list[str], now_ms: int, crashes_max: int = _ANY) -> list[Lease]:
        """Take the leases of those generations that nobody runs and that have had at most so many crashes."""
        claim = {
            "ids": msgspec.json.encode(ids).decode(),
            "now_ms": now_ms,
            "until_ms": self.lease_until_ms,
            "crashes_max": crashes_max,
        }
        rows = await self._store.write(lambda tx: tx.all("claim_generations", **claim))
        if crashed := [row["id"] for row in rows if row["crashes"]]:  # perhaps thousands: one line, with some of them
            log.warning("jobs taken over after a crash", jobs=len(crashed), request_ids=crashed[:_LOGGED_IDS])
        return [Lease(row["id"], row["lease_token"], row["crashes"]) for row in rows]

    # ---------------------------------------------------------------------------------------------------------- keeping

    async def renew_forever(self) -> None:
        """Renew the leases of the running jobs again and again; a worker also rescues what nobody runs.

        After a time without the store nothing is rescued before the other processes had the time to renew their leases:
        they have not crashed.
        """
        for look in count(1):
            await self._clock.sleep(self._settings.lease_seconds * LOOK_PART)
            try:
                await follow_database_time(self._store, self._clock)
                if look % _LOOKS_PER_RENEWAL == 1:
                    await self._renew()
                    self._renewals.note_renewal()
                if self._settings.worker and self._renewals.others_had_time:
                    await self._rescue()
            except StorageUnavailable:
                self._renewals.note_failure()
                log.warning("leases not renewed: storage unavailable")

    async def _renew(self) -> None:
        jobs = list(self._running.values())
        for start in range(0, len(jobs), _RENEWALS_AT_ONCE):
            batch = jobs[start : start + _RENEWALS_AT_ONCE]
            leases = _encode_leases(batch)
            renewed = await self._store.write(partial(_renew_leases, leases, self.lease_until_ms))
            self._wake_cancelled(renewed)
            if len(renewed) < len(batch):  # the others were taken over, or have just ended
                lost = {row["id"] for row in await self._store.all("list_lost_leases", leases=leases)}
                await self._give_up([job for job in batch if job.id in lost])

    def _wake_cancelled(self, renewed: list[Row]) -> None:
        """Wake jobs that are to be cancelled and were not woken yet: the process that was asked to may have died, or
        its notification got lost.
        """
        for row in renewed:
            job = self._running.get(row["id"])
            if row["cancel_requested"] and job and not job.wakeups.was_woken:
                job.wakeups.wake()

    async def _give_up(self, lost: list[RunningJob]) -> None:
        """Stop jobs that another worker has taken over. One that is sending ends by itself with its next write: it may
        learn the id of a job that nobody else knows.
        """
        lost = [job for job in lost if self._running.get(job.id) is job]
        for job in lost:
            if job.send_guard.may_stop:
                log.warning("lease lost", request_id=job.id)
                job.task.cancel()
        await self._take_off_crashes(lost)

    async def _take_off_crashes(self, lost: list[RunningJob]) -> None:
        """Take off the crashes that other workers counted when they took these jobs over: this process lives."""
        jobs = [job for job in lost if not job.is_taken_over]
        for job in jobs:
            job.is_taken_over = True
        if jobs:
            await self._store.write(lambda tx: tx.all("take_off_crashes", leases=_encode_leases(jobs)))

    async def stop(self) -> None:
        """Stop all jobs and give their leases back; the next process goes on with them.

        A job is not stopped while its `send_guard` forbids it, but not for longer than `drain_seconds`.
        """
        self.is_stopping = True
        await self._trials.stop()
        await asyncio.gather(*self._claims, return_exceptions=True)
        jobs = list(self._running.values())
        await asyncio.gather(*(self._stop_job(job) for job in jobs))
        try:
            if jobs:
                await self._store.write(partial(_release_leases, sorted(jobs, key=lambda job: job.id)))
        except StorageUnavailable:
            log.warning("leases not released: storage unavailable")

    async def _stop_job(self, job: RunningJob) -> None:
        sent = asyncio.create_task(job.send_guard.wait_until_sent())
        seconds = self._settings.drain_seconds
        await asyncio.wait({sent, job.task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        await cancel_and_wait([sent, job.task])


async def _release_leases(jobs: list[RunningJob], tx: Transaction) -> None:
    """Give the leases of stopped jobs back, and remove the attempts that were stored but not sent.

    The next process takes each attempt without an outcome for one that was interrupted while it was sent.
    """
    released = [job for job in jobs if await tx.run("release_lease", id=job.id, lease_token=job.lease.token)]
    for attempt_id in sorted(attempt_id for job in released for attempt_id in job.send_guard.unsent_attempts):
        await tx.run("delete_unsent_attempt", id=attempt_id)


def _encode_leases(jobs: list[RunningJob]) -> str:
    return msgspec.json.encode([(job.id, job.lease.token) for job in sorted(jobs, key=lambda job: job.id)]).decode()


async def _renew_leases(leases: str, until_ms: int, tx: Transaction) -> list[Row]:
    return await tx.all("renew_leases", leases=leases, until_ms=until_ms)
