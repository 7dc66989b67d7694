"""The interface of a store, and its errors: the same for SQLite and Postgres."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from penstock.errors import StorageUnavailable
from penstock.values import OrgId

__all__ = [
    "BackupRefused",
    "Change",
    "ConstraintKind",
    "ConstraintViolated",
    "Dialect",
    "DiskFull",
    "QueryMisused",
    "Row",
    "RowsLocked",
    "StorageMisconfigured",
    "StorageUnavailable",
    "Store",
    "Timing",
    "Transaction",
    "WorkSuspended",
    "single",
]

T = TypeVar("T")
Dialect = Literal["sqlite", "postgres"]
DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
ConstraintKind = Literal["unique", "foreign_key", "check", "not_null", "other"]

# Values are int, float, str, bytes or None on both databases. A boolean is 0 or 1; a sum of integers is an int.
Row = dict[str, Any]
Change = tuple[str, Row]  # the name of a query that changes something, and its values


class Transaction(Protocol):
    """The statements of one transaction: all of them take effect, or none.

    After a statement has failed, every further one fails too and nothing is committed, even if the exception was
    caught. Postgres behaves so, and SQLite is made to. Use `ON CONFLICT` where a conflict is expected.
    """

    async def one(self, name: str, /, **values: Any) -> Row | None:
        """Return the only row or None. Raises QueryMisused if there are several."""

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        """Return all rows."""

    async def run(self, name: str, /, **values: Any) -> int:
        """Run a writing query. Returns how many rows were inserted, updated or deleted."""

    async def run_many(self, name: str, rows: Sequence[Row], /) -> int:
        """Run a writing query once for each set of values. Returns the number of changed rows in total."""

    async def put(self, name: str, /, **values: Any) -> None:
        """Run a writing query whose result nobody needs. On Postgres it is sent together with the next statement or
        the commit, which then raises its error.
        """

    async def put_many(self, name: str, rows: Sequence[Row], /) -> None:
        """The same once for each set of values."""

    async def each(self, statements: Sequence[tuple[str, Row]], /) -> list[list[Row]]:
        """Run queries, given as names and values, in this order, and return the rows of each. On Postgres they are sent
        together.
        """

    async def run_each(self, changes: Sequence[Change], /) -> Counter[str]:
        """Run writing queries in this order, and return how many rows those of each name changed in total. On Postgres
        they are sent together; on SQLite it takes half of the time of `each`.
        """


class Timing(msgspec.Struct):
    """Number of writes, and how long their callers waited in total; and how many failed because the disk was full."""

    count: int = 0
    seconds: float = 0.0
    without_space: int = 0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds


class Store(Protocol):
    """A database. Queries are called by their names."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def timing(self) -> Timing: ...

    async def write(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        *,
        org_id: OrgId | None = None,
        lock_ms: int | None = None,
        unlocks_early: bool = False,
    ) -> T:
        """Run `work` in a transaction, and return its result when the transaction is durable.

        `org_id` is the organization whose rows may be locked by others; its writes use a part of the connections only.
        With `lock_ms`, on Postgres, this raises RowsLocked after waiting so long for a row that another transaction has
        locked; otherwise it raises StorageUnavailable after ten seconds.

        With `unlocks_early`, on Postgres, other transactions can see and change the rows a moment before they are
        durable. For rows that many transactions change; what these write is durable only after it.

        `work` may be run again after a conflict or a lost connection. So it must have no effect besides its statements,
        and await nothing but its transaction. If this raises, nothing was written, with two exceptions: after a
        StorageUnavailable whose `should_retry` is False, and after a cancellation, the transaction may be committed.
        """

    async def one(self, name: str, /, **values: Any) -> Row | None:
        """Read one row, or None, of the committed data. For small reads by index."""

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        """Read rows of the committed data. For small reads by index."""

    async def slow(self, name: str, /, **values: Any) -> list[Row]:
        """Read rows with a query that may take long (lists, sums, audits), without delaying other reads.

        Few are read at a time. Queries with an `org_id` take turns with those of other organizations.
        """

    async def purge_traces(self) -> None:
        """Remove deleted data from the files of the database too. Does nothing on Postgres."""

    async def backup(self, path: Path) -> None:
        """Write a consistent copy to `path` while the store is in use. Raises BackupRefused if that is not possible."""

    async def close(self) -> None:
        """Finish the accepted writes, then close the database."""


class StorageMisconfigured(RuntimeError):
    """The database or its setup cannot be used; the message says what is wrong."""


class DiskFull(StorageUnavailable, same_code=True):
    """The database could not write because its disk is full."""


class RowsLocked(Exception):
    """Another transaction has locked a row for longer than this one was to wait for it."""


class ConstraintViolated(Exception):
    """A statement violated a constraint of the schema, so its transaction was rolled back."""

    def __init__(self, kind: ConstraintKind, message: str) -> None:
        super().__init__(message)
        self.kind: ConstraintKind = kind


class QueryMisused(Exception):
    """A mistake in the calling code: an unknown query, wrong values, or a transaction used after its end."""


class WorkSuspended(QueryMisused):
    """The work of a transaction awaited something other than the transaction."""


class BackupRefused(RuntimeError):
    """The backup cannot be made; the message says why or what to do instead."""


def single(name: str, rows: list[Row]) -> Row | None:
    """What `one` returns for these rows. Raises QueryMisused if there are several."""
    if not rows:
        return None
    if len(rows) > 1:
        raise QueryMisused(f"{name} must return one row at most, but returned {len(rows)}.")
    return rows[0]
