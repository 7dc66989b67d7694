"""The store on Postgres: required settings, retries, lost connections and restarts of the server."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.store import postgres
from penstock.store.base import BackupRefused, StorageMisconfigured, StorageUnavailable, Store, Transaction
from penstock.store.postgres_session import PostgresConnection
from tests.unit.store import small_schema
from tests.unit.store.small_schema import Cluster, Database, Work, add_account, add_note


@asynccontextmanager
async def open_store(database: Database) -> AsyncIterator[Store]:
    async with database.open() as store:
        await store.write(add_account("a", 1000))
        yield store


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


async def end_backend(url: str, transaction: Transaction) -> None:
    """Close the connection of a transaction on the server, and wait until it is closed."""
    row = await transaction.one("get_backend")
    assert row is not None
    run(url, f"SELECT pg_terminate_backend({row['pid']}, 5000)")


async def eventually_writes(store: Store, work: Work, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            await store.write(work)
        except StorageUnavailable:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        else:
            return


# -------------------------------------------------------------------------------------------------------------- opening


async def test_a_server_that_may_lose_commits_is_refused(postgres_database: Database, fresh_database: str) -> None:
    name = fresh_database.rpartition("/")[2]
    run(fresh_database, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(StorageMisconfigured, match="Postgres setting synchronous_commit is 'off'"):
        async with postgres_database.open():
            pass
    # Each of these waits for the local disk.
    for word in ("local", "remote_write", "remote_apply", "on"):
        run(fresh_database, f"ALTER DATABASE {name} SET synchronous_commit = {word}")
        async with postgres_database.open():
            pass


async def test_a_server_on_which_commits_cannot_be_waited_for_is_refused(
    postgres_database: Database, fresh_database: str, migrations: Path
) -> None:
    """Whoever is not a superuser needs the function, which Postgres lets everybody call by default."""
    function = "FUNCTION pg_logical_emit_message(boolean, text, text, boolean)"
    run(fresh_database, f"REVOKE EXECUTE ON {function} FROM PUBLIC; CREATE ROLE plain LOGIN")
    try:
        address = fresh_database.replace("postgres@", "plain@")
        with pytest.raises(StorageMisconfigured, match="must let Penstock call pg_logical_emit_message"):
            async with small_schema.database("postgres", address, migrations).open():
                pass
    finally:
        run(fresh_database, f"GRANT EXECUTE ON {function} TO PUBLIC; DROP ROLE plain")
    async with postgres_database.open():
        pass


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
async def test_each_missing_setting_is_named(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The test server has these settings on, so the test requires them to be off."""
    monkeypatch.setattr(postgres, "DURABILITY", {**postgres.DURABILITY, name: ("off",)})
    with pytest.raises(StorageMisconfigured, match=f"Postgres setting {name} is 'on'"):
        async with postgres_database.open():
            pass


async def test_an_unreachable_server_is_unavailable(free_port: int, migrations: Path) -> None:
    with pytest.raises(StorageUnavailable, match="Cannot reach Postgres"):
        async with small_schema.database(
            "postgres", f"postgresql://postgres@127.0.0.1:{free_port}/x", migrations
        ).open():
            pass


async def test_a_server_that_is_starting_is_waited_for(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = PostgresConnection.connect
    answers = ["FATAL:  the database system is starting up", "FATAL:  the database system is in recovery mode"]

    async def connect_or_fail(*arguments: Any, **options: Any) -> Any:
        if answers:
            raise psycopg.OperationalError(answers.pop())
        return await connect(*arguments, **options)

    monkeypatch.setattr(postgres, "START_PAUSE_SECONDS", 0)
    monkeypatch.setattr(PostgresConnection, "connect", connect_or_fail)
    async with postgres_database.open() as store:
        assert await store.all("list_accounts") == []
    assert not answers


async def test_a_malformed_url_is_refused(migrations: Path) -> None:
    with pytest.raises(StorageMisconfigured, match="URL of the database is malformed"):
        async with small_schema.database("postgres", "postgresql://x?nonsense", migrations).open():
            pass


async def test_connections_have_the_name_of_the_application(postgres_database: Database) -> None:
    async with open_store(postgres_database):
        with psycopg.connect(postgres_database.address) as connection:
            names = connection.execute("SELECT DISTINCT application_name FROM pg_stat_activity").fetchall()
        assert ("penstock",) in names


async def test_backup_is_refused(postgres_database: Database, tmp_path: Path) -> None:
    async with open_store(postgres_database) as store:
        with pytest.raises(BackupRefused, match="pg_dump"):
            await store.backup(tmp_path / "x")
        await store.purge_traces()


# --------------------------------------------------------------------------------------------------------- trying again


async def test_a_deadlock_is_retried(postgres_database: Database) -> None:
    async with open_store(postgres_database) as store:
        await store.write(add_account("b", 1000))
        met = asyncio.Barrier(2)
        runs = 0

        async def move(transaction: Transaction, source: str, target: str) -> None:
            nonlocal runs
            runs += 1
            await transaction.run("take_amount", id=source, amount=10)
            if runs <= 2:
                await met.wait()  # now each holds the row that the other one needs
            await transaction.run("put_amount", id=target, amount=10)

        await asyncio.gather(
            store.write(lambda transaction: move(transaction, "a", "b")),
            store.write(lambda transaction: move(transaction, "b", "a")),
        )
        assert runs > 2, "one of them was run again; on a busy machine Postgres may stop both, and several times"
        assert [row["available"] for row in await store.all("list_accounts")] == [1000, 1000]


async def test_a_serialization_failure_is_retried_a_few_times(postgres_database: Database) -> None:
    async with open_store(postgres_database) as store:
        runs = 0

        async def fail(transaction: Transaction) -> int:
            nonlocal runs
            runs += 1
            await transaction.run("put_amount", id="a", amount=1)
            if runs < 3:
                raise psycopg.errors.SerializationFailure
            return runs

        async def fail_always(transaction: Transaction) -> None:
            nonlocal runs
            runs += 1
            raise psycopg.errors.SerializationFailure

        assert await store.write(fail) == 3
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1001}
        runs = 0
        with pytest.raises(StorageUnavailable, match="too many writes to the same rows"):
            await store.write(fail_always)
        assert runs == postgres.ATTEMPTS


