"""Run accepted generations to their end: one worker at a time, and again after a crash."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import msgspec
import structlog

from penstock.clock import Clock, cancel_and_wait
from penstock.errors import StorageUnavailable
from penstock.jobs.running import SUSPECT_CRASHES, Lease, LeaseLost, RunningJob
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction

log = structlog.get_logger()
_TRIAL_SECONDS = 60.0  # a process that lives this long with a suspect was not killed by it
_HEAD_START_SECONDS = 2.0  # how long the suspects, all together, may delay the other jobs of a new process
_CLAIMS_AT_ONCE = 500
_RENEWALS_AT_ONCE = 1000
_BEYOND_ALL_LEASES_MS = 2**62

Run = Callable[[RunningJob], Awaitable[None]]


class Jobs:
    """The jobs that run in this process.

    `run`, set by `run_with`, may be stopped at any point and called again, and must end.

    On SQLite the process that accepts a generation also runs it, and resumes at its start what the last process left
    unfinished. On Postgres videos go through a queue, written in the transaction that accepts them; see `cluster`.

    A generation may crash the process that works on it, and must not do so for ever. A worker that stops in good order
    gives its leases back. So an expired lease was lost in a crash, and claiming it counts one. The count goes back to
    zero when the job makes progress that cannot be made twice, or when a round of polling is survived. After five
    crashes in a row the generation fails.

    A process that crashes takes all its jobs with it and cannot tell which one was the cause. So from the second crash
    on a generation is a suspect. Each process tries one suspect at a time, before other jobs if it has just started,
    and does not claim suspects that wait. If the process crashes, only the suspect on trial counts a crash; if it
    survives, that suspect is cleared. So one bad generation costs two crashes together with all others and three
    alone. One that is not yet suspect can crash the process twice while another is on trial, which is not enough to
    fail that other one.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._running: dict[str, RunningJob] = {}
        self._run: Run | None = None
        self._rescue: Callable[[], Awaitable[int]] = self.resume
        self._trial = asyncio.Lock()
        self._suspects: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[str] = set()  # suspects that wait for their trial
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

    @property
    def lease_until_ms(self) -> int:
        """When a lease that is taken or renewed now expires."""
        return self._clock.steady_ms() + int(self._settings.lease_seconds * 1000)

    # --------------------------------------------------------------------------------------------------------- starting

    def runs_here(self, task: str) -> bool:
        """Whether the process that accepts a generation also runs it: always for images, whose callers wait."""
        return task != "video" or (self._settings.worker and not self._is_shared)

    @property
    def _is_shared(self) -> bool:
        return self._store.dialect == "postgres"

    async def queue(self, tx: Transaction, request_id: str, task: str) -> None:
        """Queue a generation that another worker may run, in the transaction that accepts it."""
        if self._is_shared and not self.runs_here(task):
            await tx.one("defer_generation", id=request_id)

    def start(self, lease: Lease) -> RunningJob:
        """Run a generation in this process; the lease was taken in the transaction that accepted or claimed it."""
        job = RunningJob(lease)
        job.task = asyncio.create_task(self._run_job(job), name=f"run {lease.id}")
        self._running[lease.id] = job
        job.task.add_done_callback(lambda _: self._forget(job))
        return job

    def _forget(self, job: RunningJob) -> None:
        job.end_trial()
        if self._running.get(job.id) is job:
            del self._running[job.id]

    async def _run_job(self, job: RunningJob) -> None:
        assert self._run is not None, "run_with was not called"
        try:
            await self._run(job)
        except LeaseLost:
            log.warning("lease lost", request_id=job.id)
        except asyncio.CancelledError:
            raise
        except StorageUnavailable:
            log.warning("storage unavailable, job waits", request_id=job.id)
        except Exception:
            log.exception("job failed", request_id=job.id)

    def wake(self, request_id: str) -> None:
        """Wake the job of a generation if it runs in this process."""
        if job := self._running.get(request_id):
            job.wake()

    async def wake_everywhere(self, tx: Transaction, request_id: str) -> None:
        """Wake the job of a generation in the other processes of a cluster when the transaction is committed."""
        if self._is_shared:
            await tx.one("notify_workers", id=request_id)

    # --------------------------------------------------------------------------------------------------------- claiming

    async def run_until_ended(self, request_id: str) -> bool:
        """Run a generation, or wait for it if it runs here already; return whether it has ended."""
        row = await self._store.one("get_generation_status", id=request_id)
        if row and not (self.is_stopping or request_id in self._running or request_id in self._waiting):
            await self._take(request_id, row["crashes"], self._clock.steady_ms())
        if job := self._running.get(request_id):
            await asyncio.wait({job.task})  # cancelling the caller does not stop the job
        row = await self._store.one("get_generation_status", id=request_id)
        return row is None or row["status"] in ("completed", "failed")

    async def _take(self, request_id: str, crashes: int, now_ms: int) -> None:
        """Start a generation if nobody runs it; a suspect waits for its trial first."""
        if crashes < SUSPECT_CRASHES:
            for lease in await self._claim_all([request_id], now_ms):
                self.start(lease)
            return
        self._waiting.add(request_id)
        try:
            async with self._trial:
                for lease in () if self.is_stopping else await self._claim_all([request_id], now_ms):
                    trial_ended = self.start(lease).begin_trial()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(trial_ended.wait(), _TRIAL_SECONDS)
        finally:
            self._waiting.discard(request_id)

    async def claim(self, request_id: str) -> Lease | None:
        """Take the lease of a generation that nobody runs."""
        leases = await self._claim_all([request_id], self._clock.steady_ms())
        return leases[0] if leases else None

    async def resume(self, *, is_alone: bool = False) -> int:
        """Start what nobody runs; return how many. With `is_alone` no other process lives: old leases do not count."""
        now = _BEYOND_ALL_LEASES_MS if is_alone else self._clock.steady_ms()
        started = 0
        after = ""
        while (room := self._room) > 0 and not self.is_stopping:
            limit = min(room, _CLAIMS_AT_ONCE)
            rows = await self._store.all("list_free_generations", now_ms=now, after=after, limit=limit)
            free = [row for row in rows if row["id"] not in self._running and row["id"] not in self._suspects]
            await self._try_suspects([row for row in free if row["crashes"] >= SUSPECT_CRASHES], now)
            others = [row["id"] for row in free if row["crashes"] < SUSPECT_CRASHES]
            for lease in await self._claim_all(others, now) if others else ():
                self.start(lease)
            started += len(free)
            if len(rows) < limit:
                break
            after = rows[-1]["id"]
        return started

    @property
    def _room(self) -> int:
        return self._settings.concurrent_jobs - len(self._running) - len(self._suspects)

    async def _try_suspects(self, rows: list[Row], now_ms: int) -> None:
        """Begin their trials in random order, so that in a series of crashes the first is not always the same."""
        for row in random.sample(rows, len(rows)):
            request_id: str = row["id"]
            take = self._take(request_id, row["crashes"], now_ms)
            task = self._suspects[request_id] = asyncio.create_task(take, name=request_id)
            task.add_done_callback(lambda task: self._suspects.pop(task.get_name(), None))
        if rows and not self._running:
            await asyncio.wait(self._suspects.values(), timeout=_HEAD_START_SECONDS)

    async def _claim_all(self, ids: list[str], now_ms: int) -> list[Lease]:
        claim = {"ids": msgspec.json.encode(ids).decode(), "now_ms": now_ms, "until_ms": self.lease_until_ms}
        rows = await self._store.write(lambda tx: tx.all("claim_generations", **claim))
        return [Lease(row["id"], row["lease_token"], row["crashes"]) for row in rows]

    # ---------------------------------------------------------------------------------------------------------- keeping

    async def renew_forever(self) -> None:
        """Renew the leases of the running jobs again and again; a worker also rescues what nobody runs."""
        while True:
            await self._clock.sleep(self._settings.lease_seconds / 3)
            try:
                await self._renew()
                if self._settings.worker:
                    await self._rescue()
            except StorageUnavailable:
                log.warning("leases not renewed: storage unavailable")

    async def _renew(self) -> None:
        jobs = list(self._running.values())
        for start in range(0, len(jobs), _RENEWALS_AT_ONCE):
            batch = jobs[start : start + _RENEWALS_AT_ONCE]
            leases = msgspec.json.encode([(job.id, job.lease.token) for job in batch]).decode()
            renewed = await self._store.write(partial(_renew_leases, leases, self.lease_until_ms))
            if len(renewed) < len(batch):  # the others were taken over, or have just ended
                lost = {row["id"] for row in await self._store.all("list_lost_leases", leases=leases)}
                self._cancel([job for job in batch if job.id in lost])

    def _cancel(self, lost: list[RunningJob]) -> None:
        for job in lost:
            if self._running.get(job.id) is job:
                log.warning("lease lost", request_id=job.id)
                job.task.cancel()

    async def stop(self) -> None:
        """Stop all jobs and give their leases back; the next process goes on with them.

        A job is not stopped while it sends: an interrupted submission could never be sent again.
        """
        self.is_stopping = True
        await cancel_and_wait(list(self._suspects.values()))
        jobs = list(self._running.values())
        await asyncio.gather(*(self._stop_job(job) for job in jobs))

        async def write(tx: Transaction) -> None:
            for job in sorted(jobs, key=lambda job: job.id):
                await tx.run("release_lease", id=job.id, lease_token=job.lease.token)

        try:
            if jobs:
                await self._store.write(write)
        except StorageUnavailable:
            log.warning("leases not released: storage unavailable")

    async def _stop_job(self, job: RunningJob) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(job.wait_until_sent(), self._settings.drain_seconds)
        await cancel_and_wait([job.task])


async def _renew_leases(leases: str, until_ms: int, tx: Transaction) -> list[Row]:
    return await tx.all("renew_leases", leases=leases, until_ms=until_ms)
