"""Keep everything in Postgres: one transaction per write, on a pool that outlives restarts of the server."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Literal, NoReturn, TypeVar

import psycopg
from psycopg import conninfo
from psycopg.errors import DeadlockDetected, IntegrityError, ReadOnlySqlTransaction, SerializationFailure
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from penstock.store.base import (
    BackupRefused,
    ConstraintKind,
    ConstraintViolated,
    QueryMisused,
    Row,
    StorageMisconfigured,
    StorageUnavailable,
    Timing,
    Transaction,
    single,
)
from penstock.store.migrate import Migration, migrate_postgres
from penstock.store.postgres_types import adapt
from penstock.store.queries import Queries, Query, QueryFile
from penstock.store.queue import install_queue

T = TypeVar("T")
Connection = psycopg.AsyncConnection[Row]
Cursor = psycopg.AsyncCursor[Row]

# Without these a committed transaction may vanish when the machine loses power. `synchronous_commit` has several
# values that wait for the disk and one that does not.
DURABILITY: Final = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}

# A process that is stopped, or a network that swallows packets, must not keep others from their rows for ever.
_SESSION: Final = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'"
_CONNECTING: Final = {
    "application_name": "penstock",
    "connect_timeout": "5",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"

ATTEMPTS: Final = 8
# Long enough to sit out a restart of the server; longer waits would only pile up callers.
POOL_SECONDS: Final = 10.0
# After this long the pool gives a slot up; whoever asks next starts a new attempt at once instead of waiting for the
# last one's ever longer pauses.
RECONNECT_SECONDS: Final = 3.0

_KINDS: Final[dict[str, ConstraintKind]] = {
    "23505": "unique",
    "23503": "foreign_key",
    "23514": "check",
    "23502": "not_null",
}
# What callers may know; the server's own words stay in the cause.
_REASONS: Final = {
    "53100": "the database has no space left",
    "55P03": "somebody else holds on to what this needs",
    "57014": "the database was told to stop",
    "25006": "the database only reads at the moment",
}
# The server ends the connection along with these: it shuts down, or we were idle in a transaction for too long.
_FAREWELLS: Final = ("57P01", "57P02", "57P03", "57P05", "25P03")


class ConnectionLost(Exception):
    """The connection died before anything could have been committed."""


async def open_postgres(
    url: str,
    queries: QueryFile,
    migrations: tuple[Migration, ...],
    *,
    connections_min: int = 1,
    connections_max: int = 16,
) -> "PostgresStore":
    """Connect, check the server's settings and bring the schema up to date."""
    pool = AsyncConnectionPool(
        target(url),
        connection_class=Connection,
        kwargs={"autocommit": True, "row_factory": dict_row},
        min_size=connections_min,
        max_size=connections_max,
        open=False,
        configure=_configure,
        timeout=POOL_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
    )
    try:
        async with await Connection.connect(target(url), autocommit=True, row_factory=dict_row) as connection:
            await check_durability(connection)
            await migrate_postgres(connection, migrations)
            await install_queue(connection)
        await pool.open(wait=True, timeout=POOL_SECONDS)
    except psycopg.OperationalError as error:
        await pool.close()
        raise StorageUnavailable(f"Cannot reach Postgres: {error}") from error
    return PostgresStore(pool, queries.postgres, slow_at_once=max(1, connections_max // 4))


def target(url: str) -> str:
    """The address that was given, with our ideas of how to connect where it has none."""
    try:
        said = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StorageMisconfigured(f"The address of the database is not understood: {error}") from error
    return conninfo.make_conninfo(url, **{name: value for name, value in _CONNECTING.items() if name not in said})


async def check_durability(connection: Connection) -> None:
    for name, accepted in DURABILITY.items():
        row = await (await connection.execute("SELECT current_setting(%s) AS found", (name,))).fetchone()
        if row is None or row["found"] not in accepted:
            raise StorageMisconfigured(f"Postgres setting {name} is {row and row['found']!r}, but must be 'on'.")


async def _configure(connection: Connection) -> None:
    adapt(connection)
    connection.prepared_max = 1_000
    await connection.execute(_SESSION)


class PostgresTransaction:
    """The statements of one work, on a connection of its own."""

    __slots__ = ("_cursor", "_queries", "failure")

    def __init__(self, cursor: Cursor, queries: Queries) -> None:
        self._cursor = cursor
        self._queries = queries
        self.failure: Exception | None = None

    async def begin(self) -> None:
        try:
            await self._cursor.execute(_BEGIN)
        except psycopg.Error as error:
            self._fail(error)

    async def one(self, name: str, /, **values: Any) -> Row | None:
        return single(name, await self.all(name, **values))

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        if self.failure is not None:
            raise self.failure
        try:
            return await fetch(self._cursor, self._queries[name], values)
        except Exception as error:
            self._fail(error)

    async def run(self, name: str, /, **values: Any) -> int:
        if self.failure is not None:
            raise self.failure
        try:
            query = self._queries[name]
            if not query.writes:
                raise query.only_reads()
            await execute(self._cursor, query, values)
        except Exception as error:
            self._fail(error)
        return self._cursor.rowcount

    async def run_many(self, name: str, every: Sequence[Row], /) -> int:
        if self.failure is not None:
            raise self.failure
        try:
            query = self._queries[name]
            query.check_many(every)
            await self._cursor.executemany(query.sql.encode(), every)
        except Exception as error:
            self._fail(error)
        return self._cursor.rowcount

    def _fail(self, error: Exception) -> NoReturn:
        self.failure = _translated(error, self._cursor.connection)
        if self.failure is error:
            raise error
        raise self.failure from error


class PostgresStore:
    """A store on a Postgres server, shared by any number of processes."""

    dialect: Literal["postgres"] = "postgres"

    def __init__(self, pool: AsyncConnectionPool[Connection], queries: Queries, slow_at_once: int) -> None:
        self.timing = Timing()
        self._pool = pool
        self._queries = queries
        # Long reads may not take every connection.
        self._slow = asyncio.Semaphore(slow_at_once)
        self._users = 0
        self._closed = False
        self._unused = asyncio.Event()

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        began = perf_counter()
        try:
            return await self._write(work)
        finally:
            self.timing.add(perf_counter() - began)

    async def _write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        lost = 0
        with self._use():
            for attempt in range(ATTEMPTS):
                try:
                    return await self._transact(work)
                except (SerializationFailure, DeadlockDetected):
                    await asyncio.sleep(random.uniform(0, 0.002 * 2**attempt))  # noqa: S311
                except ConnectionLost:
                    lost += 1
                    if lost > 1:
                        break
                    # It hardly died alone: let the pool find out which of the others are gone too.
                    await self._pool.check()
        if lost > 1:
            raise StorageUnavailable("Storage is unavailable: the database is not reachable.")
        raise StorageUnavailable("Storage is unavailable: too many writes to the same rows.")

    async def _transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._connection() as connection:
            cursor = connection.cursor()
            transaction = PostgresTransaction(cursor, self._queries)
            try:
                await transaction.begin()
                value = await work(transaction)
                if transaction.failure is not None:
                    raise transaction.failure
            except BaseException:
                with suppress(psycopg.Error):
                    await connection.rollback()
                raise
            finally:
                transaction.failure = QueryMisused("This transaction is over.")
            await _commit(cursor)
            return value

    async def one(self, name: str, /, **values: Any) -> Row | None:
        return single(name, await self.all(name, **values))

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        query = self._queries.reading(name)
        with self._use():
            try:
                return await self._read(query, values)
            except ConnectionLost:
                await self._pool.check()
            try:
                return await self._read(query, values)
            except ConnectionLost as error:
                raise StorageUnavailable("Storage is unavailable: the database is not reachable.") from error

    async def slow(self, name: str, /, **values: Any) -> list[Row]:
        async with self._slow:
            return await self.all(name, **values)

    async def _read(self, query: Query, values: dict[str, Any]) -> list[Row]:
        async with self._connection() as connection:
            try:
                return await fetch(connection.cursor(), query, values)
            except psycopg.Error as error:
                raise _translated(error, connection) from error

    async def purge_traces(self) -> None:
        """Nothing: what is deleted goes when Postgres vacuums, by its own schedule."""

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
    async def _connection(self) -> AsyncIterator[Connection]:
        try:
            connection = await self._pool.getconn()
        except psycopg.OperationalError as error:
            raise StorageUnavailable("Storage is unavailable: no connection to the database became free.") from error
        try:
            yield connection
        finally:
            await self._pool.putconn(connection)


async def execute(cursor: Cursor, query: Query, values: dict[str, Any]) -> None:
    if values.keys() != query.accepts:
        raise query.refuse(values)
    await cursor.execute(query.sql.encode(), values, prepare=True, binary=True)


async def fetch(cursor: Cursor, query: Query, values: dict[str, Any]) -> list[Row]:
    await execute(cursor, query, values)
    return await cursor.fetchall() if cursor.description else []


async def _commit(cursor: Cursor) -> None:
    try:
        await cursor.execute("COMMIT")
    except (SerializationFailure, DeadlockDetected):
        raise
    except IntegrityError as error:
        raise _translated(error, cursor.connection) from error
    except psycopg.Error as error:
        # It was sent, and whether it arrived nobody knows; running the work again might do it twice.
        raise StorageUnavailable(
            "Storage is unavailable: the connection to the database broke while committing.", should_retry=False
        ) from error
    if cursor.statusmessage != "COMMIT":
        raise StorageUnavailable("Storage is unavailable: the database rolled the transaction back.")


def _translated(error: Exception, connection: psycopg.AsyncConnection[Any]) -> Exception:
    """The store's own error for one of psycopg's; others, and those that mean another try, as they are."""
    if isinstance(error, IntegrityError):
        return ConstraintViolated(_KINDS.get(error.sqlstate or "", "other"), str(error))
    if not isinstance(error, psycopg.Error) or isinstance(error, SerializationFailure | DeadlockDetected):
        return error
    if connection.closed or error.sqlstate in _FAREWELLS:
        connection.pgconn.finish()
        return ConnectionLost(str(error))
    if isinstance(error, ReadOnlySqlTransaction):  # a standby took over, and this connection leads to the old primary
        connection.pgconn.finish()
    elif not isinstance(error, psycopg.OperationalError):
        return error
    reason = _REASONS.get(error.sqlstate or "", "the database failed")
    return StorageUnavailable(f"Storage is unavailable: {reason}.")
