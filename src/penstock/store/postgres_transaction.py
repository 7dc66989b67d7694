"""One transaction on Postgres: its statements, its commit, and the store's errors for those of the server."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from types import NoneType
from typing import Any, Final, NoReturn

import msgspec
import psycopg
from psycopg.errors import DeadlockDetected, IntegrityError, ReadOnlySqlTransaction, SerializationFailure

from penstock.store.base import Change, ConstraintKind, ConstraintViolated, DiskFull, Row, StorageUnavailable, single
from penstock.store.postgres_session import PostgresConnection, Result, Statement
from penstock.store.queries import Queries, Query

_BEGIN: Final = Statement(Query("begin", "Begin.", "BEGIN ISOLATION LEVEL READ COMMITTED", (), writes=True))
_LIMIT_LOCKS: Final = Query(
    "limit_locks", "Wait less long for locks.", "SELECT set_config('lock_timeout', $1, true)", ("lock_ms",), writes=True
)
_COMMIT: Final = Statement(Query("commit", "Commit.", "COMMIT", (), writes=True))
# A commit that does not wait for the disk, so that its rows are unlocked at once, and then a transaction that locks
# nothing and waits for the disk. The log of the database is written in order, so the first is durable with the second.
_WAIT_LATER: Final = Statement(
    Query(
        "wait_later",
        "Let the commit not wait for the disk.",
        "SELECT set_config('synchronous_commit', 'off', true)",
        (),
        writes=True,
    )
)
WAIT_FOR_DISK: Final = Statement(
    Query(
        "wait_for_disk",
        "Wait until all that was committed before is durable.",
        "SELECT pg_logical_emit_message(true, 'penstock', '') IS NULL AS waited",
        (),
        writes=True,
    )
)
_COMMIT_EARLY: Final = (_WAIT_LATER, _COMMIT, WAIT_FOR_DISK)

_KINDS: Final[dict[str, ConstraintKind]] = {
    "23505": "unique",
    "23503": "foreign_key",
    "23514": "check",
    "23502": "not_null",
}
# Reasons that callers may see. The message of the server is only in the cause of the exception.
_NO_SPACE: Final = "53100"
_REASONS: Final = {
    _NO_SPACE: "the database has no space left",
    "55P03": "another transaction holds a lock for too long",
    "57014": "the query was cancelled by the server",
    "25006": "the database is read-only at the moment",
}
# With these errors the server closes the connection: it shuts down, or a transaction was idle for too long.
_CLOSING_ERRORS: Final = ("57P01", "57P02", "57P03", "57P05", "25P03")

# Types of values that can be sent in JSON: the server reads bytes from their hexadecimal digits.
_IN_JSON: Final = frozenset({int, str, bytes, NoneType})
# Rows with more bytes than this are sent one by one: their digits would take twice the memory.
_MOST_BYTES_IN_JSON: Final = 2**18


class ConnectionLost(Exception):
    """The connection was lost before COMMIT was sent, so nothing was committed."""


class PostgresTransaction:
    """The statements of one transaction, on a connection of its own.

    Statements whose result nobody needs, BEGIN among them, wait until one comes whose result is needed, or the commit.
    They are sent together: the server runs them in order, and none after one that failed. So the rows that many
    transactions share, which are changed last, are locked for the time of one round trip and not of several.
    """

    __slots__ = ("_connection", "_end", "_queries", "_waiting", "failure")

    def __init__(
        self, connection: PostgresConnection, queries: Queries, lock_ms: int | None = None, unlocks_early: bool = False
    ) -> None:
        self._connection = connection
        self._queries = queries
        self._end = _COMMIT_EARLY if unlocks_early else (_COMMIT,)
        self._waiting = [_BEGIN] if lock_ms is None else [_BEGIN, Statement(_LIMIT_LOCKS, [str(lock_ms)])]
        self.failure: Exception | None = None

    async def one(self, name: str, /, **values: Any) -> Row | None:
        return single(name, await self.all(name, **values))

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        return (await self._run(lambda: [statement_of(self._queries[name], values)]))[-1].rows

    async def run(self, name: str, /, **values: Any) -> int:
        return (await self._run(lambda: [_writing(self._queries[name], values)]))[-1].affected

    async def run_many(self, name: str, rows: Sequence[Row], /) -> int:
        statements: list[Statement] = []

        def many() -> list[Statement]:
            statements.extend(_writing_many(self._queries[name], rows))
            return statements

        results = await self._run(many)
        return sum(result.affected for result in results[len(results) - len(statements) :])

    async def put(self, name: str, /, **values: Any) -> None:
        self._put(lambda: [_writing(self._queries[name], values)])

    async def put_many(self, name: str, rows: Sequence[Row], /) -> None:
        self._put(lambda: _writing_many(self._queries[name], rows))

    async def each(self, statements: Sequence[tuple[str, Row]], /) -> list[list[Row]]:
        results = await self._run(lambda: [statement_of(self._queries[name], values) for name, values in statements])
        return [result.rows for result in results[len(results) - len(statements) :]]

    async def run_each(self, changes: Sequence[Change], /) -> Counter[str]:
        statements: list[Statement] = []

        def all_changes() -> list[Statement]:
            for name, same in groupby(changes, key=itemgetter(0)):
                statements.extend(_writing_many(self._queries[name], [values for _, values in same]))
            return statements

        results = await self._run(all_changes)
        changed = Counter[str]()
        for statement, result in zip(statements, results[len(results) - len(statements) :], strict=True):
            changed[statement.query.name] += result.affected
        return changed

    async def commit(self) -> None:
        """Send what waits, and COMMIT. Raises a StorageUnavailable that forbids to retry if it may have succeeded."""
        if self._waiting[:1] == [_BEGIN]:
            # Alone: if the connection was lost long ago, it is known that nothing was committed.
            rest = self._waiting[1:]
            self._waiting = [_BEGIN]
            await self._run(list)
            self._waiting = rest
        statements = [*self._waiting, *self._end]
        place = statements.index(_COMMIT)
        try:
            results = await self._connection.run_together(statements)
        except (SerializationFailure, DeadlockDetected):
            raise
        except psycopg.Error as error:
            # The server's reply to a statement means that COMMIT did not take effect, unless it came after COMMIT.
            # Without a reply it may have taken effect, so running the work again might do it twice.
            is_known = error.sqlstate and error.sqlstate not in _CLOSING_ERRORS and not self._connection.closed
            if not is_known or self._connection.completed > place:
                message = "Storage is unavailable: the connection to the database broke while committing."
                raise StorageUnavailable(message, should_retry=False) from error
            raise store_error(error, self._connection) from error
        if results[place].tag != "COMMIT":
            raise StorageUnavailable("Storage is unavailable: the database rolled the transaction back.")

    async def _run(self, statements: Callable[[], Sequence[Statement]]) -> list[Result]:
        """Run what waits and these statements, and return all results."""
        self._put(statements)
        waiting, self._waiting = self._waiting, []
        try:
            return await self._connection.run_together(waiting)
        except Exception as error:
            self._fail(error)

    def _put(self, statements: Callable[[], Sequence[Statement]]) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            self._waiting += statements()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        self.failure = store_error(error, self._connection)
        if self.failure is error:
            raise error
        raise self.failure from error


def statement_of(query: Query, values: Row) -> Statement:
    """A query with its values. Raises QueryMisused if they are not its parameters."""
    if values.keys() != query.accepts:
        raise query.wrong_values(values)
    return Statement(query, [values[name] for name in query.parameters])


def _writing(query: Query, values: Row) -> Statement:
    if not query.writes:
        raise query.only_reads()
    return statement_of(query, values)


def _writing_many(query: Query, rows: Sequence[Row]) -> list[Statement]:
    """One statement for all rows where that is possible, otherwise one for each."""
    query.check_many(rows)
    if query.many and len(rows) > 1 and (encoded := _encode_rows(rows)):
        return [Statement(query.many, [encoded])]
    return [Statement(query, [values[name] for name in query.parameters]) for values in rows]


def _encode_rows(rows: Sequence[Row]) -> str | None:
    """Rows as JSON; None if they cannot or should not be sent like that."""
    sizes: list[int] = []
    for values in rows:
        for value in values.values():
            if type(value) not in _IN_JSON:
                return None
            if type(value) is bytes:
                sizes.append(len(value))
    if sum(sizes) > _MOST_BYTES_IN_JSON:
        return None
    if sizes:
        rows = [
            {name: f"\\x{value.hex()}" if type(value) is bytes else value for name, value in values.items()}
            for values in rows
        ]
    return msgspec.json.encode(rows).decode()


def store_error(error: Exception, connection: psycopg.AsyncConnection[Any]) -> Exception:
    """The store's error for an error of psycopg. Errors that mean a retry, and others, are returned as they are."""
    if isinstance(error, IntegrityError):
        return ConstraintViolated(_KINDS.get(error.sqlstate or "", "other"), str(error))
    if not isinstance(error, psycopg.Error) or isinstance(error, SerializationFailure | DeadlockDetected):
        return error
    if connection.closed or error.sqlstate in _CLOSING_ERRORS:
        connection.pgconn.finish()
        return ConnectionLost(str(error))
    if isinstance(error, ReadOnlySqlTransaction):  # this connection leads to a former primary server
        connection.pgconn.finish()
    elif not isinstance(error, psycopg.OperationalError):
        return error
    reason = _REASONS.get(error.sqlstate or "", "the database failed")
    kind = DiskFull if error.sqlstate == _NO_SPACE else StorageUnavailable
    return kind(f"Storage is unavailable: {reason}.")
