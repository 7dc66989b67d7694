"""The store in one SQLite file: one connection writes, others read."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Literal, TypeVar

import apsw

from penstock.durability import sync_folder
from penstock.fair_shares import SharedPlaces
from penstock.store.base import (
    BackupRefused,
    DiskFull,
    QueryMisused,
    Row,
    StorageUnavailable,
    Timing,
    Transaction,
    single,
)
from penstock.store.migrate import Migration, migrate_sqlite
from penstock.store.queries import Queries, Query, QueryFile
from penstock.store.shares import share_of
from penstock.store.sqlite_session import Session, open_session, store_error
from penstock.store.sqlite_writer import Writer
from penstock.values import OrgId

T = TypeVar("T")

SLOW_READERS: Final = 2
# How long a purge waits for readers, and after how long it interrupts the slow reads of this process.
PURGE_SECONDS: Final = 10.0
READERS_SECONDS: Final = 1.0
PURGE_PAUSE_SECONDS: Final = 1.0
BACKUP_PAGES: Final = 256


async def open_sqlite(path: Path, queries: QueryFile, migrations: tuple[Migration, ...]) -> "SqliteStore":
    """Open or create the file, check its settings and apply migrations.

    Raises StorageMisconfigured or StorageUnavailable.
    """

    def prepare() -> Session:
        session = open_session(path, queries.sqlite)
        try:
            migrate_sqlite(session.connection, migrations)
        except apsw.Error as error:
            session.connection.close()
            raise store_error(error) from error
        except BaseException:
            session.connection.close()
            raise
        return session

    return SqliteStore(path, queries.sqlite, await asyncio.to_thread(prepare))


class SqliteStore:
    """A store on one file. Other processes, such as commands, may open the same file."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(self, path: Path, queries: Queries, session: Session) -> None:
        self.timing = Timing()
        self._path = path
        self._queries = queries
        self._reader = open_session(path, queries, read_only=True)
        self._writer = Writer(session, self._interrupt_slow)
        self._threads = ThreadPoolExecutor(SLOW_READERS, thread_name_prefix="penstock-read")
        self._thread_local = threading.local()
        self._slow_places = SharedPlaces(SLOW_READERS)
        self._slow_sessions: list[Session] = []
        self._closed = False
        self._purging = asyncio.Lock()
        self._next_purge: asyncio.Future[None] | None = None
        self._purged_at = -PURGE_PAUSE_SECONDS
        self._slow_allowed = asyncio.Event()
        self._slow_allowed.set()

    async def write(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        *,
        org_id: OrgId | None = None,
        lock_ms: int | None = None,
        unlocks_early: bool = False,
    ) -> T:
        started = perf_counter()
        try:
            return await self._writer.write(work)
        except DiskFull:
            self.timing.without_space += 1
            raise
        finally:
            self.timing.add(perf_counter() - started)

    async def one(self, name: str, /, **values: Any) -> Row | None:
        return single(name, await self.all(name, **values))

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        if self._writer.working:
            raise QueryMisused(f"{name} was read inside a transaction but not through it.")
        try:
            return self._reader.rows(self._queries.get_reading(name), values)
        except apsw.Error as error:
            raise store_error(error) from error

    async def slow(self, name: str, /, **values: Any) -> list[Row]:
        query = self._queries.get_reading(name)
        async with self._slow_places.place(share_of(values)):
            return await self._read_slowly(query, values)

    async def _read_slowly(self, query: Query, values: Row) -> list[Row]:
        def read() -> list[Row]:
            if self._closed:
                raise StorageUnavailable("Storage is unavailable: the database is closed.")
            return self._slow_session().rows(query, values)

        try:
            try:
                return await self._in_thread(read)
            except apsw.InterruptError:
                # It was interrupted because it kept the log from being copied or emptied. Read again after that.
                await self._writer.between(_copy_log)
                return await self._in_thread(read)
        except apsw.Error as error:
            raise store_error(error) from error

    async def _in_thread(self, read: Callable[[], list[Row]]) -> list[Row]:
        await self._slow_allowed.wait()
        try:
            running = self._threads.submit(read)
        except RuntimeError as error:  # the threads have ended
            raise StorageUnavailable("Storage is unavailable: the database is closed.") from error
        return await asyncio.wrap_future(running)

    def _slow_session(self) -> Session:
        session: Session | None = getattr(self._thread_local, "session", None)
        if session is None:
            session = self._thread_local.session = open_session(self._path, self._queries, read_only=True)
            self._slow_sessions.append(session)
        return session

    def _interrupt_slow(self) -> None:
        for session in self._slow_sessions:
            session.connection.interrupt()

    async def purge_traces(self) -> None:
        """Empty the write-ahead log, which has old versions of pages. SQLite overwrites deleted data in the file.

        Slow reads wait meanwhile, so it happens once a second at most, for all who called before it began. Raises
        StorageUnavailable if readers prevent it for ten seconds.
        """
        if self._next_purge is None:
            self._next_purge = asyncio.ensure_future(self._purge_next())
        await asyncio.shield(self._next_purge)

    async def _purge_next(self) -> None:
        async with self._purging:
            now = asyncio.get_running_loop().time
            await asyncio.sleep(max(0.0, self._purged_at + PURGE_PAUSE_SECONDS - now()))
            self._next_purge = None  # whoever calls from now on may have deleted something after this one began
            try:
                await self._purge_log()
            finally:
                self._purged_at = now()

    async def _purge_log(self) -> None:
        loop = asyncio.get_running_loop()
        interrupt_at = loop.time() + READERS_SECONDS
        give_up = loop.time() + PURGE_SECONDS
        self._slow_allowed.clear()  # new slow reads wait, or there might always be one
        try:
            while True:
                try:
                    await self._writer.between(_empty_log)
                    return
                except apsw.BusyError as error:
                    if loop.time() >= give_up:
                        raise StorageUnavailable("Storage is unavailable: the database is still being read.") from error
                if loop.time() >= interrupt_at:
                    self._interrupt_slow()
                await asyncio.sleep(0.01)
        finally:
            self._slow_allowed.set()

    async def backup(self, path: Path) -> None:
        """Copy page by page between commits. SQLite copies pages again that change meanwhile.

        When the caller is cancelled, the copy is given up after the step that is running, and its file is removed.
        """
        stop = asyncio.Event()
        copying = asyncio.ensure_future(self._copy_to(path, stop))
        try:
            await asyncio.shield(copying)
        finally:
            stop.set()
            await asyncio.wait([copying])

    async def _copy_to(self, path: Path, stop: asyncio.Event) -> None:
        partial = path.with_name(path.name + ".partial")
        try:
            copy = await asyncio.to_thread(_start_backup, partial, path)
            try:
                backup = await self._writer.between(lambda session: copy.backup("main", session.connection, "main"))
                try:
                    while not (backup.done or stop.is_set()):
                        await self._writer.between(lambda _: backup.step(BACKUP_PAGES))
                finally:
                    await self._writer.between(lambda _: backup.close(True))
                if not stop.is_set():
                    await asyncio.to_thread(_finish_backup, copy, partial, path)
            finally:
                await asyncio.to_thread(_drop_partial, copy, partial)
        except (OSError, apsw.Error) as error:
            raise BackupRefused(f"No backup was written to {path}: {error}") from error

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._next_purge is not None:
            self._next_purge.cancel()
        await self._writer.drain()
        shutdown = asyncio.ensure_future(asyncio.to_thread(self._threads.shutdown))
        while not shutdown.done():
            self._interrupt_slow()  # repeatedly, because it misses a read that is about to start
            await asyncio.wait([shutdown], timeout=0.02)
        for session in (*self._slow_sessions, self._reader):
            session.connection.close()
        await self._writer.close()


def _copy_log(session: Session) -> None:
    session.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


def _empty_log(session: Session) -> None:
    session.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _start_backup(partial: Path, path: Path) -> apsw.Connection:
    if path.exists():
        raise BackupRefused(f"{path} exists; a backup does not overwrite files.")
    partial.unlink(missing_ok=True)
    partial.touch(0o600)
    return apsw.Connection(str(partial))


def _drop_partial(copy: apsw.Connection, partial: Path) -> None:
    copy.close()
    partial.unlink(missing_ok=True)


def _finish_backup(copy: apsw.Connection, partial: Path, path: Path) -> None:
    result = copy.pragma("quick_check")
    copy.close()
    if result != "ok":
        raise BackupRefused(f"No backup was written to {path}: the copy is damaged: {result}")
    partial.rename(path)
    sync_folder(path.parent)
