"""The store on Postgres: a pool of connections, and writes that are retried when that is safe."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Literal, TypeVar

import psycopg
import structlog
from psycopg import conninfo
from psycopg.errors import (
    DeadlockDetected,
    InsufficientPrivilege,
    LockNotAvailable,
    SerializationFailure,
    UndefinedFunction,
)
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from penstock.fair_shares import SharedPlaces
from penstock.store.base import (
    BackupRefused,
    DiskFull,
    QueryMisused,
    Row,
    RowsLocked,
    StorageMisconfigured,
    StorageUnavailable,
    Timing,
    Transaction,
    single,
)
from penstock.store.migrate import Migration
from penstock.store.migrate_postgres import migrate_postgres
from penstock.store.postgres_session import PostgresConnection
from penstock.store.postgres_transaction import (
    WAIT_FOR_DISK,
    ConnectionLost,
    PostgresTransaction,
    statement_of,
    store_error,
)
from penstock.store.postgres_types import adapt
from penstock.store.queries import Queries, Query, QueryFile
from penstock.store.queue import install_queue
from penstock.store.shares import WriteShares, share_of
from penstock.values import OrgId

log = structlog.get_logger()
T = TypeVar("T")

# Accepted values of settings without which a committed transaction may be lost in a power failure.
DURABILITY: Final = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}

# A stopped process or a broken network must not hold locks for ever.
_SESSION: Final = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'"
_CONNECTION_DEFAULTS: Final = {
    "application_name": "penstock",
    "connect_timeout": "5",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}

ATTEMPTS: Final = 8
START_TRIES: Final = 30
START_PAUSE_SECONDS: Final = 1.0
_STARTING: Final = "the database system is "  # starting up, not yet accepting connections, in recovery mode
# Long enough for a restart of the server; with longer waits callers would pile up.
POOL_SECONDS: Final = 10.0
# After this long the pool stops trying to replace a lost connection. The next caller then starts a new attempt at once,
# instead of waiting for the growing pauses between attempts.
RECONNECT_SECONDS: Final = 3.0


async def open_postgres(
    url: str,
    queries: QueryFile,
    migrations: tuple[Migration, ...],
    *,
    connections_min: int = 1,
    connections_max: int = 16,
) -> "PostgresStore":
    """Connect, check the settings of the server, and apply migrations.

    Raises StorageMisconfigured or StorageUnavailable.
    """
    target = connection_string(url)
    pool = AsyncConnectionPool(
        target,
        connection_class=PostgresConnection,
        kwargs={"autocommit": True, "row_factory": dict_row},
        min_size=connections_min,
        max_size=connections_max,
        open=False,
        configure=_configure,
        timeout=POOL_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
    )
    try:
        async with await _connect(target) as connection:
            await check_durability(connection)
            await migrate_postgres(connection, migrations)
            await install_queue(connection)
        await pool.open(wait=True, timeout=POOL_SECONDS)
    except psycopg.OperationalError as error:
        await pool.close()
        raise StorageUnavailable(f"Cannot reach Postgres: {error}") from error
    return PostgresStore(pool, queries.postgres, connections_max)


async def _connect(target: str) -> PostgresConnection:
    """Connect, and wait for a server that is still starting: after a crash it recovers first."""
    for _ in range(START_TRIES):
        try:
            return await PostgresConnection.connect(target, autocommit=True, row_factory=dict_row)
        except psycopg.OperationalError as error:
            if _STARTING not in str(error):  # the state of an error while connecting is known by its text only
                raise
        log.warning("the database is starting up, trying again")
        await asyncio.sleep(START_PAUSE_SECONDS)
    return await PostgresConnection.connect(target, autocommit=True, row_factory=dict_row)


def connection_string(url: str) -> str:
    """The URL, with defaults for connection parameters that it does not set.

    Raises StorageMisconfigured if it is malformed.
    """
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StorageMisconfigured(f"The URL of the database is malformed: {error}") from error
    defaults = {name: value for name, value in _CONNECTION_DEFAULTS.items() if name not in given}
    return conninfo.make_conninfo(url, **defaults)


async def check_durability(connection: PostgresConnection) -> None:
    """Raise StorageMisconfigured if a committed transaction could be lost, or cannot be waited for."""
    for name, accepted in DURABILITY.items():
        row = await (await connection.execute("SELECT current_setting(%s) AS found", (name,))).fetchone()
        if row is None or row["found"] not in accepted:
            allowed = " or ".join(map(repr, accepted))
            raise StorageMisconfigured(f"Postgres setting {name} is {row and row['found']!r}, but must be {allowed}.")
    try:
        await connection.run_together([WAIT_FOR_DISK])
    except (InsufficientPrivilege, UndefinedFunction) as error:
        raise StorageMisconfigured(f"Postgres must let Penstock call pg_logical_emit_message: {error}") from error


async def _configure(connection: PostgresConnection) -> None:
    adapt(connection)
    await connection.execute(_SESSION)


class PostgresStore:
    """A store on a Postgres server, which several processes may share."""

    dialect: Literal["postgres"] = "postgres"

    def __init__(self, pool: AsyncConnectionPool[PostgresConnection], queries: Queries, connections: int) -> None:
        self.timing = Timing()
        self._pool = pool
        self._queries = queries
        self._shares = WriteShares(connections, POOL_SECONDS)
        self._slow_places = SharedPlaces(max(1, connections // 8))  # slow reads must leave connections to the others
        self._users = 0
        self._closed = False
        self._unused = asyncio.Event()

    async def write(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        *,
        org_id: OrgId | None = None,
        lock_ms: int | None = None,
        unlocks_early: bool = False,
    ) -> T:
        started = perf_counter()
        try:
            with self._use():
                async with self._shares.take(org_id):
                    return await self._write(work, lock_ms, unlocks_early)
        except DiskFull:
            self.timing.without_space += 1
            raise
        finally:
            self.timing.add(perf_counter() - started)

    async def _write(self, work: Callable[[Transaction], Awaitable[T]], lock_ms: int | None, unlocks_early: bool) -> T:
        lost = 0
        for attempt in range(ATTEMPTS):
            try:
                return await self._transact(work, lock_ms, unlocks_early)
            except (SerializationFailure, DeadlockDetected):
                await asyncio.sleep(random.uniform(0, 0.002 * 2**attempt))  # noqa: S311
            except ConnectionLost:
                lost += 1
                if lost > 1:
                    break
                # Other connections are probably lost too: let the pool check all of them.
                await _to_its_end(self._pool.check())
        if lost > 1:
            raise StorageUnavailable("Storage is unavailable: the database is not reachable.")
        raise StorageUnavailable("Storage is unavailable: too many writes to the same rows.")

    async def _transact(
        self, work: Callable[[Transaction], Awaitable[T]], lock_ms: int | None, unlocks_early: bool
    ) -> T:
        async with self._connection() as connection:
            transaction = PostgresTransaction(connection, self._queries, lock_ms, unlocks_early)
            try:
                value = await work(transaction)
                if transaction.failure is not None:
                    raise transaction.failure
                await transaction.commit()
            except BaseException as error:
                with suppress(psycopg.Error):
                    await connection.rollback()
                if lock_ms is not None and isinstance(error.__cause__, LockNotAvailable):
                    raise RowsLocked from error
                raise
            finally:
                transaction.failure = QueryMisused("This transaction has ended.")
            return value

    async def one(self, name: str, /, **values: Any) -> Row | None:
        return single(name, await self.all(name, **values))

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        return await self._read_again(self._queries.get_reading(name), values)

    async def _read_again(self, query: Query, values: Row) -> list[Row]:
        """Read rows, and once more if the connection was lost."""
        with self._use():
            try:
                return await self._read(query, values)
            except ConnectionLost:
                await _to_its_end(self._pool.check())
            try:
                return await self._read(query, values)
            except ConnectionLost as error:
                raise StorageUnavailable("Storage is unavailable: the database is not reachable.") from error

    async def slow(self, name: str, /, **values: Any) -> list[Row]:
        query = self._queries.get_reading(name)
        async with self._slow_places.place(share_of(values)):
            return await self._read_again(query, values)

    async def _read(self, query: Query, values: dict[str, Any]) -> list[Row]:
        async with self._connection() as connection:
            try:
                return (await connection.run_together([statement_of(query, values)]))[0].rows
            except psycopg.Error as error:
                raise store_error(error, connection) from error

    async def purge_traces(self) -> None:
        """Do nothing: Postgres removes deleted rows when it vacuums."""

    async def backup(self, path: Path) -> None:
        raise BackupRefused(f"Postgres is backed up by its own tools: pg_dump --format=custom --file={path}")

    async def close(self) -> None:
        self._closed = True
        while self._users:
            self._unused.clear()
            await self._unused.wait()
        await self._pool.close()

    @contextmanager
    def _use(self) -> Iterator[None]:
        if self._closed:
            raise StorageUnavailable("Storage is unavailable: the database is closed.")
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[PostgresConnection]:
        try:
            connection = await self._pool.getconn()
        except psycopg.OperationalError as error:
            raise StorageUnavailable("Storage is unavailable: no connection to the database became free.") from error
        try:
            yield connection
        finally:
            await _to_its_end(self._pool.putconn(connection))


async def _to_its_end(step: Coroutine[Any, Any, None]) -> None:
    """Run a step of the pool to its end, also if the caller is cancelled meanwhile.

    While the pool waits for its own lock, a connection that is returned or checked belongs to nobody: a step that was
    cancelled then would lose it for good.
    """
    await asyncio.shield(asyncio.ensure_future(step))