async def test_a_connection_lost_before_commit_is_retried_once(postgres_database: Database) -> None:
    async with open_store(postgres_database) as store:
        runs = 0

        async def work(transaction: Transaction) -> None:
            nonlocal runs
            runs += 1
            await transaction.run("put_amount", id="a", amount=1)
            if runs == 1:
                await end_backend(postgres_database.address, transaction)
            await transaction.run("add_note", id="n", account="a", body=None, size=None)

        await store.write(work)
        assert runs == 2
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1001}
        assert await store.all("list_notes") == [{"id": "n"}]


async def test_a_connection_lost_twice_is_an_error(postgres_database: Database) -> None:
    async with open_store(postgres_database) as store:
        runs = 0

        async def work(transaction: Transaction) -> None:
            nonlocal runs
            runs += 1
            await end_backend(postgres_database.address, transaction)
            await transaction.run("put_amount", id="a", amount=1)

        with pytest.raises(StorageUnavailable) as caught:
            await store.write(work)
        assert runs == 2
        assert caught.value.should_retry is None
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}


async def test_a_connection_lost_during_commit_is_not_retried(postgres_database: Database) -> None:
    async with open_store(postgres_database) as store:
        runs = 0

        async def work(transaction: Transaction) -> None:
            nonlocal runs
            runs += 1
            await transaction.run("put_amount", id="a", amount=1)
            await end_backend(postgres_database.address, transaction)

        with pytest.raises(StorageUnavailable, match="broke while committing") as caught:
            await store.write(work)
        assert runs == 1
        assert caught.value.should_retry is False
        assert await store.write(add_account("b")) == 1


