"""What the tests of the store share: small schemas and queries of their own, on both databases."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from penstock.store.base import Dialect, Store
from penstock.store.migrate import read_migrations
from penstock.store.postgres import open_postgres
from penstock.store.queries import parse_queries
from penstock.store.sqlite import open_sqlite
from tests import postgres
from tests.ports import unused_port

SCHEMA = """
CREATE TABLE accounts (id TEXT PRIMARY KEY, available BIGINT NOT NULL CHECK (available >= 0));
CREATE TABLE notes (
    id      TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    body    {blob},
    size    BIGINT,
    UNIQUE (account, size)
);
"""

QUERIES = """
-- name: add_account
-- Give somebody an account.
INSERT INTO accounts (id, available) VALUES (:id, :available);

-- name: take_amount
-- Take an amount from an account that has it.
UPDATE accounts SET available = available - :amount WHERE id = :id AND available >= :amount

-- name: put_amount
-- Add to an account and say what is there now.
UPDATE accounts SET available = available + :amount WHERE id = :id RETURNING available

-- name: get_account
-- One account.
SELECT id, available FROM accounts WHERE id = :id

-- name: add_note
-- Keep a note.
INSERT INTO notes (id, account, body, size) VALUES (:id, :account, :body, :size)

-- name: drop_notes
-- Forget the notes of an account.
DELETE FROM notes WHERE account = :account

-- name: get_note
-- One note with its body.
SELECT id, account, body, size FROM notes WHERE id = :id

-- name: list_notes
-- The notes of an account in order.
SELECT id FROM notes WHERE account = :account ORDER BY id

-- name: sum_notes
-- How many notes there are, how large together and on average, and whether there is any.
SELECT COUNT(*) AS count, SUM(size) AS total, AVG(size) AS mean, COUNT(*) > 0 AS found FROM notes

-- name: echo_values
-- The values as the database understood them.
SELECT CAST(:text AS TEXT) AS text, CAST(:number AS BIGINT) AS number, 1 AS one

-- name: wait_long [sqlite]
-- Something that takes its time.
WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < :amount * 1000)
SELECT MAX(n) AS last FROM counted

-- name: wait_long [postgres]
-- Something that takes its time.
SELECT MAX(n) AS last FROM generate_series(1, :amount * 1000) AS counted (n)
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A place to open stores on, as often as a test likes."""

    dialect: Dialect
    address: str
    open: Callable[[], AbstractAsyncContextManager[Store]]


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    directory = tmp_path / "migrations"
    directory.mkdir()
    (directory / "0001_begin.sql").write_text(SCHEMA)
    return directory


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    return tmp_path / "penstock.db"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, migrations: Path) -> Database:
    if request.param == "sqlite":
        return sqlite_database(request.getfixturevalue("sqlite_path"), migrations)
    return postgres_database(request.getfixturevalue("fresh_database"), migrations)


def sqlite_database(path: Path, migrations: Path) -> Database:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        store = await open_sqlite(path, parse_queries(QUERIES), read_migrations(migrations))
        try:
            yield store
        finally:
            await store.close()

    return Database("sqlite", str(path), opened)


def postgres_database(url: str, migrations: Path) -> Database:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        store = await open_postgres(url, parse_queries(QUERIES), read_migrations(migrations))
        try:
            yield store
        finally:
            await store.close()

    return Database("postgres", url, opened)


class Cluster:
    """A Postgres server with the settings of a real one, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._binaries, self._user = postgres._prepare(folder)
        self._data = folder / "data"
        self._port = unused_port()
        self.address = f"postgresql://postgres@127.0.0.1:{self._port}"
        self._guard: subprocess.Popen[bytes] | None = None
        initdb = [f"{self._binaries}/initdb", "-D", f"{self._data}", *postgres.INITDB]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, user=self._user, cwd=folder)

    def start(self) -> None:
        where = ["-D", f"{self._data}", "-h", "127.0.0.1", "-p", f"{self._port}", "-k", f"{self._folder}"]
        with (self._folder / "log").open("ab") as log:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", postgres.GUARD, "guard", f"{self._binaries}/postgres", *where, "--jit=off"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self._folder,
            )
        postgres._wait(f"{self.address}/postgres", self._folder / "log")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: at once but in order (SIGINT), or as a crash does (SIGQUIT)."""
        assert self._guard is not None
        assert self._guard.stdin is not None
        postmaster = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, how)
        deadline = time.monotonic() + 20
        while Path(f"/proc/{postmaster}").exists() and time.monotonic() < deadline:
            try:
                psycopg.connect(f"{self.address}/postgres", connect_timeout=1).close()
            except psycopg.OperationalError:
                pass
            time.sleep(0.01)
        self._guard.stdin.close()
        self._guard.wait()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-cluster-"))
    try:
        cluster = Cluster(folder)
        cluster.start()
        yield cluster
        cluster.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url(cluster: Cluster) -> str:
    """Here the server keeps its promises, because the store refuses one that does not."""
    return cluster.address
