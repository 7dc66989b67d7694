"""Share videos among any number of workers: Procrastinate hands them out over Postgres and takes back dead ones'."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import psycopg
import structlog
from procrastinate import App, BaseRetryStrategy, PsycopgConnector, RetryDecision, exceptions, sql
from procrastinate.connector import Notify
from procrastinate.jobs import Job
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from penstock.clock import Clock
from penstock.errors import StorageUnavailable
from penstock.jobs.leases import Jobs
from penstock.settings import Settings
from penstock.store.base import ConstraintViolated, Row, Store
from penstock.store.postgres import target

T = TypeVar("T")
log = structlog.get_logger()

# As `defer_generation` and `tell_drivers` write them.
QUEUE, TASK, NUDGES = "generations", "drive", "penstock_nudges"
_CONNECTIONS = 4
_LOOK_SECONDS = 1.0  # how late we may learn of a job that was put back; new ones are announced
_PAUSE_SECONDS = 0.5  # between attempts to reach a database that is away
_NEVER_SECONDS = 86_400.0
_RESCUED_AT_ONCE = 500


class Interrupted(Exception):
    """This process stops, or could not reach the database: the job is for another turn."""


class _Again(BaseRetryStrategy):
    """No job fails: what becomes of its generation is written down there."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        return RetryDecision(retry_in={"seconds": 0 if self._jobs.is_stopping else 1})


class _Patient(PsycopgConnector):
    """Waits for a database that is away; the worker above would end with the first failure."""

    def __init__(self, jobs: Jobs, database: str) -> None:
        super().__init__(
            pool_factory=_plain_pool, conninfo=target(database), configure=_configure, min_size=1, max_size=_CONNECTIONS
        )
        self._jobs = jobs

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        ask = super().execute_query_async
        try:
            await self._insist(partial(ask, query, **arguments))
        except exceptions.UniqueViolation:
            # Put back under a name that waits in the queue already: this one is too many.
            await ask(sql.queries["finish_job"], job_id=arguments["job_id"], status="failed", delete_job=True)
        except exceptions.ConnectorException as problem:
            # Ended or put back by somebody else, while we were thought dead.
            if not isinstance(problem.__cause__, psycopg.errors.RaiseException):
                raise

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        return await self._insist(partial(super().execute_query_one_async, query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        return await self._insist(partial(super().execute_query_all_async, query, **arguments))

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except exceptions.ConnectorException as problem:
                away = isinstance(problem.__cause__, psycopg.OperationalError | psycopg.InterfaceError)
                if not away or self._jobs.is_stopping:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """The worker's channels, and ours beside them on the same connection."""

        async def heard(*, channel: str, payload: str) -> None:
            if channel == NUDGES:
                self._jobs.nudge(payload)
            else:
                await on_notification(channel=channel, payload=payload)

        while True:
            try:
                await super().listen_notify(heard, [*channels, NUDGES])
            except exceptions.ConnectorException:
                await asyncio.sleep(_PAUSE_SECONDS)


def _plain_pool(**said: Any) -> AsyncConnectionPool:
    """Without a question before each question whether the connection still lives; see `_Patient`."""
    return AsyncConnectionPool(**{**said, "check": None})


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    """Each statement is a transaction, so that a worker that is stopped holds no locks for long."""
    await connection.set_autocommit(True)
    await connection.execute("SET lock_timeout = '10s'")


class Cluster:
    """This process as one of the workers.

    A job in the queue asks for a driver; the lease says who that is. So a job that is handed out twice, because a
    worker was thought dead, does no harm, and one that got lost is put back when nobody holds the lease.
    """

    def __init__(self, jobs: Jobs, store: Store, clock: Clock, settings: Settings) -> None:
        self._jobs, self._store, self._clock, self._settings = jobs, store, clock, settings
        self._app = App(connector=_Patient(jobs, settings.database))
        self._app.task(name=TASK, queue=QUEUE, retry=_Again(jobs))(self._attend)
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._dropped: set[tuple[str, int]] = set()
        logging.getLogger("procrastinate").setLevel(logging.WARNING)

    async def _attend(self, request_id: str) -> None:
        """Done when it has ended; also when somebody else drives it, or its driver failed: the lease decides then."""
        try:
            ended = await self._jobs.attend(request_id)
        except StorageUnavailable as problem:
            raise Interrupted(request_id) from problem
        if not ended and self._jobs.is_stopping:
            raise Interrupted(request_id)

    async def start(self) -> None:
        await self._app.open_async()
        self._task = asyncio.create_task(self._run(), name="work")

    async def _run(self) -> None:
        """Work until told to stop. A worker that fails is replaced; what it drove goes on meanwhile."""
        while not self._jobs.is_stopping:
            self._worker = self._new_worker()
            try:
                await self._worker.run()  # type: ignore[no-untyped-call]
            except exceptions.ConnectorException:
                log.exception("worker failed, another begins")
                await asyncio.sleep(_PAUSE_SECONDS)

    def _new_worker(self) -> Worker:
        seconds = self._settings.lease_seconds
        return Worker(
            self._app,
            queues=[QUEUE],
            concurrency=self._settings.concurrent_jobs,
            fetch_job_polling_interval=_LOOK_SECONDS,
            abort_job_polling_interval=_NEVER_SECONDS,
            shutdown_graceful_timeout=0,
            delete_jobs="always",
            install_signal_handlers=False,
            update_heartbeat_interval=seconds / 3,
            stalled_worker_timeout=seconds * 4 / 3,
        )

    async def stop(self) -> None:
        """Take nothing more; leave what is under way to the others in good order."""
        self._jobs.is_stopping = True
        if self._worker:
            self._worker.shutdown_graceful_timeout = None  # they end as soon as their drivers are stopped
            self._worker.stop()  # type: ignore[no-untyped-call]
        await self._jobs.stop()
        if self._task:
            await self._task
        await self._app.close_async()

    # ------------------------------------------------------------------------------------------------------- rescuing

    async def rescue(self) -> int:
        """Put back the jobs of dead workers, and what has no job although nobody drives it."""
        manager, seconds = (
            self._app.job_manager,
            self._settings.lease_seconds * 4 / 3,
        )  # the leases have run out by then
        stalled = list(await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=seconds))
        for job in stalled:
            await manager.retry_job(job)
        return len(stalled) + await self._requeue()

    async def _requeue(self) -> int:
        """Seen twice, because between being handed out and being claimed there is a moment that looks the same."""
        now = self._clock.steady_ms()
        rows = await self._store.all("list_dropped_generations", now_ms=now, limit=_RESCUED_AT_ONCE)
        seen = {(row["id"], row["lease_token"]) for row in rows}
        again, self._dropped = seen & self._dropped, seen - self._dropped
        return sum([await self._defer(request_id) for request_id, _ in sorted(again)])

    async def _defer(self, request_id: str) -> bool:
        try:
            row: Row | None = await self._store.write(lambda tx: tx.one("defer_generation", id=request_id))
        except ConstraintViolated:  # another worker was faster
            return False
        return row is not None
