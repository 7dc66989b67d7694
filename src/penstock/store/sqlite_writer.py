"""Group commit for SQLite: many writers, one transaction, one wait for the disk."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from queue import SimpleQueue
from typing import Any, Final, NoReturn, TypeVar

import apsw

from penstock.store.base import QueryMisused, Row, StorageUnavailable, Transaction, WorkSuspended, single
from penstock.store.sqlite_session import Session, translated

T = TypeVar("T")
_log = logging.getLogger(__name__)

# How long a write waits for another process that writes to the same file.
BUSY_SECONDS: Final = 5.0
# The event loop belongs to everybody: works that do not fit into this much time go into the next commit.
BATCH_SECONDS: Final = 0.005
# Pages of 4 KiB in the write-ahead log: at 4 MiB it is copied into the database, so that it can start over; at 128 MiB
# it could not for a long time, and whoever in this process still reads from it has to stop.
CHECKPOINT_PAGES: Final = 1_000
CROWDED_PAGES: Final = 32_000

_Future = asyncio.Future[Any]
_Job = tuple[Callable[[Transaction], Awaitable[Any]], _Future]
_Outcome = tuple[_Future, Any, BaseException | None]


class TransactionLost(Exception):
    """SQLite rolled back the whole batch by itself; the cause says why."""


class SqliteTransaction:
    """The statements of one work, inside its own savepoint."""

    __slots__ = ("_session", "failure")

    def __init__(self, session: Session) -> None:
        self._session = session
        # After some errors SQLite has rolled everything back by itself, and one more statement would be committed
        # alone; so the first failure is the last statement.
        self.failure: Exception | None = None

    async def one(self, name: str, /, **values: Any) -> Row | None:
        return single(name, await self.all(name, **values))

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        if self.failure is not None:
            raise self.failure
        try:
            return self._session.rows(self._session.queries[name], values)
        except Exception as error:
            self._fail(error)

    async def run(self, name: str, /, **values: Any) -> int:
        if self.failure is not None:
            raise self.failure
        try:
            return self._session.run(self._session.queries[name], values)
        except Exception as error:
            self._fail(error)

    async def run_many(self, name: str, every: Sequence[Row], /) -> int:
        if self.failure is not None:
            raise self.failure
        try:
            return self._session.run_many(self._session.queries[name], every)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        self.failure = translated(error)
        if self.failure is error:
            raise error
        raise self.failure from error


class Writer:
    """The only connection that writes, and the order in which it does.

    Works run on the event loop, because running SQL there is cheaper than handing it over; COMMIT, which waits for
    the disk, runs in a thread, and meanwhile the next works gather. Works never suspend, so nothing gets in between.
    """

    def __init__(self, session: Session, crowded: Callable[[], None]) -> None:
        self.working = False
        self._session = session
        self._crowded = crowded
        self._loop = asyncio.get_running_loop()
        self._thread = CommitThread(self._loop)
        self._waiting: deque[_Job] = deque()
        self._batch: list[_Outcome] = []
        self._careful = 0
        self._chores: deque[tuple[Callable[[], Any], _Future]] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._closed = False
        self._log_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        session.connection.set_busy_timeout(0)
        session.connection.set_wal_hook(self._note_log_pages)

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        if self.working:
            raise QueryMisused("A work cannot start another one; it has its own transaction.")
        future: asyncio.Future[T] = self._loop.create_future()
        self._start()
        self._waiting.append((work, future))
        return await future

    async def between(self, chore: Callable[[Session], T]) -> T:
        """Use the connection in the commit thread, while no transaction is open."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._start()
        self._chores.append((lambda: chore(self._session), future))
        return await future

    async def drain(self) -> None:
        """Commit what waits and take nothing more."""
        self._closed = True
        while self._pump is not None:
            await asyncio.wait([self._pump])

    async def close(self) -> None:
        """Let go of the file; the last connection to do so copies the log into it, which may take a moment."""
        await self._thread.do(self._session.connection.close)
        self._thread.stop()

    def _start(self) -> None:
        if self._closed:
            raise StorageUnavailable("Storage is unavailable: the database is closed.")
        if self._pump is None:
            # A context of its own: what the first of many callers had set does not belong to the others.
            self._pump = self._loop.create_task(self._run_pump(), context=Context())

    async def _run_pump(self) -> None:
        try:
            while self._waiting or self._chores:
                if self._waiting:
                    await self._commit_waiting()
                if self._log_pages >= self._checkpoint_at:
                    await self._in_thread(self._checkpoint)
                if self._chores:
                    await self._do_chore()
        finally:
            self._pump = None
            # Whoever is left was stranded by a cancellation or a bug, and may not wait for ever.
            stranded = [outcome[0] for outcome in self._batch]
            stranded += [entry[1] for entry in (*self._waiting, *self._chores)]
            for future in stranded:
                _settle(future, None, StorageUnavailable("Storage is unavailable.", should_retry=False))
            self._batch = []
            self._waiting.clear()
            self._chores.clear()

    async def _do_chore(self) -> None:
        chore, future = self._chores[0]
        try:
            value = await self._in_thread(chore)
        except Exception as error:
            _settle(future, None, error)
        else:
            _settle(future, value, None)
        self._chores.popleft()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await self._thread.do(work)
        except asyncio.CancelledError:
            # The connection is the thread's until it has finished: this waits behind whatever it is doing.
            await self._thread.do(lambda: None)
            raise

    # ------------------------------------------------------------------------------------------------------- a batch

    async def _commit_waiting(self) -> None:
        try:
            await self._begin()
        except apsw.Error as error:
            refused, self._waiting = self._waiting, deque()
            self._batch = _refusals([future for _, future in refused], error)
        else:
            await self._commit_batch()
        for outcome in self._batch:
            _settle(*outcome)
        self._batch = []

    async def _commit_batch(self) -> None:
        connection = self._session.connection
        changes = connection.total_changes()
        try:
            self._do_waiting()
            if self._batch and connection.total_changes() != changes:
                await self._in_thread(self._commit)
        except (apsw.Error, TransactionLost) as error:
            self._batch = _refusals([outcome[0] for outcome in self._batch], error)
        finally:
            if connection.in_transaction:  # nothing was changed, or it failed
                self._session.cursor.execute("ROLLBACK")

    async def _begin(self) -> None:
        """Take the write lock; the loop goes on while another process has it."""
        give_up = self._loop.time() + BUSY_SECONDS
        pause = 0.001
        while True:
            try:
                self._session.cursor.execute("BEGIN IMMEDIATE")
                return
            except apsw.BusyError:
                if self._loop.time() >= give_up:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.016)

    def _do_waiting(self) -> None:
        """Run works until none waits or the loop was held long enough.

        A savepoint around each work costs as much as one of its statements, because SQLite copies every page that is
        touched after it. So works run without; when one has to be undone, so is the batch, and then it runs again
        with savepoints. A work that fails before it changed anything, such as one that finds no money, needs neither.
        """
        deadline = time.perf_counter() + BATCH_SECONDS
        connection, waiting, taken = self._session.connection, self._waiting, list[_Job]()
        changes = connection.total_changes()
        while waiting:
            job = waiting.popleft()
            if job[1].done():  # its caller gave up before it began
                continue
            taken.append(job)
            if self._careful:
                self._careful -= 1
                self._do_carefully(*job)
            elif not self._do(*job) and connection.total_changes() != changes:
                self._start_over(taken)
                return
            changes = connection.total_changes()
            if time.perf_counter() > deadline:
                return

    def _start_over(self, taken: list[_Job]) -> None:
        """Put everybody back in line, and give all who wait now a savepoint: one failure seldom comes alone."""
        self._session.cursor.execute("ROLLBACK")
        self._batch.clear()
        self._waiting.extendleft(reversed(taken))
        self._careful = len(self._waiting)

    def _do_carefully(self, work: Callable[[Transaction], Awaitable[Any]], future: _Future) -> None:
        self._session.cursor.execute("SAVEPOINT work")
        if not self._do(work, future):
            self._session.cursor.execute("ROLLBACK TO work")
        self._session.cursor.execute("RELEASE work")

    def _do(self, work: Callable[[Transaction], Awaitable[Any]], future: _Future) -> bool:
        """Run one work to its end and note what came of it."""
        transaction = SqliteTransaction(self._session)
        self.working = True
        try:
            value = _finish(work(transaction))
            if transaction.failure is not None:
                raise transaction.failure
        except Exception as error:
            self._batch.append((future, None, error))
            if not self._session.connection.in_transaction:
                raise TransactionLost from error
            return False
        finally:
            self.working = False
            transaction.failure = QueryMisused("This transaction is over.")
        self._batch.append((future, value, None))
        return True

    def _commit(self) -> None:
        self._session.cursor.execute("COMMIT")

    # ----------------------------------------------------------------------------------------------------- its log

    def _note_log_pages(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Copy the log into the database; if nobody reads from it, the next commit starts it over."""
        try:
            pages, copied = self._session.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            _log.warning("The write-ahead log could not be copied into the database: %s", error)
            pages, copied = self._log_pages, 0
        if pages == copied:
            self._log_pages, self._checkpoint_at = 0, CHECKPOINT_PAGES
            return
        self._checkpoint_at = pages + CHECKPOINT_PAGES
        if pages >= CROWDED_PAGES:
            _log.warning("The write-ahead log holds %d pages, because somebody is reading an old state", pages)
            self._crowded()


class CommitThread:
    """One thread that does one thing after another for the event loop, with as little ado as possible."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._orders: SimpleQueue[tuple[Callable[[], Any], _Future] | None] = SimpleQueue()
        # A daemon, so that a program that forgets to close the store can still end; nobody was promised anything yet.
        self._thread = threading.Thread(target=self._run, name="penstock-commit", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        self._orders.put((work, future))
        return future

    def stop(self) -> None:
        self._orders.put(None)
        self._thread.join()

    def _run(self) -> None:
        while order := self._orders.get():
            work, future = order
            value, failure = None, None
            try:
                value = work()
            except BaseException as error:
                failure = error
            with suppress(RuntimeError):  # the loop was closed without waiting for us
                self._loop.call_soon_threadsafe(_settle, future, value, failure)
            del order, work, future, value, failure


def _finish(awaitable: Awaitable[T]) -> T:
    """Run to the end what never waits."""
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
    steps.close()
    raise WorkSuspended("A work may await nothing but its transaction.")


def _settle(future: _Future, value: Any, failure: BaseException | None) -> None:
    if future.done():  # its caller has stopped waiting
        return
    if failure is None:
        future.set_result(value)
    else:
        future.set_exception(failure)


def _refusals(futures: list[_Future], error: Exception) -> list[_Outcome]:
    """The same answer for everybody in a batch, each with an exception of its own to raise."""
    reason = error.__cause__ if isinstance(error, TransactionLost) and error.__cause__ else error
    _log.warning("%d writes were refused: %s", len(futures), reason)
    return [(future, None, _refusal(error, reason)) for future in futures]


def _refusal(error: Exception, reason: BaseException) -> StorageUnavailable:
    known = translated(reason) if isinstance(reason, Exception) else reason
    message = known.message if isinstance(known, StorageUnavailable) else "Storage is unavailable."
    # When writing to the disk fails in the middle of COMMIT, a crash right now might still bring the batch back.
    certain = isinstance(error, TransactionLost | apsw.FullError | apsw.BusyError)
    refusal = StorageUnavailable(message, should_retry=None if certain else False)
    refusal.__cause__ = reason
    return refusal
