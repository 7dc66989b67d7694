"""A small schema, its queries, and databases that the tests of the store open, stop and start."""

import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import psycopg

from penstock.store.base import Dialect, Store, Transaction
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
    size    BIGINT
);
"""

QUERIES = """
-- name: add_account
-- Add an account.
INSERT INTO accounts (id, available) VALUES (:id, :available);

-- name: take_amount
-- Take an amount from an account that has it.
UPDATE accounts SET available = available - :amount WHERE id = :id AND available >= :amount;

-- name: take_blindly
-- Take an amount; the CHECK of the schema refuses an overdraft.
UPDATE accounts SET available = available - :amount WHERE id = :id;

-- name: put_amount
-- Add to an account and return its new balance.
UPDATE accounts SET available = available + :amount WHERE id = :id RETURNING id, available;

-- name: get_account
-- One account.
SELECT id, available FROM accounts WHERE id = :id;

-- name: list_accounts
-- All accounts.
SELECT id, available FROM accounts ORDER BY id;

-- name: add_note
-- Add a note.
INSERT INTO notes (id, account, body, size) VALUES (:id, :account, :body, :size);

-- name: drop_notes
-- Delete the notes of an account.
DELETE FROM notes WHERE account = :account;

-- name: get_note
-- One note with its body.
SELECT id, account, body, size FROM notes WHERE id = :id;

-- name: list_notes
-- The ids of all notes in order.
SELECT id FROM notes ORDER BY id;

-- name: sum_notes
-- Number of notes, their total and mean size, and whether there are any.
SELECT COUNT(*) AS count, SUM(size) AS total, AVG(size) AS mean, COUNT(*) > 0 AS found FROM notes;

-- name: echo_values
-- The values as the database received them.
SELECT CAST(:text AS TEXT) AS text, CAST(:number AS BIGINT) AS number, :number + :number AS twice, '100%' AS all;

-- name: count_pairs
-- A query that takes long.
SELECT COUNT(*) AS count FROM accounts a, accounts b, accounts c, accounts d WHERE a.id <= d.id;

-- name: get_backend [sqlite]
-- The server's process for this connection; there is none.
SELECT 0 AS pid;

-- name: get_backend [postgres]
-- The server's process for this connection.
SELECT pg_backend_pid() AS pid;

-- name: get_lock_limit [postgres only]
-- How long statements of this transaction wait for a lock.
SELECT current_setting('lock_timeout') AS value;
""".replace("AS all", 'AS "all"')


@dataclass(frozen=True, slots=True)
class Database:
    """A database on which a test may open several stores."""

    dialect: Dialect
    address: str
    open: Callable[[], AbstractAsyncContextManager[Store]]


def database(dialect: Dialect, address: str, migrations: Path) -> Database:
    @asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        queries = parse_queries(QUERIES)
        steps = read_migrations(migrations)
        store: Store
        if dialect == "sqlite":
            store = await open_sqlite(Path(address), queries, steps)
        else:
            store = await open_postgres(address, queries, steps)
        try:
            yield store
        finally:
            await store.close()

    return Database(dialect, address, open_store)


Work = Callable[[Transaction], Awaitable[Any]]


def add_account(account: str, available: int = 0) -> Work:
    """The work of a transaction that adds an account."""
    return lambda transaction: transaction.run("add_account", id=account, available=available)


def note(name: str, account: str = "a", size: int | None = None) -> dict[str, Any]:
    """The values of `add_note`."""
    return {"id": name, "account": account, "body": None, "size": size}


def add_note(note: str, account: str = "a", body: bytes = b"") -> Work:
    """The work of a transaction that adds a note."""
    return lambda transaction: transaction.run("add_note", id=note, account=account, body=body, size=len(body))


class Cluster:
    """A Postgres server that waits for the disk, and that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._binaries, self._user = postgres.prepare_binaries(folder)
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
        postgres.wait_until_ready(f"{self.address}/postgres", self._folder / "log")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: orderly (SIGINT), or as in a crash (SIGQUIT)."""
        assert self._guard is not None
        assert self._guard.stdin is not None
        pid_file = self._data / "postmaster.pid"
        os.kill(int(pid_file.read_text().split()[0]), how)
        deadline = time.monotonic() + 60
        while pid_file.exists():
            assert time.monotonic() < deadline, "Postgres does not stop"
            time.sleep(0.01)
        self._guard.stdin.close()
        self._guard.wait()


def query(database: Database, sql: str) -> list[tuple[object, ...]]:
    """Query the database directly, without a store."""
    if database.dialect == "postgres":
        with psycopg.connect(database.address) as session:
            return session.execute(sql.encode()).fetchall()
    connection = apsw.Connection(database.address)
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


def versions(database: Database) -> list[tuple[object, ...]]:
    return query(database, "SELECT version, name FROM schema_version ORDER BY version")
