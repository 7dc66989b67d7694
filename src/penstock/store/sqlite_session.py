"""One connection to a SQLite file: open it, check that it keeps promises, run named queries on it."""

import os
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import apsw

from penstock.store.base import ConstraintKind, ConstraintViolated, Row, StorageMisconfigured, StorageUnavailable
from penstock.store.queries import Queries, Query

# Before this release, two connections that reset the write-ahead log at the same moment could corrupt the file.
OLDEST_SQLITE: Final = (3, 51, 3)

# Promises rest on these, so they are read back: SQLite ignores a pragma it cannot follow.
SETTINGS: Final = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit is on disk, not only in the system's memory
    "foreign_keys": 1,
    "secure_delete": 1,  # what is deleted is overwritten
    "temp_store": 2,  # in memory, so that nothing deleted survives in a forgotten temporary file
}
# These only make it faster or smaller.
_TUNING: Final = {"cache_size": -32 * 1024, "journal_size_limit": 64 * 1024**2, "trusted_schema": 0}
_OPEN_BUSY_MS: Final = 10_000
_READ_BUSY_MS: Final = 250
_STATEMENTS: Final = 500

_KINDS: Final[dict[int, ConstraintKind]] = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: "unique",
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: "unique",
    apsw.SQLITE_CONSTRAINT_ROWID: "unique",
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: "foreign_key",
    apsw.SQLITE_CONSTRAINT_CHECK: "check",
    apsw.SQLITE_CONSTRAINT_NOTNULL: "not_null",
}
_BUSY: Final = (apsw.BusyError, apsw.LockedError)
_OUT_OF_ORDER: Final = (
    apsw.IOError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.NoMemError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.InterruptError,
    apsw.ConnectionClosedError,
    apsw.CursorClosedError,
)


class Session:
    """A connection with its queries; used by one thread at a time."""

    __slots__ = ("_columns", "connection", "cursor", "queries")

    def __init__(self, connection: apsw.Connection, queries: Queries) -> None:
        self.connection = connection
        self.queries = queries
        self.cursor = connection.cursor()
        self._columns: dict[str, tuple[str, ...]] = {}

    def rows(self, query: Query, values: dict[str, Any]) -> list[Row]:
        self._execute(query, values)
        columns = self._columns.get(query.name)
        if columns is None:
            try:
                columns = tuple(column[0] for column in self.cursor.get_description())
            except apsw.ExecutionCompleteError:  # no rows, so nothing to name yet
                return []
            self._columns[query.name] = columns
        return [dict(zip(columns, row, strict=True)) for row in self.cursor.fetchall()]

    def run(self, query: Query, values: dict[str, Any]) -> int:
        if not query.writes:
            raise query.only_reads()
        self._execute(query, values)
        self.cursor.fetchall()  # what RETURNING gave, if anything: a statement counts when it has ended
        return self.connection.changes()

    def run_many(self, query: Query, every: Sequence[Row]) -> int:
        query.check_many(every)
        # By place rather than by name: to look up names takes the driver nearly as long as to write the row.
        in_order = itemgetter(*query.parameters) if len(query.parameters) > 1 else lambda values: [*values.values()]
        before = self.connection.total_changes()
        self.cursor.executemany(query.sql, map(in_order, every))
        self.cursor.fetchall()
        return self.connection.total_changes() - before

    def _execute(self, query: Query, values: dict[str, Any]) -> None:
        if values.keys() != query.accepts:
            raise query.refuse(values)
        self.cursor.execute(query.sql, values)


def open_session(path: Path, queries: Queries, *, read_only: bool = False) -> Session:
    check_version(apsw.sqlite_lib_version())
    try:
        if not read_only:
            # SQLite would let everybody read it; the log and its index take over these permissions.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        connection = apsw.Connection(
            str(path),
            flags=apsw.SQLITE_OPEN_READWRITE,
            statementcachesize=_STATEMENTS,
        )
    except (OSError, apsw.Error) as error:
        raise StorageMisconfigured(f"Cannot open the database {path}: {error}") from error
    try:
        connection.set_busy_timeout(_OPEN_BUSY_MS)
        for name, value in {**SETTINGS, **_TUNING}.items():
            connection.pragma(name, value)
        check_settings(connection)
        if read_only:
            connection.pragma("query_only", True)
            connection.set_busy_timeout(_READ_BUSY_MS)
    except apsw.Error as error:
        connection.close()
        raise StorageMisconfigured(f"Cannot use the database {path}: {error}") from error
    except StorageMisconfigured:
        connection.close()
        raise
    return Session(connection, queries)


def check_version(version: str) -> None:
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StorageMisconfigured(f"SQLite {version} can corrupt a write-ahead log; {oldest} or newer is needed.")


def check_settings(connection: apsw.Connection) -> None:
    for name, wanted in SETTINGS.items():
        found = connection.pragma(name)
        if found != wanted:
            raise StorageMisconfigured(f"SQLite setting {name} is {found!r}, but must be {wanted!r}.")


def _extended(error: apsw.ConstraintError) -> int:
    code: int = getattr(error, "extendedresult", 0)
    return code


def translated(error: Exception) -> Exception:
    """The store's own error for one of SQLite's; others as they are."""
    if isinstance(error, apsw.ConstraintError):
        return ConstraintViolated(_KINDS.get(_extended(error), "other"), str(error))
    if isinstance(error, apsw.FullError):
        return StorageUnavailable("Storage is unavailable: the database has no space left.")
    if isinstance(error, _BUSY):
        return StorageUnavailable("Storage is unavailable: the database is in use by another process.")
    if isinstance(error, _OUT_OF_ORDER):
        return StorageUnavailable("Storage is unavailable: the database cannot be read or written.")
    return error
