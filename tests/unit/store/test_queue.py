"""The tables of the queue are installed once, migrated step by step, and refused if another program made them."""

import asyncio

import psycopg
import pytest
from psycopg.rows import dict_row

from penstock.store import queue
from penstock.store.base import StorageMisconfigured
from penstock.store.postgres_session import PostgresConnection

# Functions and columns as the catalogue of Postgres lists them.
FUNCTIONS = "SELECT proname AS name, prosrc AS text FROM pg_proc WHERE proname LIKE 'procrastinate%'"
COLUMNS = (
    "SELECT table_name || '.' || column_name AS name FROM information_schema.columns WHERE table_name LIKE 'procr%'"
)


async def connect(address: str) -> PostgresConnection:
    return await PostgresConnection.connect(address, autocommit=True, row_factory=dict_row)


async def rows(connection: PostgresConnection, sql: str) -> list[dict[str, object]]:
    return await (await connection.execute(sql.encode())).fetchall()


async def version(connection: PostgresConnection) -> list[object]:
    return [row["migration"] for row in await rows(connection, "SELECT migration FROM queue_version ORDER BY 1")]


async def names(connection: PostgresConnection) -> set[object]:
    return {row["name"] for sql in (FUNCTIONS, COLUMNS) for row in await rows(connection, sql)}


async def test_the_queue_is_installed_once(fresh_database: str) -> None:
    async with await connect(fresh_database) as connection:
        await queue.install_queue(connection)
        assert await version(connection) == [max(queue.migrations())]
        await connection.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
        await queue.install_queue(connection)
        assert len(await rows(connection, "SELECT id FROM procrastinate_workers")) == 1
        assert await version(connection) == [max(queue.migrations())]


async def test_several_processes_install_at_once(fresh_database: str) -> None:
    async def install() -> None:
        async with await connect(fresh_database) as connection:
            await queue.install_queue(connection)

    await asyncio.gather(*(install() for _ in range(5)))


async def test_an_old_queue_is_migrated(fresh_database: str) -> None:
    """Migrations from an old release lead to the same tables as a new installation."""
    known = queue.migrations()
    old = sorted(name for name in known if name < "03.02.00_50")
    async with await connect(fresh_database) as connection:
        for name in old:
            await connection.execute(known[name].encode())
        await connection.execute(
            "CREATE TABLE queue_version (migration TEXT PRIMARY KEY, applied_at_ms BIGINT NOT NULL)"
        )
        await connection.execute("INSERT INTO queue_version VALUES (%s, 0)", (old[-1],))
        await queue.install_queue(connection)
        assert await version(connection) == sorted(name for name in known if name >= old[-1])
        stepwise = await names(connection)
        await connection.execute("DROP SCHEMA public CASCADE")
        await connection.execute("CREATE SCHEMA public")
        await queue.install_queue(connection)
        assert stepwise == await names(connection)


async def test_a_failed_migration_changes_nothing(fresh_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {**queue.migrations(), "99.00.00_01_broken.sql": "CREATE TABLE half (id INT); SELECT 1 / 0"}
    async with await connect(fresh_database) as connection:
        await queue.install_queue(connection)
        monkeypatch.setattr(queue, "migrations", lambda: broken)
        with pytest.raises(psycopg.errors.DivisionByZero):
            await queue.install_queue(connection)
        assert await rows(connection, "SELECT to_regclass('half') AS half") == [{"half": None}]
        assert len(await version(connection)) == 1


async def test_a_newer_queue_is_refused(fresh_database: str) -> None:
    async with await connect(fresh_database) as connection:
        await queue.install_queue(connection)
        await connection.execute("INSERT INTO queue_version VALUES ('99.00.00_01_later.sql', 0)")
        with pytest.raises(StorageMisconfigured, match="newer release"):
            await queue.install_queue(connection)


async def test_the_queue_of_another_program_is_refused(fresh_database: str) -> None:
    async with await connect(fresh_database) as connection:
        await connection.execute("CREATE TABLE procrastinate_jobs (id INT)")
        with pytest.raises(StorageMisconfigured, match="use another database"):
            await queue.install_queue(connection)
        assert await rows(connection, "SELECT to_regclass('queue_version') AS ours") == [{"ours": None}]
