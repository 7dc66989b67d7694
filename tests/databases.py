"""Databases for tests, SQLite or Postgres, with the real schema and queries."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from penstock.store import postgres, queries, sqlite_session
from penstock.store.base import Dialect, Store
from penstock.store.migrate import migrate_sqlite, package_migrations
from penstock.store.postgres_session import PostgresConnection, Result, Statement
from penstock.store.sqlite import open_sqlite
from penstock.values import OrgId

BOTH: tuple[Dialect, ...] = ("sqlite", "postgres")
COMMIT_OF_A_GROUP = ("wait_later", "commit", "wait_for_disk")  # the last statements of a transaction that unlocks early
FOLDER = Path(queries.__file__).with_name("queries")

TEST_QUERIES = """
-- name: put_request
-- A request that other rows may refer to.
INSERT INTO requests (id, org_id, key_id, created_at_ms, endpoint, status)
VALUES (:id, :org_id, 'key_x', 0, '/compat/v1/videos', 'pending');

-- name: put_ended_request
-- A completed request of a key.
INSERT INTO requests (id, org_id, key_id, created_at_ms, endpoint, status)
VALUES (:id, :org_id, :key_id, :at_ms, '/compat/v1/videos', 'completed')
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A database on which a test may open several stores, each as one process would."""

    dialect: Dialect
    address: str
    open: Callable[[], AbstractAsyncContextManager[Store]]


def database_for(request: pytest.FixtureRequest, dialect: Dialect) -> Database:
    """An empty database for one test."""
    if dialect == "sqlite":
        without_waiting_for_the_disk(request.getfixturevalue("monkeypatch"))
        return sqlite_database(put_migrated_file(request.getfixturevalue("tmp_path") / "penstock.db"))
    # The server of the tests does not wait for the disk, to be faster. tests/unit/store uses one that does.
    request.getfixturevalue("monkeypatch").setattr(postgres, "DURABILITY", {})
    return postgres_database(request.getfixturevalue("migrated_database"))


def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commits to SQLite not wait for the disk, to be faster. tests/unit/store checks that a gateway's do."""
    monkeypatch.setitem(sqlite_session.SETTINGS, "synchronous", 0)


@cache
def _migrated_file() -> bytes:
    """An empty database with the real schema: applying all migrations takes 50 ms, and thousands of tests need it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "penstock.db"
        with closing(apsw.Connection(str(path))) as connection:
            connection.pragma("synchronous", "off")
            migrate_sqlite(connection, package_migrations())
        return path.read_bytes()


def put_migrated_file(path: Path) -> Path:
    """Put such a database where a gateway or a store will open it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(_migrated_file())
    return path


@cache
def all_queries() -> queries.QueryFile:
    texts = [path.read_text() for path in sorted(FOLDER.glob("*.sql"))]
    return queries.parse_queries("\n".join([*texts, TEST_QUERIES]))


def sqlite_database(path: Path) -> Database:
    @asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store = await open_sqlite(path, all_queries(), package_migrations())
        try:
            yield store
        finally:
            await store.close()

    return Database("sqlite", str(path), open_store)


def postgres_database(url: str) -> Database:
    @asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store = await postgres.open_postgres(url, all_queries(), package_migrations())
        try:
            yield store
        finally:
            await store.close()

    return Database("postgres", url, open_store)


def watch_round_trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the statements of each round trip to Postgres from now on."""
    found: list[list[str]] = []
    run_together = PostgresConnection.run_together

    async def observed(connection: PostgresConnection, statements: Iterable[Statement]) -> list[Result]:
        sent = list(statements)
        found.append([statement.query.name for statement in sent])
        return await run_together(connection, sent)

    monkeypatch.setattr(PostgresConnection, "run_together", observed)
    return found


async def nothing_waits(org_id: OrgId) -> None:
    """What readers of requests call first, where no ended chat call waits in memory to be written."""
