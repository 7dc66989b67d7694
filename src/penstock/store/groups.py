"""Write what several tasks want to write at the same time in one transaction."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextvars import Context
from typing import Any, Final, Generic, TypeVar

import msgspec

from penstock.errors import StorageUnavailable
from penstock.event_loop import settle
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


_Group = Sequence[_Entry[Item, Result]]
_Queues = dict[OrgId | None, deque[_Entry[Item, Result]]]  # by organization


class WriteGroups(Generic[Item, Result]):
    """Collects items while a transaction is under way, and writes them together with the next one.

    The first item is written at once, or waits for others for a moment. Items of several organizations share a
    transaction. If it fails, or waits for a row that somebody else has locked, the items of each organization are
    written apart from those of the others, at the same time. An organization for which that fails too stays apart for a
    while. So others wait for an organization with a locked row now and then, but not longer than `LOCK_MS`, and one
    that cannot pay spoils few of their transactions.
    """

    def __init__(
        self,
        store: Store,
        write: Callable[[Transaction, Sequence[Item]], Awaitable[Sequence[Result]]],
        most: int = 64,
        *,
        collect_seconds: float = 0.0,
    ) -> None:
        """`write` writes items, which may be of several organizations, and returns a result for each; like any work of
        a transaction, it may be run again.

        One transaction writes `most` items, so that it does not hold locks for long. The first item waits for others
        for `collect_seconds`: for results that nobody waits for.
        """
        self._store = store
        self._write = write
        self._most = most
        self._collect_seconds = collect_seconds
        self._shared: _Queues[Item, Result] = {}  # for transactions of several organizations
        self._apart: _Queues[Item, Result] = {}  # for transactions of one; each of these queues has a task
        self._apart_until: dict[OrgId | None, float] = {}  # by organization, the earliest first
        self._is_writing = False  # what is shared; the task that does so takes the next group when one is written
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
            self._start_writing_apart(org_id, [entry])
        else:
            self._shared.setdefault(org_id, deque()).append(entry)
            if not self._is_writing:
                self._is_writing = True
                if self._collect_seconds:
                    loop.call_later(self._collect_seconds, self._start_writing_shared)
                else:
                    self._start_writing_shared()
        return await entry.future

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # An empty context, because the task writes for many callers and not only for the one that starts it.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write_group(self, group: _Group[Item, Result], org_id: OrgId | None, lock_ms: int | None = None) -> None:
        """Write items, and tell their callers if the store is unavailable. Raises what else `Store.write` raises."""
        items = [entry.item for entry in group]
        try:
            results = await self._store.write(
                lambda tx: self._write(tx, items), org_id=org_id, lock_ms=lock_ms, unlocks_early=True
            )
        except StorageUnavailable as problem:
            for entry in group:
                settle(entry.future, None, _copy(problem))
        else:
            for entry, result in zip(group, results, strict=True):
                settle(entry.future, result)

    # ------------------------------------------------------------------------------------------- several organizations

    def _start_writing_shared(self) -> None:
        self._start(self._write_shared_until_empty())

    async def _write_shared_until_empty(self) -> None:
        """Write what waits, one group after the other."""
        group: _Group[Item, Result] = ()
        try:
            while group := self._take_group(self._shared):
                await self._write_shared_group(group)
        finally:
            self._is_writing = False
            if group:  # this task was cancelled
                _cancel([*group, *(entry for entries in self._shared.values() for entry in entries)])
                self._shared.clear()

    def _take_group(self, queues: _Queues[Item, Result]) -> _Group[Item, Result]:
        """Take the next items to write out of the queues: one of each organization in turn."""
        group: list[_Entry[Item, Result]] = []
        while queues and len(group) < self._most:
            org_id = next(iter(queues))
            entries = queues.pop(org_id)
            entry = entries.popleft()
            if entries:
                queues[org_id] = entries  # behind those of the others
            if not entry.future.done():
                group.append(entry)
        return group

    async def _write_shared_group(self, group: _Group[Item, Result]) -> None:
        """Write items in one transaction; if that fails, those of each organization apart from the others."""
        try:
            await self._write_group(group, None, LOCK_MS)
        except Exception as problem:
            if len(group) == 1 and not isinstance(problem, RowsLocked):
                self._keep_apart(group[0].org_id)
                settle(group[0].future, None, problem)
                return
            for org_id in dict.fromkeys(entry.org_id for entry in group):
                self._start_writing_apart(org_id, [entry for entry in group if entry.org_id == org_id])

    # ---------------------------------------------------------------------------------------------- one organization

    def _keep_apart(self, org_id: OrgId | None) -> None:
        """Have an organization write by itself for a while, and forget those for which that time is over."""
        now = asyncio.get_running_loop().time()
        for expired in [known for known, until in self._apart_until.items() if until <= now or known == org_id]:
            del self._apart_until[expired]
        self._apart_until[org_id] = now + APART_SECONDS

    def _start_writing_apart(self, org_id: OrgId | None, entries: Iterable[_Entry[Item, Result]]) -> None:
        """Write items of an organization, and what else of it waits or comes meanwhile, by themselves."""
        waiting = [*entries, *self._shared.pop(org_id, ())]
        if org_id in self._apart:
            self._apart[org_id].extend(waiting)
        else:
            self._apart[org_id] = deque(waiting)
            self._start(self._write_apart_until_empty(org_id))

    async def _write_apart_until_empty(self, org_id: OrgId | None) -> None:
        """Write what waits for one organization, one group after the other."""
        entries = self._apart[org_id]
        group: _Group[Item, Result] = ()
        try:
            while entries:
                group = self._take_group({org_id: entries})
                if group:
                    await self._write_group_apart(group, org_id)
        finally:
            del self._apart[org_id]
            _cancel([*group, *entries])  # those without an outcome: this task was cancelled

    async def _write_group_apart(self, group: _Group[Item, Result], org_id: OrgId | None) -> None:
        """Write items of one organization together; if that fails, one by one."""
        try:
            await self._write_group(group, org_id)
        except Exception as problem:
            self._keep_apart(org_id)
            if len(group) == 1:
                settle(group[0].future, None, problem)
                return
            for entry in group:  # one of them is the cause: the others must not suffer for it
                await self._write_group_apart([entry], org_id)


def _cancel(entries: "Iterable[_Entry[Any, Any]]") -> None:
    for entry in entries:
        entry.future.cancel()


def _copy(problem: StorageUnavailable) -> StorageUnavailable:
    """The same problem for one more caller, who may change it."""
    copy = StorageUnavailable(problem.message, should_retry=problem.should_retry)
    copy.__cause__ = problem
    return copy
