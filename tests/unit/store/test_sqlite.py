"""The store on a SQLite file: purging, copying, reading beside writing, closing."""

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
from tests.unit.store import small_schema
from tests.unit.store.small_schema import Database, adding, noting

CANARY = b"canary-7f3a91"


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[SqliteStore]:
    async with database.open() as store:
        assert isinstance(store, SqliteStore)
        await store.write(adding("a"))
        yield store


def places(folder: Path) -> list[str]:
    """The files in which the canary can be found."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and CANARY in path.read_bytes())


async def reading(store: SqliteStore) -> None:
    """Until a slow read is under way: then its connection is taken."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        await asyncio.sleep(0.001)
        try:
            for session in store._slow_sessions:
                session.connection.changes()
        except apsw.ThreadingViolationError:
            return
    pytest.fail("no slow read has begun")


@pytest.mark.parametrize("size", [1, 100, 50_000])
async def test_what_was_deleted_cannot_be_read_from_any_file(
    sqlite_database: Database, tmp_path: Path, size: int
) -> None:
    async with opened(sqlite_database) as store:
        for number in range(20):
            await store.write(noting(f"n{number}", body=CANARY * size))
        await store.purge_traces()
        assert places(tmp_path) == ["penstock.db"]
        await store.write(noting("one more", body=CANARY))
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        await store.purge_traces()
        assert places(tmp_path) == []
        assert Path(f"{sqlite_database.address}-wal").stat().st_size == 0
        await store.write(noting("later"))


async def test_without_purging_the_log_still_knows(sqlite_database: Database, tmp_path: Path) -> None:
    async with opened(sqlite_database) as store:
        await store.write(noting("n", body=CANARY))
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        assert places(tmp_path) == ["penstock.db-wal"]


async def test_purging_waits_for_a_reader_of_the_old_state(sqlite_database: Database, tmp_path: Path) -> None:
    async with opened(sqlite_database) as store:
        await store.write(noting("n", body=CANARY))
        reader = apsw.Connection(sqlite_database.address)
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM notes").fetchall()
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        purging = asyncio.create_task(store.purge_traces())
        # The others are not held up meanwhile.
        for number in range(5):
            await store.write(noting(f"o{number}"))
        assert not purging.done()
        assert places(tmp_path)
        reader.execute("COMMIT")
        await purging
        assert places(tmp_path) == []
        reader.close()


async def test_purging_gets_its_turn_among_slow_readers(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "READERS_SECONDS", 0.05)
    async with opened(sqlite_database) as store:
        await asyncio.gather(*(store.write(adding(f"b{number:03}")) for number in range(45)))
        await store.write(noting("n", body=CANARY))
        await store.write(lambda transaction: transaction.run("drop_notes", account="a"))
        slow = [asyncio.create_task(store.slow("count_pairs")) for _ in range(6)]  # three times as many as threads
        await reading(store)
        await store.purge_traces()
        assert places(tmp_path) == []
        # Those that were interrupted were tried again, those that had to wait came later.
        assert [rows[0]["count"] for rows in await asyncio.gather(*slow)] == [46**2 * 46 * 47 // 2] * 6


async def test_purging_says_when_it_could_not(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "PURGE_SECONDS", 0.05)
    async with opened(sqlite_database) as store:
        reader = apsw.Connection(sqlite_database.address)
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM notes").fetchall()
        await store.write(noting("n"))
        with pytest.raises(StorageUnavailable, match="still being read"):
            await store.purge_traces()
        reader.close()
        await store.purge_traces()


async def test_a_backup_is_whole_while_writing_goes_on(
    sqlite_database: Database, tmp_path: Path, migrations: Path
) -> None:
    copy = tmp_path / "copy" / "backup.db"
    copy.parent.mkdir()
    async with opened(sqlite_database) as store:
        for number in range(30):
            await store.write(noting(f"n{number:03}", body=bytes(200_000)))
        backup = asyncio.create_task(store.backup(copy))
        written = 30
        while not backup.done():
            await store.write(noting(f"n{written:03}", body=bytes(1000)))
            written += 1
        await backup
        assert written > 35
    assert [path.name for path in copy.parent.iterdir()] == ["backup.db"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    async with small_schema.database("sqlite", str(copy), migrations).open() as restored:
        kept = [row["id"] for row in await restored.all("list_notes")]
        # A state that was: nothing is missing before the last note it has.
        assert kept == [f"n{number:03}" for number in range(len(kept))]
        assert 30 <= len(kept) <= written


async def test_a_backup_overwrites_nothing_and_leaves_nothing_half_done(
    sqlite_database: Database, tmp_path: Path
) -> None:
    async with opened(sqlite_database) as store:
        (tmp_path / "taken.db").write_text("mine")
        with pytest.raises(BackupRefused, match=r"taken\.db exists"):
            await store.backup(tmp_path / "taken.db")
        assert (tmp_path / "taken.db").read_text() == "mine"
        with pytest.raises(BackupRefused, match="exists"):
            await store.backup(Path(sqlite_database.address))
        with pytest.raises(BackupRefused, match="No backup was written"):
            await store.backup(tmp_path / "nowhere" / "backup.db")
        cancelled = asyncio.create_task(store.backup(tmp_path / "late.db"))
        await asyncio.sleep(0.001)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert not list(tmp_path.glob("late*"))
        assert await store.write(noting("n")) == 1


async def test_an_interrupted_slow_read_is_tried_once_more(sqlite_database: Database) -> None:
    async with opened(sqlite_database) as store:
        await asyncio.gather(*(store.write(adding(f"b{number:03}")) for number in range(45)))
        slow = asyncio.create_task(store.slow("count_pairs"))
        await reading(store)
        store._interrupt_slow()
        assert (await slow)[0]["count"] == 46**2 * 46 * 47 // 2


async def test_closing_does_not_wait_for_a_slow_read(sqlite_database: Database) -> None:
    async with opened(sqlite_database) as store:
        await asyncio.gather(*(store.write(adding(f"b{number:03}")) for number in range(400)))
        slow = asyncio.create_task(store.slow("count_pairs"))  # hours
        await reading(store)
        await store.close()
        with pytest.raises(StorageUnavailable):
            await slow


async def test_closing_leaves_one_file_and_no_thread(sqlite_database: Database, tmp_path: Path) -> None:
    async with opened(sqlite_database) as store:
        await store.slow("list_accounts")
        assert Path(f"{sqlite_database.address}-wal").exists()
        await store.close()
        await store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["migrations", "penstock.db"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("penstock")]
    assert not [file.path for file in psutil.Process().open_files() if file.path.startswith(str(tmp_path))]
