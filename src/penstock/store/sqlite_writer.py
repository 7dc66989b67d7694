"""Group commit for SQLite: several transactions share one COMMIT and one wait for the disk."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar

import apsw
import structlog

from penstock.event_loop import LoopThreads, settle
from penstock.store.base import Change, QueryMisused, Row, StorageUnavailable, Transaction, WorkSuspended, single
from penstock.store.queries import Query
from penstock.store.sqlite_session import Session, store_error

T = TypeVar("T")
Values = TypeVar("Values")
log = structlog.get_logger()

# How long a write waits for another process that writes to the same file.
BUSY_SECONDS: Final = 5.0
# Transactions may occupy the event loop for this long before each commit; the rest wait for the next one.
BATCH_SECONDS: Final = 0.005
# Sizes of the write-ahead log in pages of 4 KiB. At 4 MiB it is copied into the database, so that it can start over. At
# 128 MiB long reads have prevented that for too long, and those of this process are interrupted.
CHECKPOINT_PAGES: Final = 1_000
CROWDED_PAGES: Final = 32_000

_Future = asyncio.Future[Any]
_Waiting = tuple[Callable[[Transaction], Awaitable[Any]], _Future]
_Outcome = tuple[_Future, Any, BaseException | None]


class TransactionLost(Exception):
    """SQLite has rolled back the whole batch itself; the cause says why."""


class SqliteTransaction:
    """The statements of one transaction."""

    __slots__ = ("_session", "failure")

    def __init__(self, session: Session) -> None:
        self._session = session
        # After some errors SQLite has rolled everything back itself, and a further statement would be committed alone.
        # So no statement runs after the first failure.
        self.failure: Exception | None = None

    async def one(self, name: str, /, **values: Any) -> Row | None:
        return single(name, await self.all(name, **values))

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        return self._do(self._session.rows, name, values)

    async def run(self, name: str, /, **values: Any) -> int:
        return self._do(self._session.run, name, values)

    async def run_many(self, name: str, rows: Sequence[Row], /) -> int:
        return self._do(self._session.run_many, name, rows)

    async def put(self, name: str, /, **values: Any) -> None:
        await self.run(name, **values)

    async def put_many(self, name: str, rows: Sequence[Row], /) -> None:
        await self.run_many(name, rows)

    async def each(self, statements: Sequence[tuple[str, Row]], /) -> list[list[Row]]:
        returned: list[list[Row]] = []
        for name, same in groupby(statements, key=itemgetter(0)):
            rows = [values for _, values in same]
            if self._session.queries[name].returns:
                returned += self._do(self._session.rows_of_each, name, rows)
            else:  # together, which takes half of the time
                await self.run_many(name, rows)
                returned += [[] for _ in rows]
        return returned

    async def run_each(self, changes: Sequence[Change], /) -> Counter[str]:
        changed = Counter[str]()
        for name, same in groupby(changes, key=itemgetter(0)):
            changed[name] += await self.run_many(name, [values for _, values in same])
        return changed

    def _do(self, work: Callable[[Query, Values], T], name: str, values: Values) -> T:
        """Work with a query, unless a statement before it failed."""
        if self.failure is not None:
            raise self.failure
        try:
            return work(self._session.queries[name], values)
        except Exception as error:
            self.failure = store_error(error)
            if self.failure is error:
                raise
            raise self.failure from error


class Writer:
    """The only connection that writes. It runs transactions in batches, one after another.

    The `work` of a transaction runs on the event loop, because that is cheaper than passing SQL to a thread. COMMIT
    waits for the disk, so it runs in a thread; meanwhile the next transactions collect. A work never suspends, so
    transactions do not mix.
    """

    def __init__(self, session: Session, on_crowded_log: Callable[[], None]) -> None:
        self.working = False
        self._session = session
        self._on_crowded_log = on_crowded_log
        self._loop = asyncio.get_running_loop()
        self._thread = LoopThreads(1, "commit")
        self._waiting: deque[_Waiting] = deque()
        self._batch: list[_Outcome] = []
        self._with_savepoint = 0  # so many of the next works run with a savepoint each
        self._chores: deque[tuple[Callable[[], Any], _Future]] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._closed = False
        self._log_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        session.connection.set_busy_timeout(0)
        session.connection.set_wal_hook(self._note_log_pages)

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in a transaction and return its result after the commit."""
        if self.working:
            raise QueryMisused("A transaction was started inside another one.")
        future: asyncio.Future[T] = self._loop.create_future()
        self._start()
        self._waiting.append((work, future))
        return await future

    async def between(self, chore: Callable[[Session], T]) -> T:
        """Run `chore` in the commit thread while no transaction is open, and return its result."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._start()
        self._chores.append((lambda: chore(self._session), future))
        return await future

    async def drain(self) -> None:
        """Commit the waiting transactions and accept no more."""
        self._closed = True
        while self._pump is not None:
            await asyncio.wait([self._pump])

    async def close(self) -> None:
        """Close the connection. If it is the last one, SQLite copies the log into the file, which may take a moment."""
        await self._thread.start(self._session.connection.close)
        self._thread.stop()

    def _start(self) -> None:
        if self._closed:
            raise StorageUnavailable("Storage is unavailable: the database is closed.")
        if self._pump is None:
            # An empty context, because the task serves many callers and not only the one that starts it.
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
            # After a cancellation or a bug, callers that are left must not wait for ever.
            left = [outcome[0] for outcome in self._batch]
            left += [entry[1] for entry in (*self._waiting, *self._chores)]
            for future in left:
                settle(future, None, StorageUnavailable("Storage is unavailable.", should_retry=False))
            self._batch = []
            self._waiting.clear()
            self._chores.clear()

    async def _do_chore(self) -> None:
        chore, future = self._chores[0]
        try:
            value = await self._in_thread(chore)
        except Exception as error:
            settle(future, None, error)
        else:
            settle(future, value)
        self._chores.popleft()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await self._thread.start(work)
        except asyncio.CancelledError:
            # The thread uses the connection until it has finished, so wait for it.
            await self._thread.start(lambda: None)
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
            settle(*outcome)
        self._batch = []

    async def _commit_batch(self) -> None:
        connection = self._session.connection
        changes = connection.total_changes()
        try:
            self._run_waiting()
            if self._batch and connection.total_changes() != changes:
                await self._in_thread(self._commit)
        except (apsw.Error, TransactionLost) as error:
            self._batch = _refusals([outcome[0] for outcome in self._batch], error)
        finally:
            if connection.in_transaction:  # nothing was changed, or it failed
                self._session.cursor.execute("ROLLBACK")

    async def _begin(self) -> None:
        """Take the write lock, without blocking the event loop while another process has it."""
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

    def _run_waiting(self) -> None:
        """Run waiting works until there are none, or until the time for a batch is over.

        A savepoint costs as much as a statement, because SQLite copies every page that is changed after it. So works
        run without savepoints. If a work fails after it has changed something, the whole batch is rolled back and runs
        again with savepoints. If it fails before, as a hold without enough money does, nothing needs to be undone.
        """
        deadline = time.perf_counter() + BATCH_SECONDS
        connection = self._session.connection
        waiting = self._waiting
        taken: list[_Waiting] = []
        changes = connection.total_changes()
        while waiting:
            entry = waiting.popleft()
            if entry[1].done():  # its caller was cancelled
                continue
            taken.append(entry)
            if self._with_savepoint:
                self._with_savepoint -= 1
                self._run_with_savepoint(*entry)
            elif not self._run(*entry) and connection.total_changes() != changes:
                self._start_over(taken)
                return
            changes = connection.total_changes()
            if time.perf_counter() > deadline:
                return

    def _start_over(self, taken: list[_Waiting]) -> None:
        """Roll back, and put all works back; those waiting now get savepoints, because failures seldom come alone."""
        self._session.cursor.execute("ROLLBACK")
        self._batch.clear()
        self._waiting.extendleft(reversed(taken))
        self._with_savepoint = len(self._waiting)

    def _run_with_savepoint(self, work: Callable[[Transaction], Awaitable[Any]], future: _Future) -> None:
        self._session.cursor.execute("SAVEPOINT work")
        if not self._run(work, future):
            self._session.cursor.execute("ROLLBACK TO work")
        self._session.cursor.execute("RELEASE work")

    def _run(self, work: Callable[[Transaction], Awaitable[Any]], future: _Future) -> bool:
        """Run one work and add its result to the batch. Returns False if it failed."""
        transaction = SqliteTransaction(self._session)
        self.working = True
        try:
            value = _run_to_end(work(transaction))
            if transaction.failure is not None:
                raise transaction.failure
        except Exception as error:
            self._batch.append((future, None, error))
            if not self._session.connection.in_transaction:
                raise TransactionLost from error
            return False
        finally:
            self.working = False
            transaction.failure = QueryMisused("This transaction has ended.")
        self._batch.append((future, value, None))
        return True

    def _commit(self) -> None:
        self._session.cursor.execute("COMMIT")

    # ----------------------------------------------------------------------------------------------------- its log

    def _note_log_pages(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Copy the log into the database. If no connection reads from it, the next commit starts it over."""
        try:
            pages, copied = self._session.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            log.warning("write-ahead log not copied into the database", reason=str(error))
            pages, copied = self._log_pages, 0
        if pages == copied:
            self._log_pages = 0
            self._checkpoint_at = CHECKPOINT_PAGES
            return
        self._checkpoint_at = pages + CHECKPOINT_PAGES
        if pages >= CROWDED_PAGES:
            log.warning("write-ahead log grows, because a long read is running", pages=pages)
            self._on_crowded_log()


def _run_to_end(awaitable: Awaitable[T]) -> T:
    """Run an awaitable that never suspends. Raises WorkSuspended if it does."""
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
    steps.close()
    raise WorkSuspended("The work of a transaction may await only the transaction.")


def _refusals(futures: list[_Future], error: Exception) -> list[_Outcome]:
    """The outcomes when a whole batch fails: an exception for each caller."""
    reason = error.__cause__ if isinstance(error, TransactionLost) and error.__cause__ else error
    log.warning("writes failed", count=len(futures), reason=str(reason))
    return [(future, None, _refusal(error, reason)) for future in futures]


def _refusal(error: Exception, reason: BaseException) -> StorageUnavailable:
    known = store_error(reason) if isinstance(reason, Exception) else reason
    message = known.message if isinstance(known, StorageUnavailable) else "Storage is unavailable."
    # If the disk failed during COMMIT, the batch may be in the log and take effect after a crash.
    certain = isinstance(error, TransactionLost | apsw.FullError | apsw.BusyError)
    refusal = StorageUnavailable(message, should_retry=None if certain else False)
    refusal.__cause__ = reason
    return refusal
