"""Statements that are sent to Postgres together: their order, their errors, cancelled callers and lost connections."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from penstock.event_loop import cancel_and_wait
from penstock.store.base import ConstraintViolated, StorageUnavailable, Store, Transaction
from tests.unit.store.small_schema import Database, add_account, add_note, database, note
from tests.webhook_receivers import until


async def test_a_parameter_may_be_null_or_not_in_any_order(postgres_database: Database) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a"))
        sizes = {"n1": None, "n2": 2**40, "n3": None, "n4": 4}
        rows = [note(name, size=size) for name, size in sizes.items()]
        await store.write(lambda tx: tx.put_many("add_note", rows[:1]))
        assert await store.write(lambda tx: tx.run_many("add_note", rows[1:])) == 3
        bodies = {"n5": b"\x00\xff", "n6": b"", "n7": None}
        with_body = [{**note(name), "body": body} for name, body in bodies.items()]
        assert await store.write(lambda tx: tx.run_many("add_note", with_body)) == 3
        assert {name: (await store.one("get_note", id=name) or {})["size"] for name in sizes} == sizes
        assert {name: (await store.one("get_note", id=name) or {})["body"] for name in bodies} == bodies


async def test_a_statement_that_failed_to_be_prepared_can_be_used_later(postgres_database: Database) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a"))

        async def fail_before(tx: Transaction) -> None:
            await tx.put("take_blindly", id="a", amount=5000)
            await tx.put("add_note", **note("n"))  # is not prepared, because the statement before it fails

        with pytest.raises(ConstraintViolated):
            await store.write(fail_before)
        assert await store.write(add_note("n")) == 1


# ------------------------------------------------------------------------------------------- interrupted while waiting


@contextmanager
def locked_accounts(database: Database) -> Iterator[Callable[[], list[int]]]:
    """Lock all accounts; yield a function that lists the backends which wait for them."""
    with psycopg.connect(database.address) as locker, psycopg.connect(database.address, autocommit=True) as reader:
        locker.execute("SELECT 1 FROM accounts FOR NO KEY UPDATE")  # notes can still refer to them

        def waiting() -> list[int]:
            rows = reader.execute(
                "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            return [row[0] for row in rows]

        yield waiting


async def blocked_write(store: Store, waiting: Callable[[], list[int]]) -> tuple["asyncio.Task[None]", int]:
    """A write whose waiting statements wait for a lock, and the process id of its backend."""

    async def work(tx: Transaction) -> None:
        await tx.run("add_note", **note("n"))
        await tx.put("put_amount", id="a", amount=1)
        await tx.put("add_note", **note("m"))

    task = asyncio.create_task(store.write(work))
    while not (found := waiting()):
        await asyncio.sleep(0.01)
        assert not task.done()
    return task, found[0]


async def test_a_caller_cancelled_in_a_round_trip_returns_its_connection(postgres_database: Database) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a", 1000))
        for _ in range(20):  # more often than there are connections
            with locked_accounts(postgres_database) as waiting:
                task, _ = await blocked_write(store, waiting)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        assert await store.all("list_notes") == []
        assert await store.write(add_note("n")) == 1


async def test_a_connection_lost_in_the_round_trip_of_the_commit_is_not_retried(postgres_database: Database) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a", 1000))
        with locked_accounts(postgres_database) as waiting:
            task, backend = await blocked_write(store, waiting)
            with psycopg.connect(postgres_database.address) as other:
                other.execute("SELECT pg_terminate_backend(%s)", (backend,))
            with pytest.raises(StorageUnavailable, match="broke while committing"):
                await task
        assert await store.all("list_notes") == []
        assert await store.write(add_note("n")) == 1


# -------------------------------------------------------------------------------------------------- a result too many

SYNC = b"S\x00\x00\x00\x04"  # the last message of each round trip
WAITS_FOR_CLIENT = "SELECT wait_event = 'ClientRead' AND state = 'active' FROM pg_stat_activity WHERE pid = %s"


class Proxy:
    """Passes bytes on between a client and Postgres; while `is_holding`, without the last message of a round trip."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self.is_holding = False
        self.address = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.get_running_loop().create_task(self._pass_on(reader, writer)))

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        self.address = self._server._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
        try:
            yield
        finally:
            listener.close()
            await cancel_and_wait(tasks)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        of_server, to_server = await asyncio.open_connection(self._server.hostname, self._server.port)

        async def answer() -> None:
            while data := await of_server.read(2**20):
                writer.write(data)
            writer.close()

        answering = asyncio.create_task(answer())
        try:
            while data := await reader.read(2**20):
                to_server.write(data.removesuffix(SYNC) if self.is_holding else data)
        finally:
            to_server.close()
            writer.close()
            await cancel_and_wait([answering])


@pytest.mark.parametrize("unlocks_early", [True, False])
async def test_a_server_that_ends_the_connection_after_the_last_result_has_not_said_that_it_is_durable(
    postgres_database: Database, migrations: Path, unlocks_early: bool
) -> None:
    """What waits for the disk commits only when the server has read the last message of the round trip."""
    proxy = Proxy(postgres_database.address)
    async with proxy.listening(), database("postgres", proxy.address, migrations).open() as store:
        await store.write(add_account("a", 1000))
        backend = 0

        async def work(tx: Transaction) -> None:
            nonlocal backend
            backend = (await tx.all("get_backend"))[0]["pid"]
            await tx.run("put_amount", id="a", amount=1)
            proxy.is_holding = True

        writing = asyncio.create_task(store.write(work, unlocks_early=unlocks_early))
        with psycopg.connect(postgres_database.address, autocommit=True) as other:
            await until(lambda: backend > 0 and other.execute(WAITS_FOR_CLIENT, (backend,)).fetchone() == (True,))
            proxy.is_holding = False
            other.execute("SELECT pg_terminate_backend(%s)", (backend,))
        with pytest.raises(StorageUnavailable, match="broke while committing") as caught:
            await writing
        assert caught.value.should_retry is False
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1001}
