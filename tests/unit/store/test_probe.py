"""Whether the database can be written."""

import asyncio
from contextlib import closing

import apsw
import psycopg
import pytest

from penstock.errors import StorageUnavailable
from penstock.store import sqlite_writer
from penstock.store.postgres_session import PostgresConnection
from penstock.store.probe import WriteProbe
from tests.gateway import OpenGateway, postgres_only, sqlite_only
from tests.loop_time import pass_time
from tests.manual_clock import ManualClock


async def test_a_result_is_used_for_two_seconds(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gateway(works=False) as running:
        clock = ManualClock()
        probe = WriteProbe(running.gateway.store, clock)
        assert all(await asyncio.gather(*(probe.succeeds() for _ in range(10))))
        count = running.gateway.store.timing.count

        async def refuse(*args: object, **options: object) -> None:
            raise StorageUnavailable("no")

        with monkeypatch.context() as patched:
            patched.setattr(type(running.gateway.store), "write", refuse)
            assert await probe.succeeds()
            clock.advance(2)
            assert not await probe.succeeds()
        assert running.gateway.store.timing.count == count
        clock.advance(2)
        assert await probe.succeeds()


@postgres_only
async def test_a_database_that_hangs_is_waited_for_only_once(open_gateway: OpenGateway) -> None:
    """Nobody waits for the end of the write that hangs, and nobody begins another one meanwhile."""
    async with open_gateway(works=False) as running:
        assert await running.gateway.ready()
        async with await psycopg.AsyncConnection.connect(running.gateway.settings.database) as other:
            await other.execute("SELECT FROM facts WHERE name = 'last_write' FOR UPDATE")
            running.clock.advance(2)
            asked = asyncio.create_task(running.gateway.ready())
            await wait_for_lock(other)
            pass_time(3)
            assert not await asked
            running.clock.advance(3)
            assert not await running.gateway.ready()
            running.clock.advance(60)
            assert not await running.gateway.ready()
            waiting = await other.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            assert await waiting.fetchone() == (1,)
        await running.gateway.store.write(lambda tx: tx.run("set_fact", name="last_write", value=""))
        running.clock.advance(2)
        assert await running.gateway.ready()


async def wait_for_lock(connection: psycopg.AsyncConnection) -> None:
    async with asyncio.timeout(60):
        while await (await connection.execute("SELECT FROM pg_locks WHERE NOT granted")).fetchone() is None:  # noqa: ASYNC110
            await asyncio.sleep(0)


@postgres_only
async def test_not_ready_for_a_while_after_a_write_failed_on_a_full_disk(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe may still find room on the pages of its own table."""

    async def fail(*args: object) -> None:
        raise psycopg.errors.DiskFull("could not extend file")

    async with open_gateway(works=False) as running:
        assert await running.gateway.ready()
        with monkeypatch.context() as patched:
            patched.setattr(PostgresConnection, "run_together", fail)
            with pytest.raises(StorageUnavailable, match="no space left"):
                await running.gateway.store.write(lambda tx: tx.run("set_fact", name="other", value=""))
        assert not await running.gateway.ready()
        running.clock.advance(9)
        assert not await running.gateway.ready()
        running.clock.advance(2)
        assert await running.gateway.ready()


async def test_the_probe_needs_a_page_of_new_data(open_gateway: OpenGateway) -> None:
    """A small change of one row fits into a page that the database has already, also on a full disk."""
    async with open_gateway(works=False) as running:
        assert await running.gateway.ready()
        row = await running.gateway.store.one("get_fact", name="last_write")
        assert row is not None
        assert len(row["value"]) >= 8192


@sqlite_only
async def test_not_ready_while_sqlite_cannot_be_written(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(works=False) as running:
        assert await running.gateway.ready()
        monkeypatch.setattr(sqlite_writer, "BUSY_SECONDS", 0.0)
        with closing(apsw.Connection(str(running.gateway.settings.data / "penstock.db"))) as other:
            other.execute("BEGIN IMMEDIATE")
            running.clock.advance(2)
            assert not await running.gateway.ready()
            with pytest.raises(StorageUnavailable) as caught:
                await running.video()
            assert caught.value.should_retry is True
        running.clock.advance(2)
        assert await running.gateway.ready()


@postgres_only
async def test_not_ready_while_postgres_is_read_only(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        assert await running.gateway.ready()
        await set_read_only(running.gateway.settings.database, "on")
        running.clock.advance(2)
        assert not await running.gateway.ready()
        with pytest.raises(StorageUnavailable) as caught:
            await running.video()
        assert caught.value.should_retry is True
        await set_read_only(running.gateway.settings.database, "off")
        running.clock.advance(2)
        assert await running.gateway.ready()


async def set_read_only(database: str, value: str) -> None:
    """Make a database read-only for all connections; those that exist are ended."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute("SET default_transaction_read_only = off")
        name = connection.info.dbname
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}".encode())
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
