"""One connection to a SQLite file: open it, check its settings, run named queries."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from penstock.store.base import (
    ConstraintKind,
    ConstraintViolated,
    DiskFull,
    Row,
    StorageMisconfigured,
    StorageUnavailable,
)
from penstock.store.queries import Queries, Query

# Before this release, two connections that reset the write-ahead log at the same time could corrupt the file.
OLDEST_SQLITE: Final = (3, 51, 3)

# Durability and deletion depend on these, so they are read back: SQLite ignores a pragma that it cannot set.
SETTINGS: Final = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit is on the disk, not only in the memory of the system
    "foreign_keys": 1,
    "secure_delete": 1,  # deleted data is overwritten
    "temp_store": 2,  # in memory, so that no deleted data stays in a temporary file
}
# These affect speed and size, and what a schema that somebody else has changed may call.
_TUNING: Final = {"cache_size": -32 * 1024, "journal_size_limit": 64 * 1024**2, "trusted_schema": 0}
_OPEN_BUSY_MS: Final = 10_000
_PRAGMA_TRIES: Final = 200
_PRAGMA_PAUSE_SECONDS: Final = 0.02
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
_UNUSABLE: Final = (
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
    """A connection with its queries. Only one thread may use it at a time."""

    __slots__ = ("_columns", "connection", "cursor", "queries")

    def __init__(self, connection: apsw.Connection, queries: Queries) -> None:
        self.connection = connection
        self.queries = queries
        self.cursor = connection.cursor()
        self._columns: dict[str, tuple[str, ...]] = {}

    def rows(self, query: Query, values: dict[str, Any]) -> list[Row]:
        """Run a query and return its rows."""
        self._execute(query, values)
        columns = self._columns.get(query.name)
        if columns is None:
            try:
                columns = tuple(column[0] for column in self.cursor.get_description())
            except apsw.ExecutionCompleteError:  # no rows, so the column names are not known yet
                return []
            self._columns[query.name] = columns
        return [dict(zip(columns, row, strict=True)) for row in self.cursor.fetchall()]

    def rows_of_each(self, query: Query, many: Sequence[Row]) -> list[list[Row]]:
        """Run a query for each set of values and return the rows of each."""
        return [self.rows(query, values) for values in many]

    def run(self, query: Query, values: dict[str, Any]) -> int:
        """Run a writing query and return the number of changed rows."""
        if not query.writes:
            raise query.only_reads()
        self._execute(query, values)
        self.cursor.fetchall()  # rows of RETURNING: a statement ends only when all of them are read
        return self.connection.changes()

    def run_many(self, query: Query, rows: Sequence[Row]) -> int:
        """Run a writing query for each set of values and return the number of changed rows in total."""
        query.check_many(rows)
        before = self.connection.total_changes()
        self.cursor.executemany(query.sql, map(query.in_order, rows))
        self.cursor.fetchall()
        return self.connection.total_changes() - before

    def _execute(self, query: Query, values: dict[str, Any]) -> None:
        if values.keys() != query.accepts:
            raise query.wrong_values(values)
        # Values by position: the driver needs nearly as long to look up names as to write the row.
        self.cursor.execute(query.sql, query.in_order(values))


def _set_pragma(connection: apsw.Connection, name: str, value: Any) -> None:
    """Set a pragma, and try again while another process does the same: SQLite does not wait by itself when several
    processes switch a new database to the write-ahead log at once.
    """
    for _ in range(_PRAGMA_TRIES - 1):
        try:
            connection.pragma(name, value)
            return
        except apsw.BusyError:
            time.sleep(_PRAGMA_PAUSE_SECONDS)
    connection.pragma(name, value)


def open_session(path: Path, queries: Queries, *, read_only: bool = False) -> Session:
    """Open the file, which is created unless `read_only`. Raises StorageMisconfigured if it cannot be used."""
    check_version(apsw.sqlite_lib_version())
    try:
        if not read_only:
            # SQLite would let all users read it. The write-ahead log and its index get the same permissions.
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
            _set_pragma(connection, name, value)
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
    """Raise StorageMisconfigured if the SQLite library is too old."""
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StorageMisconfigured(f"SQLite {version} can corrupt a write-ahead log; {oldest} or newer is needed.")


def check_settings(connection: apsw.Connection) -> None:
    """Raise StorageMisconfigured if a setting did not take effect."""
    for name, wanted in SETTINGS.items():
        found = connection.pragma(name)
        if found != wanted:
            raise StorageMisconfigured(f"SQLite setting {name} is {found!r}, but must be {wanted!r}.")


def _extended_code(error: apsw.ConstraintError) -> int:
    code: int = getattr(error, "extendedresult", 0)
    return code


def store_error(error: Exception) -> Exception:
    """The store's error for an error of SQLite. Other exceptions are returned as they are."""
    if isinstance(error, apsw.ConstraintError):
        return ConstraintViolated(_KINDS.get(_extended_code(error), "other"), str(error))
    if isinstance(error, apsw.FullError):
        return DiskFull("Storage is unavailable: the database has no space left.")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StorageUnavailable("Storage is unavailable: the database file is damaged; restore a backup.")
    if isinstance(error, _BUSY):
        return StorageUnavailable("Storage is unavailable: the database is in use by another process.")
    if isinstance(error, _UNUSABLE):
        return StorageUnavailable("Storage is unavailable: the database cannot be read or written.")
    return error
