"""The store in a SQLite file: purges, backups, slow reads and closing."""

import asyncio
import stat
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import psutil
import pytest

from penstock.store import sqlite
from penstock.store.base import BackupRefused, StorageUnavailable
from penstock.store.sqlite import SqliteStore
from penstock.store.sqlite_session import Session
from tests.unit.store import small_schema
from tests.unit.store.small_schema import Database, add_account, add_note

CANARY = b"canary-7f3a91"


@asynccontextmanager
async def open_store(database: Database) -> AsyncIterator[SqliteStore]:
    async with database.open() as store:
        assert isinstance(store, SqliteStore)
        await store.write(add_account("a"))
        yield store


def files_with_canary(folder: Path) -> list[str]:
    """Names of the files that contain the canary."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and CANARY in path.read_bytes())


async def wait_for_slow_read(store: SqliteStore) -> None:
    """Wait until a slow read is running: then its connection is in use."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        await asyncio.sleep(0.001)
        try:
            for session in store._slow_sessions:
                session.connection.changes()
        except apsw.ThreadingViolationError:
            return
    pytest.fail("no slow read has started")


@pytest.mark.parametrize("size", [1, 100, 50_000])
async def test_deleted_data_is_in_no_file_after_a_purge(sqlite_database: Database, tmp_path: Path, size: int) -> None:
    async with open_store(sqlite_database) as store:
        for number in range(20):
            await store.write(add_note(f"n{number}", body=CANARY * size))
        await store.purge_traces()
        assert files_with_canary(tmp_path) == ["penstock.db"]
        await store.write(add_note("one more", body=CANARY))
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        await store.purge_traces()
        assert files_with_canary(tmp_path) == []
        assert Path(f"{sqlite_database.address}-wal").stat().st_size == 0
        await store.write(add_note("later"))


