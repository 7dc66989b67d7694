"""What a store is: transactions, reads and the errors they raise, the same on SQLite and on Postgres."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from penstock.errors import StorageUnavailable

__all__ = [
    "BackupRefused",
    "ConstraintKind",
    "ConstraintViolated",
    "Dialect",
    "QueryMisused",
    "Row",
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

# Values are int, float, str, bytes or None on both databases: truth is 0 or 1, a sum of integers is an int.
Row = dict[str, Any]


class Transaction(Protocol):
    """One piece of work: all of its statements or none.

    A statement that fails dooms the whole work, also when the exception is caught: Postgres refuses to go on after an
    error, so SQLite is made to refuse as well. Write `ON CONFLICT` where a conflict is expected.
    """

    async def one(self, name: str, /, **values: Any) -> Row | None:
        """The only row, or None; two rows are a mistake in the query."""

    async def all(self, name: str, /, **values: Any) -> list[Row]: ...

    async def run(self, name: str, /, **values: Any) -> int:
        """How many rows were inserted, updated or deleted."""

    async def run_many(self, name: str, every: Sequence[Row], /) -> int:
        """The same for each of several sets of values, and the sum; cheaper than one by one."""


@dataclass(slots=True)
class Timing:
    """How many writes there were, and how long their callers waited for them altogether."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds


class Store(Protocol):
    """The database, addressed by the names of queries."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def timing(self) -> Timing: ...

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in a transaction that is durable when this returns.

        `work` may be run again after a conflict or a lost connection, so it has no effect but its statements; and it
        awaits nothing but its transaction. When this raises, nothing was written, except that a StorageUnavailable
        with `should_retry` False means that nobody knows; and a cancelled caller's work may or may not have landed.
        """

    async def one(self, name: str, /, **values: Any) -> Row | None:
        """A small indexed read of what is committed now."""

    async def all(self, name: str, /, **values: Any) -> list[Row]: ...

    async def slow(self, name: str, /, **values: Any) -> list[Row]:
        """A read that may take long (lists, sums, audits) and must not hold up the others."""

    async def purge_traces(self) -> None:
        """Make what was deleted unreadable in the files of the database, where that is ours to do."""

    async def backup(self, path: Path) -> None:
        """Write a consistent copy while the store is in use."""

    async def close(self) -> None:
        """Finish the writes that were accepted, then let go."""


class StorageMisconfigured(Exception):
    """The database cannot be trusted with promises as it is set up; the message names the setting."""


class ConstraintViolated(Exception):
    """A statement broke a rule of the schema, so its work was undone."""

    def __init__(self, kind: ConstraintKind, message: str) -> None:
        super().__init__(message)
        self.kind: ConstraintKind = kind


class QueryMisused(Exception):
    """A mistake in our own code: wrong name, wrong values, wrong method, or a transaction used after its end."""


class WorkSuspended(QueryMisused):
    """A work awaited something other than its transaction."""


class BackupRefused(Exception):
    """This copy cannot be made here; the message says what to do instead."""


def single(name: str, rows: list[Row]) -> Row | None:
    """What `one` returns for these rows."""
    if not rows:
        return None
    if len(rows) > 1:
        raise QueryMisused(f"{name} was asked for one row and gave {len(rows)}.")
    return rows[0]
