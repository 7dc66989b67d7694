"""Statements that are sent to Postgres together: their order, their errors, cancelled callers and lost connections."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from penstock.store.base import ConstraintViolated, StorageUnavailable, Store, Transaction
from penstock.store.postgres_session import Connection, Result, Statement
from tests.unit.store.small_schema import Database, add_account, add_note


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the statements of each round trip."""
    found: list[list[str]] = []
    run_together = Connection.run_together

    async def observed(connection: Connection, statements: Iterable[Statement]) -> list[Result]:
        sent = list(statements)
        found.append([statement.query.name for statement in sent])
        return await run_together(connection, sent)

    monkeypatch.setattr(Connection, "run_together", observed)
    return found


def note(name: str, account: str = "a", size: int | None = None) -> dict[str, object]:
    return {"id": name, "account": account, "body": None, "size": size}


async def test_statements_without_a_result_wait_for_the_next_or_the_commit(
    postgres_database: Database, round_trips: list[list[str]]
) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a", 1000))
        round_trips.clear()

        async def work(tx: Transaction) -> int:
            await tx.put("add_note", **note("n1"))
            await tx.put_many("add_note", [note("n2"), note("n3")])
            changed = await tx.run("take_amount", id="a", amount=1)
            await tx.put("put_amount", id="a", amount=1)
            return changed

        assert await store.write(work) == 1
        assert round_trips == [
            ["begin", "add_note", "add_note", "add_note", "take_amount"],
            ["put_amount", "commit"],
        ]
        round_trips.clear()
        await store.write(lambda tx: tx.put("add_note", **note("n4")))
        # BEGIN alone: it shows whether the connection is still open before anything could be committed.
        assert round_trips == [["begin"], ["add_note", "commit"]]
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}
        assert [row["id"] for row in await store.all("list_notes")] == ["n1", "n2", "n3", "n4"]


async def test_an_error_of_a_waiting_statement_undoes_the_transaction(database: Database) -> None:
    async with database.open() as store:
        await store.write(add_account("a", 1000))

        async def fail_at_commit(tx: Transaction) -> None:
            await tx.run("put_amount", id="a", amount=1)
            await tx.put("add_note", **note("n", account="missing"))
            await tx.put("put_amount", id="a", amount=1)

        async def fail_at_the_next(tx: Transaction) -> None:
            await tx.put("put_amount", id="a", amount=1)
            await tx.put("take_blindly", id="a", amount=5000)
            await tx.one("get_account", id="a")

        for work, kind in ((fail_at_commit, "foreign_key"), (fail_at_the_next, "check")):
            with pytest.raises(ConstraintViolated) as caught:
                await store.write(work)
            assert caught.value.kind == kind
            assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}
        assert await store.write(add_note("n")) == 1


async def test_a_parameter_may_be_null_or_not_in_any_order(postgres_database: Database) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a"))
        sizes = {"n1": None, "n2": 2**40, "n3": None, "n4": 4}
        rows = [note(name, size=size) for name, size in sizes.items()]
        await store.write(lambda tx: tx.put_many("add_note", rows[:1]))
        await store.write(lambda tx: tx.run_many("add_note", rows[1:]))
        assert {name: (await store.one("get_note", id=name) or {})["size"] for name in sizes} == sizes


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