async def test_waiting_for_a_locked_row_ends(postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_SESSION", "SET lock_timeout = '100ms'")
    async with open_store(postgres_database) as store:
        with psycopg.connect(postgres_database.address) as other:
            other.execute("SELECT 1 FROM accounts FOR UPDATE")
            with pytest.raises(StorageUnavailable, match="holds a lock"):
                await store.write(lambda transaction: transaction.run("put_amount", id="a", amount=1))
        assert await store.write(lambda transaction: transaction.run("put_amount", id="a", amount=1)) == 1


async def test_an_idle_transaction_is_ended_by_the_server(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_SESSION", "SET idle_in_transaction_session_timeout = '100ms'")
    async with open_store(postgres_database) as store:
        runs = 0

        async def work(transaction: Transaction) -> int:
            nonlocal runs
            runs += 1
            await transaction.run("put_amount", id="a", amount=1)
            if runs == 1:
                with psycopg.connect(postgres_database.address) as other:  # waits for the server
                    other.execute("SELECT available FROM accounts FOR UPDATE")
            return await transaction.run("put_amount", id="a", amount=1)

        assert await store.write(work) == 1
        assert runs == 2
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1002}


async def test_a_read_only_server_is_unavailable_until_it_accepts_writes(
    postgres_database: Database, cluster: Cluster
) -> None:
    """After a failover, connections may still lead to the former primary server."""
    name = postgres_database.address.rpartition("/")[2]
    async with open_store(postgres_database) as store:
        runs = 0

        async def work(transaction: Transaction) -> int:
            nonlocal runs
            runs += 1
            if runs == 1:
                await end_backend(postgres_database.address, transaction)
            return await transaction.run("put_amount", id="a", amount=1)

        run(f"{cluster.address}/postgres", f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        with pytest.raises(StorageUnavailable, match="read-only"):
            await store.write(work)
        run(f"{cluster.address}/postgres", f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await eventually_writes(store, work)
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1001}


@pytest.mark.parametrize("step", ["putconn", "check"])
async def test_a_cancelled_caller_leaves_every_connection_to_the_others(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The pool may have to wait for its lock while it takes a connection back, or while it checks all of them."""
    async with open_store(postgres_database) as store:
        assert isinstance(store, postgres.PostgresStore)
        begun = asyncio.Event()
        may_go_on = asyncio.Event()
        ended = asyncio.Event()
        original = getattr(store._pool, step)

        async def wait_and_run(*arguments: object) -> None:
            begun.set()
            await may_go_on.wait()
            await original(*arguments)
            ended.set()

        monkeypatch.setattr(store._pool, step, wait_and_run)

        async def lose_connection(transaction: Transaction) -> int:
            await end_backend(postgres_database.address, transaction)
            return int(await add_note("lost")(transaction))

        writing = asyncio.create_task(store.write(lose_connection if step == "check" else add_note("stored")))
        await begun.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        may_go_on.set()
        await ended.wait()
        monkeypatch.undo()
        assert await store.write(add_note("next")) == 1


async def test_cancelled_callers_return_their_connections(postgres_database: Database) -> None:
    async with open_store(postgres_database) as store:
        for turn in range(20):
            tasks = [asyncio.create_task(store.write(add_note(f"n{turn}-{number}"))) for number in range(30)]
            for _ in range(3 * turn):  # so each time the writes have come a little further
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # All connections of the pool that writes may use, at once: a quarter is for reads.
        writing = set[int]()
        all_write = asyncio.Event()

        async def meet(number: int, transaction: Transaction) -> int:
            added: int = await add_note(f"last-{number}")(transaction)
            # Not a barrier: a write whose connection breaks is done again, perhaps after all others have ended.
            writing.add(number)
            if len(writing) == 12:
                all_write.set()
            await all_write.wait()
            return added

        async def write_when_connected(number: int) -> int:
            while True:  # broken connections are replaced, which takes long on a busy machine
                with suppress(StorageUnavailable):
                    return await store.write(partial(meet, number))
                await asyncio.sleep(0)

        assert await asyncio.gather(*map(write_when_connected, range(12))) == [1] * 12


# ------------------------------------------------------------------------------------------------------------- restarts


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_between_calls_causes_no_error(
    postgres_database: Database, cluster: Cluster, how: signal.Signals
) -> None:
    async with open_store(postgres_database) as store:
        # As many connections as the pool may have; the restart closes all of them.
        await asyncio.gather(*(store.write(add_note(f"n{number:02}")) for number in range(50)))
        await asyncio.to_thread(cluster.stop, how)
        await asyncio.to_thread(cluster.start)
        # One call must not try one closed connection after another.
        assert await store.write(add_note("alone")) == 1
        outcomes = await asyncio.gather(
            *(store.write(add_note(f"o{number:02}")) for number in range(50)),
            *(store.one("get_account", id="a") for _ in range(50)),
            return_exceptions=True,
        )
        assert outcomes == [1] * 50 + [{"id": "a", "available": 1000}] * 50
        assert len(await store.slow("list_notes")) == 101


async def test_calls_fail_while_the_server_is_stopped_and_succeed_afterwards(
    postgres_database: Database, cluster: Cluster
) -> None:
    async with open_store(postgres_database) as store:
        assert isinstance(store, postgres.PostgresStore)
        await asyncio.gather(*(store.write(add_note(f"n{number:02}")) for number in range(50)))
        await asyncio.to_thread(cluster.stop)
        store._pool.timeout = 0.3
        async with asyncio.timeout(60):
            outcomes = await asyncio.gather(
                *(store.write(add_note(f"o{number:02}")) for number in range(20)),
                *(store.one("get_account", id="a") for _ in range(20)),
                store.slow("list_notes"),
                return_exceptions=True,
            )
        assert {type(outcome) for outcome in outcomes} == {StorageUnavailable}
        await asyncio.to_thread(cluster.start)
        await eventually_writes(store, add_note("later"))
        await asyncio.gather(*(eventually_writes(store, add_note(f"p{number:02}")) for number in range(50)))
        # What was refused is not there, whatever was is.
        assert [row["id"][0] for row in await store.all("list_notes")] == ["l"] + ["n"] * 50 + ["p"] * 50


@pytest.mark.slow
async def test_restarts_under_load_lose_nothing_that_was_acknowledged(
    postgres_database: Database, cluster: Cluster
) -> None:
    async with open_store(postgres_database) as store:
        acknowledged: list[str] = []
        restarted = asyncio.Event()

        async def writer(name: str) -> None:
            number = 0
            while not restarted.is_set():
                number += 1
                try:
                    await store.write(add_note(f"{name}-{number:05}"))
                except StorageUnavailable:
                    await asyncio.sleep(0.01)
                else:
                    acknowledged.append(f"{name}-{number:05}")

        async def wait_for_writes(count: int) -> None:
            enough = len(acknowledged) + count
            while True:
                if len(acknowledged) >= enough:
                    return
                await asyncio.sleep(0.01)

        async def restart() -> None:
            try:
                for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGINT):
                    await wait_for_writes(100)
                    await asyncio.to_thread(cluster.stop, how)
                    await asyncio.to_thread(cluster.start)
                await wait_for_writes(100)
            finally:
                restarted.set()

        await asyncio.gather(restart(), *(writer(f"w{number:02}") for number in range(20)))
        await eventually_writes(store, add_note("last"))
        kept = {row["id"] for row in await store.slow("list_notes")}
        assert kept >= set(acknowledged)
