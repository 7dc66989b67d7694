"""Group commit: when callers are woken, what is rolled back, and what happens when the disk fails or is busy."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.store import sqlite_writer
from penstock.store.base import QueryMisused, StorageUnavailable, Store, Transaction, WorkSuspended
from penstock.store.sqlite import SqliteStore
from tests.unit.store.small_schema import Database, Work, add_account, add_note


class WatchedSystem(apsw.VFS):
    """A file system whose waits for the disk are counted, and can be blocked and made to fail."""

    def __init__(self) -> None:
        self.waits = 0
        self.inside = False
        self.broken = False
        self.open = threading.Event()
        self.open.set()
        super().__init__("watched", "unix")

    def xOpen(self, name: Any, flags: Any) -> Any:  # noqa: N802
        return WatchedFile(self, name, flags)


class WatchedFile(apsw.VFSFile):
    def __init__(self, system: WatchedSystem, name: Any, flags: Any) -> None:
        self._system = system
        super().__init__("unix", name, flags)

    def xSync(self, flags: Any) -> None:  # noqa: N802
        self._system.inside = True
        assert self._system.open.wait(20)
        self._system.inside = False
        if self._system.broken:
            raise apsw.IOError("the disk failed")
        super().xSync(flags)
        self._system.waits += 1


@pytest.fixture(autouse=True)
def long_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what comes at the same time be one batch, also where this machine has other work."""
    monkeypatch.setattr(sqlite_writer, "BATCH_SECONDS", 60.0)


@pytest.fixture
def disk() -> Iterator[WatchedSystem]:
    system = WatchedSystem()
    apsw.set_default_vfs("watched")
    yield system
    apsw.set_default_vfs("unix")
    system.unregister()


@asynccontextmanager
async def open_store(database: Database) -> AsyncIterator[SqliteStore]:
    async with database.open() as store:
        assert isinstance(store, SqliteStore)
        await store.write(add_account("a", 1000))
        yield store


def connection_of(store: SqliteStore) -> apsw.Connection:
    return store._writer._session.connection


async def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


async def ids(store: Store) -> list[str]:
    return [row["id"] for row in await store.all("list_notes")]


# ----------------------------------------------------------------------------------------------------------- durability


