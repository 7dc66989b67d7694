"""Share videos and sounds among any number of workers, through a Procrastinate queue in Postgres."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import psycopg
import structlog
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision, exceptions, sql
from procrastinate.connector import Notify
from procrastinate.jobs import Job
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from penstock.clock import Clock
from penstock.errors import StorageUnavailable
from penstock.jobs.leases import LEASE_PART, LOOK_PART, RENEWAL_PART, Jobs
from penstock.settings import Settings
from penstock.store.base import ConstraintViolated, Row, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.postgres import connection_string
from penstock.values import OrgId

T = TypeVar("T")
log = structlog.get_logger()

# As `defer_generation` and `notify_workers` write them.
QUEUE = "generations"
TASK = "run"
WAKEUPS = "penstock_wakeups"
_CONNECTIONS = 4
_LOOK_SECONDS = 1.0  # how late a worker may learn of a job that was put back; new ones are notified
_PAUSE_SECONDS = 0.5  # between tries to reach a database that is unavailable
_COLLECT_ENDED_SECONDS = 0.05  # jobs that end within this time are removed together
_NEVER_SECONDS = 86_400.0
_NOT_REACHED = "queue not reached while stopping"
_RESCUED_AT_ONCE = 500

# Takes the place of Procrastinate's own query, which returns the oldest job of all. Jobs of one organization have one
# priority. This is the oldest job of the next priority that has one and may have a place: of the next lower one, or,
# after the lowest, of the highest.
_DUE = "status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())"
_HIGHEST = f"(SELECT priority FROM procrastinate_jobs WHERE {_DUE} ORDER BY priority DESC LIMIT 1)"  # noqa: S608
_NEXT = f"""COALESCE((
        SELECT priority FROM procrastinate_jobs WHERE {_DUE} AND priority < {{}} ORDER BY priority DESC LIMIT 1
    ), {_HIGHEST})"""  # noqa: S608
_FETCH_NEXT = f"""
WITH RECURSIVE turns AS (
    SELECT {_NEXT.format("CAST(%(turn)s AS BIGINT)")} AS priority, 1 AS number
    UNION ALL
    SELECT {_NEXT.format("turns.priority")}, number + 1 FROM turns
    WHERE turns.priority = ANY(CAST(%(full)s AS INTEGER[])) AND number <= cardinality(CAST(%(full)s AS INTEGER[]))
), next AS MATERIALIZED (
    SELECT id FROM procrastinate_jobs WHERE {_DUE}
        AND priority <= (SELECT priority FROM turns WHERE priority <> ALL(CAST(%(full)s AS INTEGER[])))
        AND priority <> ALL(CAST(%(full)s AS INTEGER[]))
    ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE procrastinate_jobs AS job SET status = 'doing', worker_id = %(worker_id)s FROM next WHERE job.id = next.id
RETURNING job.id, status, task_name, priority, lock, queueing_lock, args, scheduled_at, queue_name, attempts, worker_id
"""  # noqa: S608
_BEFORE_THE_FIRST_TURN = 2**31
_PLACES_PER_FREE_PLACE = 9
_NO_JOB = {"id": None}
_JOB_INSERTED = '{"type": "job_inserted", "job_id": 0}'  # as Procrastinate notifies its workers of a new job


class Interrupted(Exception):
    """This process stops, or could not reach the database: the job goes back to the queue."""


class JobPlaces:
    """The places of this worker, of which no organization has so many that the others find none.

    An organization may have nine places for each one that stays free afterwards, and one in any case. So alone it has
    nine tenths of all places, the next one nine tenths of the rest, and so on; one without any gets the last one. A
    video may keep its place for an hour, so without this the first video of another organization could wait as long.
    Organizations are known by their number in the queue.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken = Counter[int]()

    def take(self, organization: int) -> None:
        self._taken[organization] += 1

    def give_back(self, organization: int) -> None:
        self._taken[organization] -= 1
        if not self._taken[organization]:
            del self._taken[organization]

    def full(self) -> list[int]:
        """The organizations that may not have one more place."""
        left = self._count - self._taken.total() - 1
        return [organization for organization, taken in self._taken.items() if taken > _PLACES_PER_FREE_PLACE * left]


class _AlwaysRetry(BaseRetryStrategy):
    """Put an interrupted job back into the queue; whether its generation failed is stored with the generation."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        return RetryDecision(retry_in={"seconds": 0 if self._jobs.is_stopping else 1})


class _Connector(PsycopgConnector):
    """Repeats a query while the database is unavailable; Procrastinate's worker would end at the first failure.

    Organizations take turns: a free place of this worker goes to the oldest job of the next organization that has one
    in the queue and may have one more place.
    """

    def __init__(self, jobs: Jobs, store: Store, places: JobPlaces, database: str) -> None:
        super().__init__(
            pool_factory=_pool_without_check,
            conninfo=connection_string(database),
            configure=_configure,
            min_size=1,
            max_size=_CONNECTIONS,
        )
        self._jobs = jobs
        self._ended = WriteGroups(store, _remove_jobs, collect_seconds=_COLLECT_ENDED_SECONDS)
        self._places = places
        self._turn = _BEFORE_THE_FIRST_TURN
        self._has_passed_over = False  # the worker found nothing, perhaps because organizations had all their places
        self._notify_worker: Callable[[], Awaitable[None]] | None = None

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        """Write the end of a job, a heartbeat or the end of the worker.

        Nobody reads the exceptions of Procrastinate's tasks that write the end of a job. So there is none if this
        process stops and the database is unavailable: other workers find the job, and this worker, without heartbeat.
        """
        if query == sql.queries["finish_job"]:
            await self._remove(arguments["job_id"])
            return
        try:
            await self._retry(partial(super().execute_query_async, query, **arguments))
        except exceptions.UniqueViolation:
            # The job was to be put back, and another job of its generation waits in the queue already: remove this one.
            await self._remove(arguments["job_id"])
        except exceptions.ConnectorException as problem:
            # Another worker took this one for dead and has ended the job or put it back.
            if isinstance(problem.__cause__, psycopg.errors.RaiseException):
                return
            if not (self._jobs.is_stopping and _is_unavailable(problem)):
                raise
            log.warning(_NOT_REACHED, error=str(problem.__cause__))

    async def _remove(self, job_id: int) -> None:
        """Remove a job from the queue, in one transaction with others that end at the moment."""
        try:
            await self._retry(partial(self._ended.add, job_id))
        except StorageUnavailable as problem:
            log.warning(_NOT_REACHED, error=problem.message)

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        if query == sql.queries["fetch_job"]:
            return await self._fetch_next(arguments["worker_id"])
        return await self._retry(partial(super().execute_query_one_async, query, **arguments))

    async def _fetch_next(self, worker_id: int) -> dict[str, Any]:
        """Take a job from the queue, of the organization whose turn it is."""
        full = self._places.full()
        for turn in dict.fromkeys([self._turn, _BEFORE_THE_FIRST_TURN]):
            rows = await self.execute_query_all_async(_FETCH_NEXT, turn=turn, full=full, worker_id=worker_id)
            if rows:
                self._turn = rows[0]["priority"]
                self._places.take(self._turn)
                return rows[0]
        self._turn = _BEFORE_THE_FIRST_TURN
        self._has_passed_over = bool(full)
        return _NO_JOB

    async def give_back(self, organization: int) -> None:
        """Give back a place, and have the worker look for a job that may have been passed over for want of it."""
        self._places.give_back(organization)
        if self._has_passed_over and self._notify_worker is not None:
            self._has_passed_over = False
            await self._notify_worker()

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        return await self._retry(partial(super().execute_query_all_async, query, **arguments))

    async def _retry(self, execute: Callable[[], Awaitable[T]]) -> T:
        """Repeat while the database is unavailable; when this process stops, at once for each connection of the pool,
        because only these may be lost.

        Not `retry_while_unavailable`: Procrastinate raises exceptions of its own.
        """
        left = _CONNECTIONS
        while True:
            try:
                return await execute()
            except StorageUnavailable:
                if self._jobs.is_stopping:
                    raise
            except exceptions.ConnectorException as problem:
                is_last = self._jobs.is_stopping and (not left or isinstance(problem.__cause__, PoolTimeout))
                if is_last or not _is_unavailable(problem):
                    raise
            if self._jobs.is_stopping:
                left -= 1
            else:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Listen to the worker's channels, and to the wake-ups of jobs on the same connection."""

        channels = list(channels)

        async def receive(*, channel: str, payload: str) -> None:
            if channel == WAKEUPS:
                self._jobs.wake(payload)
            else:
                await on_notification(channel=channel, payload=payload)

        self._notify_worker = partial(on_notification, channel=channels[0], payload=_JOB_INSERTED)
        while True:
            try:
                await super().listen_notify(receive, [*channels, WAKEUPS])
            except exceptions.ConnectorException:
                await asyncio.sleep(_PAUSE_SECONDS)


def _is_unavailable(problem: exceptions.ConnectorException) -> bool:
    return isinstance(problem.__cause__, psycopg.OperationalError | psycopg.InterfaceError)


def _pool_without_check(**options: Any) -> AsyncConnectionPool:
    """A pool that does not check a connection before each use; failed queries are repeated instead."""
    return AsyncConnectionPool(**{**options, "check": None})


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    """Make each statement a transaction, so that a worker that is stopped holds no locks for long.

    It does not wait for the disk: should the database forget in a crash that a job was handed out, it is handed out
    again, which does no harm. Planning `_FETCH_NEXT` takes longer than running it, so it is planned once. The plan is
    always that by the index of queued jobs, because the queue may be empty when it is made, and long when it is used.
    """
    await connection.set_autocommit(True)
    await connection.execute("SET lock_timeout = '10s'; SET synchronous_commit = off")
    await connection.execute(
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_sort = off"
    )


async def _remove_jobs(tx: Transaction, job_ids: Sequence[int]) -> list[None]:
    """Remove jobs from the queue; those that another worker has removed meanwhile are ignored."""
    await tx.put_many("remove_job", [{"id": job_id} for job_id in sorted(job_ids)])
    return [None] * len(job_ids)


class Cluster:
    """This process as one of the workers of a cluster.

    A job in the queue asks for some worker to run a generation; the lease decides which worker does. So a job that is
    handed out twice, because a worker was taken for dead, does no harm. A job that got lost is put back when no worker
    holds the lease.
    """

    def __init__(self, jobs: Jobs, store: Store, clock: Clock, settings: Settings) -> None:
        self._jobs = jobs
        self._store = store
        self._clock = clock
        self._settings = settings
        self._connector = _Connector(jobs, store, JobPlaces(settings.concurrent_jobs), settings.database)
        self._app = App(connector=self._connector)
        self._app.task(name=TASK, queue=QUEUE, retry=_AlwaysRetry(jobs), pass_context=True)(self._run_queued)
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._seen_dropped: set[tuple[str, OrgId, int]] = set()
        logging.getLogger("procrastinate").setLevel(logging.WARNING)

    async def _run_queued(self, context: JobContext, request_id: str) -> None:
        try:
            await self._run_generation(request_id)
        finally:
            await self._connector.give_back(context.job.priority)

    async def _run_generation(self, request_id: str) -> None:
        """Return when the generation has ended, also when another worker runs it or running it failed: then its lease
        decides when it is put back. Raise Interrupted when it is to go back to the queue now.
        """
        try:
            ended = await self._jobs.run_until_ended(request_id)
        except StorageUnavailable as problem:
            raise Interrupted(request_id) from problem
        if not ended and self._jobs.is_stopping:
            raise Interrupted(request_id)

    async def start(self) -> None:
        await self._app.open_async()
        self._task = asyncio.create_task(self._run(), name="work")

    async def _run(self) -> None:
        """Work until told to stop. A worker that fails is replaced; its jobs go on meanwhile."""
        while not self._jobs.is_stopping:
            self._worker = self._new_worker()
            try:
                await self._worker.run()  # type: ignore[no-untyped-call]
            except exceptions.ConnectorException:
                log.exception("worker failed, starting another")
                await asyncio.sleep(_PAUSE_SECONDS)

    def _new_worker(self) -> Worker:
        seconds = self._settings.lease_seconds
        return Worker(
            self._app,
            queues=[QUEUE],
            concurrency=self._settings.concurrent_jobs,
            fetch_job_polling_interval=min(_LOOK_SECONDS, seconds * LOOK_PART),
            abort_job_polling_interval=_NEVER_SECONDS,
            shutdown_graceful_timeout=0,
            delete_jobs="always",
            install_signal_handlers=False,
            update_heartbeat_interval=seconds * RENEWAL_PART,
            stalled_worker_timeout=seconds * LEASE_PART,
        )

    async def stop(self) -> None:
        """Take no more jobs, and stop the running ones so that other workers can go on with them at once."""
        self._jobs.is_stopping = True
        if self._worker:
            self._worker.shutdown_graceful_timeout = None  # they end as soon as the jobs are stopped
            self._worker.stop()  # type: ignore[no-untyped-call]
        await self._jobs.stop()
        if self._task:
            await self._task
        await self._app.close_async()

    # ------------------------------------------------------------------------------------------------------- rescuing

    async def rescue(self) -> int:
        """Put back the jobs of dead workers, and queue generations that nobody runs and that are not in the queue."""
        manager = self._app.job_manager
        seconds = self._settings.lease_seconds * LEASE_PART  # the leases have expired by then
        stalled = list(await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=seconds))
        for job in stalled:
            await manager.retry_job(job)
        return len(stalled) + await self._requeue()

    async def _requeue(self) -> int:
        """Queue again what was found in two rounds: a job looks dropped between being handed out and being claimed."""
        now = self._clock.steady_ms()
        rows = await self._store.all("list_dropped_generations", now_ms=now, limit=_RESCUED_AT_ONCE)
        seen = {(row["id"], row["org_id"], row["lease_token"]) for row in rows}
        seen_twice = seen & self._seen_dropped
        self._seen_dropped = seen - self._seen_dropped
        return sum([await self._defer(request_id, org_id) for request_id, org_id, _ in sorted(seen_twice)])

    async def _defer(self, request_id: str, org_id: OrgId) -> bool:
        values = {"id": request_id, "org_id": org_id}
        try:
            row: Row | None = await self._store.write(lambda tx: tx.one("defer_generation", **values))
        except ConstraintViolated:  # another worker was faster
            return False
        return row is not None
