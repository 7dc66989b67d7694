"""Write what several tasks want to write at the same time in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context
from typing import Any, Generic, TypeVar

from penstock.errors import StorageUnavailable
from penstock.store.base import Change, Row, Store, Transaction

Item = TypeVar("Item")
Result = TypeVar("Result")


class WriteGroups(Generic[Item, Result]):
    """Collects items while a transaction is under way, and writes them together with the next one.

    Items of different organizations are not mixed: where the rows of one are locked by somebody else, only its own
    items wait. The first item is written at once.
    """

    def __init__(
        self, store: Store, write: Callable[[Transaction, Sequence[Item]], Awaitable[Sequence[Result]]], most: int = 64
    ) -> None:
        """`write` writes items and returns a result for each; like any work of a transaction, it may be run again.

        One transaction writes `most` items, so that it does not hold locks for long.
        """
        self._store = store
        self._write = write
        self._most = most
        self._waiting: dict[str | None, list[tuple[Item, asyncio.Future[Result]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, item: Item, org_id: str | None = None) -> Result:
        """Write an item, and return its result when it is durable. Raises what `Store.write` raises.

        The item may be written although its caller was cancelled.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(org_id)
        if waiting is None:
            waiting = self._waiting[org_id] = []
            # An empty context, because the task writes for many callers and not only for the one that starts it.
            task = asyncio.get_running_loop().create_task(self._write_waiting(org_id), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting.append((item, future))
        return await future

    async def _write_waiting(self, org_id: str | None) -> None:
        waiting = self._waiting[org_id]
        try:
            while waiting:
                group = [entry for entry in waiting[: self._most] if not entry[1].done()]
                del waiting[: self._most]
                if group:
                    await self._write_group(group, org_id)
        finally:
            del self._waiting[org_id]
            for _, future in waiting:  # this task was cancelled
                future.cancel()

    async def _write_group(self, group: list[tuple[Item, asyncio.Future[Result]]], org_id: str | None) -> None:
        items = [item for item, _ in group]
        try:
            results = await self._store.write(lambda tx: self._write(tx, items), org_id=org_id)
        except StorageUnavailable as problem:
            for _, future in group:
                _fail(future, _copied(problem))
        except Exception as problem:
            if len(group) == 1:
                _fail(group[0][1], problem)
                return
            for entry in group:  # one of them is the cause: the others must not suffer for it
                await self._write_group([entry], org_id)
        else:
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():
                    future.set_result(result)
        finally:
            for _, future in group:
                future.cancel()  # those without an outcome: this task was cancelled


def _fail(future: "asyncio.Future[Any]", problem: Exception) -> None:
    if not future.done():  # otherwise its caller was cancelled
        future.set_exception(problem)


def _copied(problem: StorageUnavailable) -> StorageUnavailable:
    """The same problem for one more caller, who may change it."""
    copy = StorageUnavailable(problem.message, should_retry=problem.should_retry)
    copy.__cause__ = problem
    return copy


def in_lock_order(changes: Iterable[Change], queries: Sequence[str]) -> list[Change]:
    """Sort changes by the places of their queries in `queries`, and those of one query by the ids of the rows: so
    transactions that change the same rows do not wait for each other in a circle.
    """
    return sorted(changes, key=lambda change: (queries.index(change[0]), _row_id(change[1])))


def _row_id(values: Row) -> str:
    """The id of the row that a change is about, or of the row that it belongs to."""
    return str(next(values[name] for name in ("id", "request_id", "recording_id") if name in values))