async def test_no_caller_wakes_before_the_disk_has_written(disk: WatchedSystem, sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        disk.open.clear()
        first = [asyncio.create_task(store.write(add_note(f"n{number}"))) for number in range(5)]
        await eventually(lambda: disk.inside)
        # The disk is busy with the first five; the event loop is free, and further writes collect.
        second = [asyncio.create_task(store.write(add_note(f"o{number}"))) for number in range(5)]
        for _ in range(100):
            await asyncio.sleep(0)
        assert not any(task.done() for task in first + second)
        assert await ids(store) == []
        waits = disk.waits
        disk.open.set()
        await asyncio.gather(*first)
        assert disk.waits > waits
        await asyncio.gather(*second)
        assert disk.waits == waits + 2


async def test_a_thousand_writes_share_a_few_waits(disk: WatchedSystem, sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        waits = disk.waits
        await asyncio.gather(*(store.write(add_note(f"n{number:04}")) for number in range(1000)))
        assert disk.waits - waits < 100
        assert len(await ids(store)) == 1000


async def test_single_writes_wait_for_the_disk_each(disk: WatchedSystem, sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        for number in range(5):
            waits = disk.waits
            await store.write(add_note(f"n{number}"))
            assert disk.waits == waits + 1


async def test_a_transaction_without_changes_does_not_wait_for_the_disk(
    disk: WatchedSystem, sqlite_database: Database
) -> None:
    async with open_store(sqlite_database) as store:
        waits = disk.waits
        assert await store.write(lambda transaction: transaction.run("take_amount", id="a", amount=5000)) == 0
        assert disk.waits == waits
        assert not connection_of(store).in_transaction


# -------------------------------------------------------------------------------------------------------------- undoing


async def test_a_batch_runs_again_only_when_something_must_be_undone(sqlite_database: Database) -> None:
    runs: list[str] = []

    def counted(name: str, *, changes: bool = False, fails: bool = False) -> Work:
        async def work(transaction: Transaction) -> None:
            runs.append(name)
            if changes:
                await transaction.run("put_amount", id="a", amount=1)
            if fails:
                raise LookupError(name)

        return work

    async def run(*works: Work) -> str:
        runs.clear()
        await asyncio.gather(*map(store.write, works), return_exceptions=True)
        return " ".join(runs)

    fine = [counted(name, changes=True) for name in "xyz"]
    async with open_store(sqlite_database) as store:
        assert await run(*fine) == "x y z"
        # It fails before it has changed anything, so nothing needs to be undone.
        assert await run(fine[0], counted("-", fails=True), fine[1]) == "x - y"
        # It fails after a change: all run again in the same order, each with a savepoint.
        assert await run(fine[0], counted("!", changes=True, fails=True), fine[1]) == "x ! x ! y"
        assert await run(*fine) == "x y z"
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1000 + 3 + 2 + 2 + 3}


async def test_several_failures_in_one_batch(sqlite_database: Database) -> None:
    async def failing(transaction: Transaction) -> None:
        await transaction.run("put_amount", id="a", amount=1)
        raise LookupError

    async with open_store(sqlite_database) as store:
        works: list[Work] = [failing if number % 3 == 0 else add_note(f"n{number:02}") for number in range(30)]
        outcomes = await asyncio.gather(*map(store.write, works), return_exceptions=True)
        assert [isinstance(outcome, LookupError) for outcome in outcomes] == [number % 3 == 0 for number in range(30)]
        assert await ids(store) == [f"n{number:02}" for number in range(30) if number % 3]
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}


async def test_a_work_that_awaits_something_else_is_refused(sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:

        async def sleepy(transaction: Transaction) -> None:
            await transaction.run("put_amount", id="a", amount=1)
            await asyncio.sleep(0)

        async def nested(transaction: Transaction) -> None:
            await transaction.run("put_amount", id="a", amount=1)
            await store.write(add_note("nested"))

        async def outside(transaction: Transaction) -> None:
            await transaction.run("put_amount", id="a", amount=1)
            await store.one("get_account", id="a")

        outcomes = await asyncio.gather(
            *map(store.write, (sleepy, add_note("n"), nested, outside)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [WorkSuspended, int, QueryMisused, QueryMisused]
        assert await ids(store) == ["n"]
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}


async def test_a_caller_cancelled_early_runs_nothing(sqlite_database: Database) -> None:
    ran: list[str] = []

    async def work(transaction: Transaction) -> None:
        ran.append("work")

    async with open_store(sqlite_database) as store:
        task = asyncio.create_task(store.write(work))
        other = asyncio.create_task(store.write(add_note("n")))
        await asyncio.sleep(0)
        task.cancel()
        assert await other == 1
        assert task.cancelled()
        assert ran == []


async def test_a_caller_cancelled_during_commit_does_not_affect_others(
    disk: WatchedSystem, sqlite_database: Database
) -> None:
    async with open_store(sqlite_database) as store:
        disk.open.clear()
        tasks = [asyncio.create_task(store.write(add_note(f"n{number}"))) for number in range(3)]
        await eventually(lambda: disk.inside)
        tasks[1].cancel()
        await asyncio.sleep(0)
        disk.open.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [int, asyncio.CancelledError, int]
        assert await ids(store) == ["n0", "n1", "n2"]


async def test_works_do_not_inherit_the_context_of_a_caller(sqlite_database: Database) -> None:
    name = ContextVar("name", default="nobody")

    async def work(transaction: Transaction) -> str:
        return name.get()

    async with open_store(sqlite_database) as store:
        name.set("the first caller")
        assert await store.write(work) == "nobody"


# ------------------------------------------------------------------------------------------------------------ obstacles


async def test_a_full_disk_fails_only_the_batch(sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        connection = connection_of(store)
        connection.pragma("max_page_count", connection.pragma("page_count") + 20)
        works = [add_note("small"), add_note("large", body=bytes(500_000))]
        outcomes = await asyncio.gather(*map(store.write, works), return_exceptions=True)
        for outcome in outcomes:
            assert isinstance(outcome, StorageUnavailable)
            assert "no space left" in outcome.message
            assert outcome.should_retry is None
        assert outcomes[0] is not outcomes[1]
        assert await ids(store) == []
        assert await store.write(add_note("small")) == 1
        connection.pragma("max_page_count", 1_000_000)
        assert await store.write(works[1]) == 1
        assert await ids(store) == ["large", "small"]


async def test_after_a_full_disk_no_statement_of_the_work_runs(sqlite_database: Database) -> None:
    """SQLite has rolled back already, and a further statement would be committed alone."""

    async def stubborn(transaction: Transaction) -> None:
        await transaction.run("take_amount", id="a", amount=10)
        for size in (500_000, 1):
            try:
                await transaction.run("add_note", id="n", account="a", body=bytes(size), size=size)
            except StorageUnavailable:
                continue

    async with open_store(sqlite_database) as store:
        connection = connection_of(store)
        connection.pragma("max_page_count", connection.pragma("page_count") + 20)
        with pytest.raises(StorageUnavailable):
            await store.write(stubborn)
        assert await ids(store) == []
        assert await store.one("get_account", id="a") == {"id": "a", "available": 1000}


async def test_after_a_disk_failure_during_commit_the_outcome_is_unknown(
    disk: WatchedSystem, sqlite_database: Database
) -> None:
    async with open_store(sqlite_database) as store:
        disk.broken = True
        outcomes = await asyncio.gather(*(store.write(add_note(f"n{n}")) for n in range(3)), return_exceptions=True)
        for outcome in outcomes:
            assert isinstance(outcome, StorageUnavailable)
            assert outcome.should_retry is False
        disk.broken = False
        assert await store.write(add_note("later")) == 1
        assert await ids(store) == ["later"]


async def test_waiting_for_another_process_does_not_block_the_loop(sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        other = apsw.Connection(sqlite_database.address)
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(store.write(add_note("n")))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not task.done()
        assert connection_of(store).pragma("busy_timeout") == 0, "SQLite itself must not wait"
        other.execute("COMMIT")
        assert await task == 1
        other.close()


async def test_waiting_for_another_process_ends(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writer, "BUSY_SECONDS", 0.05)
    async with open_store(sqlite_database) as store:
        other = apsw.Connection(sqlite_database.address)
        other.execute("BEGIN IMMEDIATE")
        outcomes = await asyncio.gather(*(store.write(add_note(f"n{n}")) for n in range(3)), return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == [
            "Storage is unavailable: the database is in use by another process."
        ] * 3
        other.close()
        assert await store.write(add_note("n")) == 1


async def test_after_a_cancelled_pump_no_caller_waits_for_ever(disk: WatchedSystem, sqlite_database: Database) -> None:
    """When the loop is closed, every caller gets an error, and the connection stays usable."""
    async with open_store(sqlite_database) as store:
        disk.open.clear()
        tasks = [asyncio.create_task(store.write(add_note("n")))]
        await eventually(lambda: disk.inside)
        tasks.append(asyncio.create_task(store.write(add_note("o"))))
        await asyncio.sleep(0)
        assert store._writer._pump is not None
        store._writer._pump.cancel()
        await asyncio.sleep(0)
        disk.open.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StorageUnavailable] * 2
        assert await store.write(add_note("p")) == 1
        assert await ids(store) == ["n", "p"]  # the first was being committed, so its outcome was unknown
        disk.open.clear()
        purging = asyncio.create_task(store.purge_traces())
        await eventually(lambda: disk.inside)
        store._writer._pump.cancel()
        await asyncio.sleep(0)
        disk.open.set()
        with pytest.raises(StorageUnavailable):
            await purging


async def test_works_that_exceed_the_time_of_a_batch_go_into_the_next_commit(
    disk: WatchedSystem, sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(sqlite_database) as store:
        for budget, commits in ((10.0, 1), (0.0, 10)):
            monkeypatch.setattr(sqlite_writer, "BATCH_SECONDS", budget)
            waits = disk.waits
            await asyncio.gather(*(store.write(add_note(f"n{budget}{number}")) for number in range(10)))
            assert disk.waits - waits == commits


# -------------------------------------------------------------------------------------------------------------- its log


def log_bytes(database: Database) -> int:
    return Path(f"{database.address}-wal").stat().st_size


async def test_the_log_starts_over_during_writes(sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        for number in range(60):
            await store.write(add_note(f"n{number:02}", body=bytes(1024**2)))
            assert log_bytes(sqlite_database) < 16 * 1024**2


async def test_a_long_read_cannot_make_the_log_grow_for_ever(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "CROWDED_PAGES", 2_000)
    async with open_store(sqlite_database) as store:
        await asyncio.gather(*(store.write(add_account(f"b{number:03}")) for number in range(300)))
        slow = asyncio.create_task(store.slow("count_pairs"))  # it would take minutes
        await eventually(lambda: store._slow_sessions)
        for number in range(60):
            await store.write(add_note(f"n{number:02}", body=bytes(1024**2)))
            assert log_bytes(sqlite_database) < 24 * 1024**2
        # It is interrupted, repeated, and interrupted again.
        with pytest.raises(StorageUnavailable):
            await slow
