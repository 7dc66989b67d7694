"""Write what several tasks want to write at the same time in one transaction."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextvars import Context
from typing import Any, Final, Generic, TypeVar

import msgspec

from penstock.errors import StorageUnavailable
from penstock.store.base import RowsLocked, Store, Transaction
from penstock.values import OrgId

Item = TypeVar("Item")
Result = TypeVar("Result")

# How long a transaction of several organizations waits for a row that somebody else has locked.
LOCK_MS: Final = 1000
# How long an organization writes by itself after one of its items could not be written.
APART_SECONDS: Final = 30.0


class _Entry(msgspec.Struct, Generic[Item, Result], frozen=True):
    """An item that waits to be written, and the task that waits for its result."""

    item: Item
    org_id: OrgId | None
    future: "asyncio.Future[Result]"

    def fail(self, problem: Exception) -> None:
        if not self.future.done():  # otherwise its caller was cancelled
            self.future.set_exception(problem)


class WriteGroups(Generic[Item, Result]):
    """Collects items while a transaction is under way, and writes them together with the next one.

    The first item is written at once. Items of several organizations share a transaction. If it fails, or waits for a
    row that somebody else has locked, the items of each organization are written apart from those of the others, at the
    same time. An organization for which that fails too stays apart for a while. So others wait for an organization with
    a locked row now and then, but not longer than `LOCK_MS`, and one that cannot pay spoils few of their transactions.
    """

    def __init__(
        self, store: Store, write: Callable[[Transaction, Sequence[Item]], Awaitable[Sequence[Result]]], most: int = 64
    ) -> None:
        """`write` writes items, which may be of several organizations, and returns a result for each; like any work of
        a transaction, it may be run again.

        One transaction writes `most` items, so that it does not hold locks for long.
        """
        self._store = store
        self._write = write
        self._most = most
        self._waiting: dict[str | None, deque[_Entry[Item, Result]]] = {}  # for a shared transaction, by organization
        self._apart: dict[str | None, deque[_Entry[Item, Result]]] = {}  # for a transaction of their organization
        self._apart_until: dict[str | None, float] = {}  # by organization, the earliest first
        self._is_writing = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, item: Item, org_id: OrgId | None = None) -> Result:
        """Write an item, and return its result when it is durable. Raises what `Store.write` raises.

        The item may be written although its caller was cancelled.
        """
        loop = asyncio.get_running_loop()
        entry: _Entry[Item, Result] = _Entry(item, org_id, loop.create_future())
        if org_id in self._apart:
            self._apart[org_id].append(entry)
        elif self._apart_until.get(org_id, 0.0) > loop.time():
            self._write_apart(org_id, [entry])
        else:
            self._waiting.setdefault(org_id, deque()).append(entry)
            if not self._is_writing:
                self._is_writing = True
                self._start(self._write_waiting())
        return await entry.future

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # An empty context, because the task writes for many callers and not only for the one that starts it.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write_group(
        self, group: Sequence[_Entry[Item, Result]], org_id: OrgId | None, lock_ms: int | None = None
    ) -> None:
        """Write items, and tell their callers if the store is unavailable. Raises what else `Store.write` raises."""
        items = [entry.item for entry in group]
        try:
            results = await self._store.write(lambda tx: self._write(tx, items), org_id=org_id, lock_ms=lock_ms)
        except StorageUnavailable as problem:
            for entry in group:
                entry.fail(_copied(problem))
        else:
            for entry, result in zip(group, results, strict=True):
                if not entry.future.done():
                    entry.future.set_result(result)

    # ------------------------------------------------------------------------------------------- several organizations

    async def _write_waiting(self) -> None:
        group: Sequence[_Entry[Item, Result]] = ()
        try:
            while group := self._take_group(self._waiting):
                await self._write_shared(group)
        finally:
            self._is_writing = False
            if group:  # this task was cancelled
                _cancel([*group, *(entry for entries in self._waiting.values() for entry in entries)])
                self._waiting.clear()

    def _take_group(self, waiting: dict[str | None, deque[_Entry[Item, Result]]]) -> Sequence[_Entry[Item, Result]]:
        """The next items to write: one of each organization in turn."""
        group: list[_Entry[Item, Result]] = []
        while waiting and len(group) < self._most:
            org_id = next(iter(waiting))
            entries = waiting.pop(org_id)
            entry = entries.popleft()
            if entries:
                waiting[org_id] = entries  # behind those of the others
            if not entry.future.done():
                group.append(entry)
        return group

    async def _write_shared(self, group: Sequence[_Entry[Item, Result]]) -> None:
        try:
            await self._write_group(group, None, LOCK_MS)
        except Exception as problem:
            if len(group) == 1 and not isinstance(problem, RowsLocked):
                self._keep_apart(group[0].org_id)
                group[0].fail(problem)
                return
            for org_id in dict.fromkeys(entry.org_id for entry in group):
                self._write_apart(org_id, [entry for entry in group if entry.org_id == org_id])

    # ---------------------------------------------------------------------------------------------- one organization

    def _keep_apart(self, org_id: OrgId | None) -> None:
        now = asyncio.get_running_loop().time()
        for expired in [known for known, until in self._apart_until.items() if until <= now or known == org_id]:
            del self._apart_until[expired]
        self._apart_until[org_id] = now + APART_SECONDS

    def _write_apart(self, org_id: OrgId | None, entries: Iterable[_Entry[Item, Result]]) -> None:
        """Write items of an organization, and what else of it waits or comes meanwhile, by themselves."""
        self._apart[org_id] = deque([*entries, *self._waiting.pop(org_id, ())])
        self._start(self._write_organization(org_id))

    async def _write_organization(self, org_id: OrgId | None) -> None:
        entries = self._apart[org_id]
        group: Sequence[_Entry[Item, Result]] = ()
        try:
            while entries:
                group = self._take_group({org_id: entries})
                if group:
                    await self._write_own(group, org_id)
        finally:
            del self._apart[org_id]
            _cancel([*group, *entries])  # those without an outcome: this task was cancelled

    async def _write_own(self, group: Sequence[_Entry[Item, Result]], org_id: OrgId | None) -> None:
        try:
            await self._write_group(group, org_id)
        except Exception as problem:
            self._keep_apart(org_id)
            if len(group) == 1:
                group[0].fail(problem)
                return
            for entry in group:  # one of them is the cause: the others must not suffer for it
                await self._write_own([entry], org_id)


def _cancel(entries: "Iterable[_Entry[Any, Any]]") -> None:
    for entry in entries:
        entry.future.cancel()


def _copied(problem: StorageUnavailable) -> StorageUnavailable:
    """The same problem for one more caller, who may change it."""
    copy = StorageUnavailable(problem.message, should_retry=problem.should_retry)
    copy.__cause__ = problem
    return copy