async def test_purges_at_the_same_time_are_one(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = 0

    def count(session: Session) -> None:
        nonlocal emptied
        emptied += 1

    monkeypatch.setattr(sqlite, "_empty_log", count)
    monkeypatch.setattr(sqlite, "PURGE_PAUSE_SECONDS", 0.01)
    async with open_store(sqlite_database) as store:
        await asyncio.gather(*(store.purge_traces() for _ in range(50)))
        assert emptied == 1
        running = [asyncio.ensure_future(store.purge_traces()) for _ in range(5)]
        await asyncio.gather(store.purge_traces(), *running)
        assert emptied == 2


async def test_a_purge_waits_some_time_after_the_one_before(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller who purges again and again would keep the slow reads of all others waiting."""
    emptied = 0

    def count(session: Session) -> None:
        nonlocal emptied
        emptied += 1

    monkeypatch.setattr(sqlite, "_empty_log", count)
    async with open_store(sqlite_database) as store:
        await store.purge_traces()
        monkeypatch.setattr(sqlite, "PURGE_PAUSE_SECONDS", 3600.0)
        next_purge = asyncio.ensure_future(store.purge_traces())
        for _ in range(5):
            await asyncio.sleep(0)
        await store._writer.between(lambda _: None)  # behind a purge that did not wait
        assert emptied == 1
        next_purge.cancel()


async def test_a_purge_that_begins_later_is_not_the_one_that_runs(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have deleted something after the first one emptied the log."""
    monkeypatch.setattr(sqlite, "PURGE_PAUSE_SECONDS", 0.0)
    begun, go_on = threading.Event(), threading.Event()
    emptied = 0

    def count(session: Session) -> None:
        nonlocal emptied
        emptied += 1
        begun.set()
        go_on.wait(10)

    monkeypatch.setattr(sqlite, "_empty_log", count)
    async with open_store(sqlite_database) as store:
        first = asyncio.create_task(store.purge_traces())
        await asyncio.to_thread(begun.wait, 10)
        second = asyncio.create_task(store.purge_traces())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(first, second)
        assert emptied == 2


async def test_without_a_purge_deleted_data_is_in_the_log(sqlite_database: Database, tmp_path: Path) -> None:
    async with open_store(sqlite_database) as store:
        await store.write(add_note("n", body=CANARY))
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        assert files_with_canary(tmp_path) == ["penstock.db-wal"]


async def test_a_purge_waits_for_a_reader(sqlite_database: Database, tmp_path: Path) -> None:
    async with open_store(sqlite_database) as store:
        await store.write(add_note("n", body=CANARY))
        reader = apsw.Connection(sqlite_database.address)
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM notes").fetchall()
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        purging = asyncio.create_task(store.purge_traces())
        # Writes do not wait meanwhile.
        for number in range(5):
            await store.write(add_note(f"o{number}"))
        assert not purging.done()
        assert files_with_canary(tmp_path)
        reader.execute("COMMIT")
        await purging
        assert files_with_canary(tmp_path) == []
        reader.close()


async def test_a_purge_interrupts_slow_reads(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "READERS_SECONDS", 0.05)
    async with open_store(sqlite_database) as store:
        await asyncio.gather(*(store.write(add_account(f"b{number:03}")) for number in range(45)))
        await store.write(add_note("n", body=CANARY))
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        slow = [asyncio.create_task(store.slow("count_pairs")) for _ in range(6)]  # more than there are threads
        await wait_for_slow_read(store)
        await store.purge_traces()
        assert files_with_canary(tmp_path) == []
        # Interrupted reads were repeated, and the others ran afterwards.
        assert [rows[0]["count"] for rows in await asyncio.gather(*slow)] == [46**2 * 46 * 47 // 2] * 6


async def test_a_purge_that_is_prevented_fails(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "PURGE_SECONDS", 0.05)
    async with open_store(sqlite_database) as store:
        reader = apsw.Connection(sqlite_database.address)
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM notes").fetchall()
        await store.write(add_note("n"))
        with pytest.raises(StorageUnavailable, match="still being read"):
            await store.purge_traces()
        reader.close()
        await store.purge_traces()


async def test_a_backup_is_consistent_during_writes(
    sqlite_database: Database, tmp_path: Path, migrations: Path
) -> None:
    copy = tmp_path / "copy" / "backup.db"
    copy.parent.mkdir()
    async with open_store(sqlite_database) as store:
        for number in range(30):
            await store.write(add_note(f"n{number:03}", body=bytes(200_000)))
        backup = asyncio.create_task(store.backup(copy))
        written = 30
        while not backup.done():
            await store.write(add_note(f"n{written:03}", body=bytes(1000)))
            written += 1
        await backup
        assert written > 35
    assert [path.name for path in copy.parent.iterdir()] == ["backup.db"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    async with small_schema.database("sqlite", str(copy), migrations).open() as restored:
        kept = [row["id"] for row in await restored.all("list_notes")]
        # A consistent state: no note is missing before the last one.
        assert kept == [f"n{number:03}" for number in range(len(kept))]
        assert 30 <= len(kept) <= written


async def test_a_backup_overwrites_no_file_and_leaves_no_partial_one(sqlite_database: Database, tmp_path: Path) -> None:
    async with open_store(sqlite_database) as store:
        (tmp_path / "taken.db").write_text("mine")
        with pytest.raises(BackupRefused, match=r"taken\.db exists"):
            await store.backup(tmp_path / "taken.db")
        assert (tmp_path / "taken.db").read_text() == "mine"
        with pytest.raises(BackupRefused, match="exists"):
            await store.backup(Path(sqlite_database.address))
        with pytest.raises(BackupRefused, match="No backup was written"):
            await store.backup(tmp_path / "nowhere" / "backup.db")
        for turns in range(4):
            cancelled = asyncio.create_task(store.backup(tmp_path / "late.db"))
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert not list(tmp_path.glob("late*"))
        assert await store.write(add_note("n")) == 1


async def test_an_interrupted_slow_read_is_repeated(sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        await asyncio.gather(*(store.write(add_account(f"b{number:03}")) for number in range(45)))
        slow = asyncio.create_task(store.slow("count_pairs"))
        await wait_for_slow_read(store)
        store._interrupt_slow()
        assert (await slow)[0]["count"] == 46**2 * 46 * 47 // 2


async def test_closing_does_not_wait_for_a_slow_read(sqlite_database: Database) -> None:
    async with open_store(sqlite_database) as store:
        await asyncio.gather(*(store.write(add_account(f"b{number:03}")) for number in range(400)))
        slow = asyncio.create_task(store.slow("count_pairs"))  # it would take hours
        await wait_for_slow_read(store)
        await store.close()
        with pytest.raises(StorageUnavailable):
            await slow


async def test_closing_leaves_one_file_and_no_thread(sqlite_database: Database, tmp_path: Path) -> None:
    async with open_store(sqlite_database) as store:
        await store.slow("list_accounts")
        assert Path(f"{sqlite_database.address}-wal").exists()
        await store.close()
        await store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["migrations", "penstock.db"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("penstock")]
    assert not [file.path for file in psutil.Process().open_files() if file.path.startswith(str(tmp_path))]
