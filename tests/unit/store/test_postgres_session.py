"""Statements that are sent to Postgres together: their order, their errors, cancelled callers and lost connections."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from penstock.store.base import ConstraintViolated, StorageUnavailable, Store, Transaction
from tests.unit.store.small_schema import Database, add_account, add_note, note


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
