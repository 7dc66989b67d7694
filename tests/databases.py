"""The real schema and queries on a database of the test's own, SQLite or Postgres."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.store import postgres, queries
from penstock.store.base import Dialect, Store
from penstock.store.migrate import read_migrations
from penstock.store.sqlite import open_sqlite

BOTH: tuple[Dialect, ...] = ("sqlite", "postgres")
FOLDER = Path(queries.__file__).with_name("queries")

MORE = """
-- name: put_request
-- A request for others to refer to.
INSERT INTO requests (id, org_id, key_id, created_at_ms, endpoint, status)
VALUES (:id, :org_id, 'key_x', 0, '/compat/v1/videos', 'pending')
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A place to open stores on, as often as a test likes: each stands for one process."""

    dialect: Dialect
    address: str
    open: Callable[[], AbstractAsyncContextManager[Store]]


def database_for(request: pytest.FixtureRequest, dialect: Dialect) -> Database:
    if dialect == "sqlite":
        return sqlite_database(request.getfixturevalue("tmp_path") / "penstock.db")
    # The tests' server does not wait for the disk; that the store insists on it has tests of its own.
    request.getfixturevalue("monkeypatch").setattr(postgres, "DURABILITY", {})
    return postgres_database(request.getfixturevalue("fresh_database"))


def all_queries() -> queries.QueryFile:
    return queries.parse_queries("\n".join([*(path.read_text() for path in sorted(FOLDER.glob("*.sql"))), MORE]))


def sqlite_database(path: Path) -> Database:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        store = await open_sqlite(path, all_queries(), read_migrations())
        try:
            yield store
        finally:
            await store.close()

    return Database("sqlite", str(path), opened)


def postgres_database(url: str) -> Database:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        store = await postgres.open_postgres(url, all_queries(), read_migrations())
        try:
            yield store
        finally:
            await store.close()

    return Database("postgres", url, opened)
