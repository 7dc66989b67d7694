"""Check that transactions lock tables in the order of docs/decisions/lock-order.md."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from penstock.store.base import Change, Row, Transaction
from penstock.store.postgres import PostgresStore

T = TypeVar("T")
PAGE = Path(__file__).parents[1] / "docs/decisions/lock-order.md"
ORDER = re.findall(r"^\d+\. `(\w+)`$", PAGE.read_text(), re.MULTILINE)
# New rows, for which no other transaction can wait.
EXCEPTIONS = (
    "add_org", "add_request", "add_generation", "add_attempt", "add_request_label", "add_reused_output",
    "add_audit_event",
)  # fmt: skip
PRIMARY_KEYS = {
    "orgs": ("org_id",),
    "response_items": ("org_id", "id"),
    "idempotency_keys": ("org_id", "key_digest"),
    "batch_rows": ("batch_id", "number"),
    "trial_votes": ("trial_id", "voter", "prompt", "first", "second"),
    "upload_pieces": ("upload_id", "number"),
    "usage_slots": ("org_id", "key_id", "status", "slot"),
    "label_spend": ("month", "org_id", "name", "value"),
    "account_spend": ("month", "account_id"),
    "account_use": ("account_id", "process_id"),
    "guard_verdicts": ("day", "org_id", "guard", "verdict"),
    "label_budgets": ("org_id", "name", "value"),
}
_CHANGED = re.compile(r"\b(?:INSERT INTO|DELETE FROM|(?<!FOR )(?<!KEY )(?<!DO )UPDATE) (\w+)|\b(procrastinate)_defer")
_LOCKED = re.compile(r"\bFROM (\w+)(?: (?!FROM)\S+)*? FOR (?:NO KEY )?UPDATE")


def locked_tables(sql: str) -> list[str]:
    """The tables whose rows a statement changes or locks."""
    plain = " ".join(sql.split())
    names = [match[1] or "procrastinate_jobs" for match in _CHANGED.finditer(plain)]
    return [match[1] for match in _LOCKED.finditer(plain)] + names


class Watched:
    """A transaction that notes what it locks."""

    def __init__(self, tx: Transaction, statement: Callable[[str], str], violations: list[str]) -> None:
        self._tx = tx
        self._statement = statement
        self._violations = violations
        self._names: list[str] = []
        self._last = 0
        self._keys: dict[str, tuple[Any, ...]] = {}

    def _note(self, name: str, values: Row) -> None:
        self._names.append(name)
        if name in EXCEPTIONS:
            return
        for table in locked_tables(self._statement(name)):
            columns = PRIMARY_KEYS.get(table, ("id",))
            key = tuple(values.get(column) for column in columns)
            last_key = self._keys.get(table)
            if None not in key:
                if key == last_key:
                    continue  # it is locked already
                if last_key and key < last_key:
                    self._violations.append(f"rows of {table} not in order: {', '.join(self._names)}")
                self._keys[table] = key
            place = ORDER.index(table)
            if place < self._last:
                self._violations.append(f"{table} after {ORDER[self._last]}: {', '.join(self._names)}")
            self._last = place

    async def one(self, name: str, /, **values: Any) -> Row | None:
        self._note(name, values)
        return await self._tx.one(name, **values)

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        self._note(name, values)
        return await self._tx.all(name, **values)

    async def run(self, name: str, /, **values: Any) -> int:
        self._note(name, values)
        return await self._tx.run(name, **values)

    async def run_many(self, name: str, rows: Sequence[Row], /) -> int:
        for values in rows:
            self._note(name, values)
        return await self._tx.run_many(name, rows)

    async def put(self, name: str, /, **values: Any) -> None:
        self._note(name, values)
        await self._tx.put(name, **values)

    async def put_many(self, name: str, rows: Sequence[Row], /) -> None:
        for values in rows:
            self._note(name, values)
        await self._tx.put_many(name, rows)

    async def each(self, statements: Sequence[tuple[str, Row]], /) -> list[list[Row]]:
        for name, values in statements:
            self._note(name, values)
        return await self._tx.each(statements)

    async def run_each(self, changes: Sequence[Change], /) -> Counter[str]:
        for name, values in changes:
            self._note(name, values)
        return await self._tx.run_each(changes)


def watch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Check every transaction on Postgres from now on; violations are added to the list that is returned."""
    violations: list[str] = []
    unwatched_write = PostgresStore.write

    async def write(store: PostgresStore, work: Callable[[Transaction], Awaitable[T]], **options: Any) -> T:
        def statement(name: str) -> str:
            return store._queries[name].sql

        return await unwatched_write(store, lambda tx: work(Watched(tx, statement, violations)), **options)

    monkeypatch.setattr(PostgresStore, "write", write)
    return violations
