"""A transaction on Postgres: which statements are sent together, and how its errors end it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from penstock.store import postgres_transaction
from penstock.store.base import ConstraintViolated, StorageUnavailable, Transaction
from penstock.store.postgres_session import Statement
from penstock.store.queries import Query
from tests.api.raw_http import until
from tests.databases import COMMIT_OF_A_GROUP, watch_round_trips
from tests.unit.store.small_schema import Database, add_account, add_note, note


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return watch_round_trips(monkeypatch)


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
            ["begin", "add_note", "add_note", "take_amount"],  # one statement for the two rows
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


# ------------------------------------------------------------------------------------------------------ unlocking early


@contextmanager
def commits_that_wait(url: str) -> Iterator[None]:
    """Let commits that wait for durability wait until the end of the block: for a standby server that is not there."""

    def change(statement: bytes) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute(statement)
            connection.execute("SELECT pg_reload_conf()")
            while True:
                with psycopg.connect(url, autocommit=True) as other:
                    (names,) = other.execute("SHOW synchronous_standby_names").fetchone() or ("",)
                if (names == "nobody") == (b"nobody" in statement):
                    return

    change(b"ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try:
        yield
    finally:
        change(b"ALTER SYSTEM RESET synchronous_standby_names")


WAITS_FOR_DURABILITY = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.mark.parametrize("unlocks_early", [True, False])
async def test_rows_are_unlocked_before_they_are_durable_but_nobody_is_told_before(
    postgres_database: Database, unlocks_early: bool
) -> None:
    url = postgres_database.address
    async with postgres_database.open() as store:
        await store.write(add_account("a", 1000))
        with commits_that_wait(url), psycopg.connect(url, autocommit=True) as other:
            other.execute("SET synchronous_commit = off")
            work = store.write(lambda tx: tx.run("put_amount", id="a", amount=1), unlocks_early=unlocks_early)
            writing = asyncio.create_task(work)
            await until(lambda: other.execute(WAITS_FOR_DURABILITY).fetchone() == (1,))
            other.execute("SET lock_timeout = '50ms'")
            if unlocks_early:
                other.execute("UPDATE accounts SET available = available * 2")
            else:
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    other.execute("UPDATE accounts SET available = available * 2")
            assert not writing.done()
        assert await writing == 1
        found = await store.one("get_account", id="a")
        assert found == {"id": "a", "available": 2002 if unlocks_early else 1001}


async def test_the_wait_for_the_disk_is_in_the_round_trip_of_the_commit(
    postgres_database: Database, round_trips: list[list[str]]
) -> None:
    async with postgres_database.open() as store:
        await store.write(add_account("a", 1000))
        round_trips.clear()
        await store.write(lambda tx: tx.run("put_amount", id="a", amount=1), unlocks_early=True)
        assert round_trips == [["begin", "put_amount"], [*COMMIT_OF_A_GROUP]]
        with pytest.raises(ConstraintViolated):
            await store.write(lambda tx: tx.put("take_blindly", id="a", amount=5000), unlocks_early=True)
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1001}


async def test_if_the_wait_for_the_disk_fails_the_outcome_is_unknown(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction is committed, so it must not be run again."""
    failing = Statement(Query("wait_for_disk", "Fail.", "SELECT 1 / 0", (), writes=True))
    end = (*postgres_transaction._COMMIT_EARLY[:-1], failing)
    async with postgres_database.open() as store:
        await store.write(add_account("a", 1000))
        monkeypatch.setattr(postgres_transaction, "_COMMIT_EARLY", end)
        with pytest.raises(StorageUnavailable) as caught:
            await store.write(lambda tx: tx.put("put_amount", id="a", amount=1), unlocks_early=True)
        assert caught.value.should_retry is False
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1001}
