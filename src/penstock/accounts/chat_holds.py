"""Hold money for the chat calls of an organization in the store, several calls in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from penstock.errors import StorageUnavailable
from penstock.store.base import Store, Transaction

T = TypeVar("T")
_MAX_BATCH = 200

WriteAll = Callable[[Sequence[T], Transaction], Awaitable[None]]


@dataclass(slots=True)
class _Queue(Generic[T]):
    """The calls of one organization that wait for a hold."""

    waiting: list[tuple[T, asyncio.Future[None]]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


class HoldBatches(Generic[T]):
    """Writes holds. Those that come while others of their organization are written are written together after them.

    So a call that comes alone does not wait, and many at once lock the balance, and wait for the disk, once for all of
    them. Each is held or refused by itself: where a batch cannot be written, its calls are written one by one.
    """

    def __init__(self, store: Store, write_all: WriteAll[T]) -> None:
        self._store = store
        self._write_all = write_all
        self._queues: dict[str, _Queue[T]] = {}

    async def hold(self, org_id: str, call: T) -> None:
        """Return when the hold is durable. Raises what `write_all` raises for this call alone, or StorageUnavailable.

        When the caller is cancelled, the hold may be written nevertheless.
        """
        queue = self._queues.setdefault(org_id, _Queue())
        future = asyncio.get_running_loop().create_future()
        queue.waiting.append((call, future))
        if queue.task is None:
            queue.task = asyncio.create_task(self._write_until_empty(org_id, queue), name="hold for chats")
        await future

    async def _write_until_empty(self, org_id: str, queue: _Queue[T]) -> None:
        try:
            while queue.waiting:
                batch = [item for item in queue.waiting[:_MAX_BATCH] if not item[1].cancelled()]
                del queue.waiting[:_MAX_BATCH]
                if batch:
                    await self._write_batch(org_id, batch)
        finally:
            del self._queues[org_id]
            for _, future in queue.waiting:  # this task was cancelled
                future.cancel()

    async def _write_batch(self, org_id: str, batch: Sequence[tuple[T, asyncio.Future[None]]]) -> None:
        try:
            failure = await self._write(org_id, [call for call, _ in batch])
            is_for_all = failure is None or isinstance(failure, StorageUnavailable) or len(batch) == 1
            for call, future in batch:
                _set_outcome(future, failure if is_for_all else await self._write(org_id, [call]))
        finally:
            for _, future in batch:
                future.cancel()  # those without an outcome: this task was cancelled

    async def _write(self, org_id: str, calls: Sequence[T]) -> Exception | None:
        """Write the holds of calls in one transaction. Returns what prevented it."""
        try:
            await self._store.write(partial(self._write_all, calls), org_id=org_id)
        except Exception as error:
            return error
        return None


def _set_outcome(future: asyncio.Future[None], failure: Exception | None) -> None:
    if future.done():  # its caller was cancelled
        return
    if failure is None:
        future.set_result(None)
    elif isinstance(failure, StorageUnavailable):  # each caller gets its own, which it may change
        own = StorageUnavailable(failure.message, should_retry=failure.should_retry)
        own.__cause__ = failure
        future.set_exception(own)
    else:
        future.set_exception(failure)
