"""Record and charge chat calls that have ended, in batches which several organizations share."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

import msgspec
import structlog

from penstock.accounts import transfers
from penstock.accounts.chat_late_ends import LateEnd, log_losses, record_late_ends
from penstock.accounts.chat_reservations import ChatReservations, Reservation
from penstock.accounts.labels import encode_labels
from penstock.accounts.payloads import Leftovers, add_leftovers
from penstock.accounts.requests import (
    RequestEnd,
    RequestUsage,
    add_ended_requests,
    count_usage,
    ended_request_row,
    request_end_values,
)
from penstock.clock import Clock
from penstock.errors import Problem, StorageUnavailable
from penstock.schema import SLOT_MS
from penstock.store.base import Row, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.waiting import retry_while_unavailable
from penstock.values import ZERO, Nanos, OrgId

log = structlog.get_logger()
_RETRY_SECONDS = 0.5
BATCH_SECONDS = 0.02  # how long ended calls are collected, at most, before they are written
_MOST_BATCHES = 32  # of organizations, in one transaction


class _AlreadyWritten(Exception):
    """Some calls of a batch are stored already: an earlier commit succeeded but was not confirmed."""


class EndedCall(msgspec.Struct, frozen=True):
    """A chat call that has ended and is not written yet."""

    reservation: Reservation
    end: RequestEnd  # its cost is what is charged
    leftovers: Leftovers | None = None  # what is stored beside its record
    loss: Nanos = ZERO  # what the provider bills and the caller does not pay

    @property
    def org_id(self) -> OrgId:
        return self.reservation.call.caller.org_id

    @property
    def id(self) -> str:
        return self.reservation.call.id

    @property
    def is_charged(self) -> bool:
        return self.end.status == "completed" or self.end.cost > 0

    @property
    def usage(self) -> RequestUsage:
        call = self.reservation.call
        end = self.end
        request = self.reservation.request
        labels = encode_labels(request.labels) if request.labels else None
        slot = call.at_ms // SLOT_MS
        key = (call.caller.org_id, call.caller.key_id)
        return RequestUsage(*key, end.status, slot, end.cost, labels, end.account_id, end.vendor_cost)

    @property
    def hold_end(self) -> transfers.EndedHold:
        cost = self.end.cost if self.is_charged else None
        return transfers.EndedHold(self.org_id, self.id, self.reservation.amount, cost)

    @property
    def late_end(self) -> LateEnd:
        return LateEnd(self.org_id, self.id, Nanos(self.end.cost + self.loss))


class _ResponseSize(msgspec.Struct, frozen=True):
    org_id: OrgId
    id: str
    size_bytes: int


@dataclass(slots=True)
class _Queue:
    """What waits to be written for one organization."""

    org_id: OrgId
    ended_calls: list[EndedCall] = field(default_factory=list)
    response_sizes: list[_ResponseSize] = field(default_factory=list)
    is_blocked: bool = False  # the last batch could not be written
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # only one task writes
    task: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        return not self.ended_calls and not self.response_sizes


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is written for one organization at a time."""

    ended_calls: list[EndedCall]
    response_sizes: list[_ResponseSize]


@dataclass(slots=True)
class ChatSettlement:
    """Settles chat calls after they have ended.

    Each organization has its own queue. Batches of several share transactions, unless one of them cannot be written or
    its rows are locked by somebody else: see `WriteGroups`.
    """

    store: Store
    clock: Clock
    reservations: ChatReservations
    _queues: dict[OrgId, _Queue] = field(default_factory=dict)
    _batches: WriteGroups[_Batch, list[LateEnd]] = field(init=False)
    _is_running: bool = False
    _is_stopping: bool = False

    def __post_init__(self) -> None:
        self._batches = WriteGroups(self.store, self._write_batches, _MOST_BATCHES)

    def settle_later(
        self, reservation: Reservation, end: RequestEnd, leftovers: Leftovers | None = None, *, loss: Nanos = ZERO
    ) -> None:
        """Free the reservation, and record and charge the call, and store what it leaves, with the next batch.

        A cost above the reserved amount is not charged but recorded as a loss, in addition to `loss`.
        """
        if (excess := Nanos(end.cost - reservation.amount)) > 0:
            end = msgspec.structs.replace(end, cost=reservation.amount)
            log.warning("cost above hold", request_id=reservation.call.id, loss_nanos=excess)
            loss = Nanos(loss + excess)
        self.reservations.end(reservation, end.cost)
        self.add(EndedCall(reservation, end, leftovers, loss))

    def release_later(self, unconfirmed: Reservation, problem: Problem) -> None:
        """Release the hold of a call that was not sent, with the next batch. It is not known whether the hold is in the
        store; without it this changes nothing.
        """
        end = RequestEnd("cancelled", error_code=problem.code, error_message=problem.message)
        self.add(EndedCall(unconfirmed, end))

    def add(self, ended: EndedCall) -> None:
        """Write a call with the next batch of its organization."""
        queue = self._queue(ended.org_id)
        queue.ended_calls.append(ended)
        self._start_writing(queue)

    def set_response_size(self, org_id: OrgId, request_id: str, size_bytes: int) -> None:
        """Write the size of a response with the next batch; it is known only after the request has ended."""
        queue = self._queue(org_id)
        queue.response_sizes.append(_ResponseSize(org_id, request_id, size_bytes))
        self._start_writing(queue)

    def start(self) -> None:
        self._is_running = True
        for queue in self._queues.values():
            self._start_writing(queue)

    async def stop(self) -> None:
        """Write what waits and end the tasks. A transaction that is running is not cancelled."""
        self._is_stopping = True
        while tasks := [queue.task for queue in self._queues.values() if queue.task]:
            await asyncio.gather(*tasks)
        self._is_running = False

    def is_waiting(self, org_id: OrgId) -> bool:
        """Whether calls of an organization have ended and wait to be written."""
        queue = self._queues.get(org_id)
        return queue is not None and bool(queue.ended_calls) and not queue.is_blocked

    async def catch_up(self, org_id: OrgId) -> None:
        """Write what waits for an organization now instead of after the usual delay. Does nothing while that fails."""
        queue = self._queues.get(org_id)
        if queue and not queue.is_empty and not queue.is_blocked:
            with suppress(StorageUnavailable):  # the caller's own query will raise it
                await asyncio.shield(asyncio.create_task(self._flush(queue)))

    # --------------------------------------------------------------------------------------------------------- batches

    def _queue(self, org_id: OrgId) -> _Queue:
        queue = self._queues.get(org_id)
        if queue is None:
            queue = self._queues[org_id] = _Queue(org_id)
        return queue

    def _start_writing(self, queue: _Queue) -> None:
        if self._is_running and queue.task is None and not queue.is_empty:
            queue.task = asyncio.create_task(self._write_until_empty(queue), name="settle chats")

    async def _write_until_empty(self, queue: _Queue) -> None:
        try:
            while not queue.is_empty:
                if not self._is_stopping:
                    await asyncio.sleep(_seconds_to_next_batch())
                await retry_while_unavailable(
                    self.clock,
                    partial(self._flush, queue),
                    pause_seconds=_RETRY_SECONDS,
                    gives_up=lambda: self._is_stopping,
                    org_id=queue.org_id,
                )
        except StorageUnavailable:
            waiting = len(queue.ended_calls)
            log.warning("stopped before chat calls were settled: storage unavailable", waiting=waiting)
        finally:
            queue.task = None

    async def _flush(self, queue: _Queue) -> None:
        async with queue.lock:
            try:
                await self._write_all(queue)
            except StorageUnavailable:
                queue.is_blocked = self.reservations.is_blocked = True
                raise
            queue.is_blocked = self.reservations.is_blocked = False

    async def _write_all(self, queue: _Queue) -> None:
        """Write everything that has ended so far, in one transaction and together with other organizations."""
        batch = queue.ended_calls.copy()  # more may be added while these are written
        sizes = queue.response_sizes.copy()
        if not batch and not sizes:
            return
        try:
            log_losses(await self._batches.add(_Batch(batch, sizes), queue.org_id))
        except StorageUnavailable:
            raise
        except _AlreadyWritten:
            await self._write_one_by_one(queue.org_id, batch, sizes)
        except Exception:
            log.exception("a batch of chat calls cannot be settled as one", calls=len(batch))
            await self._write_one_by_one(queue.org_id, batch, sizes)
        del queue.ended_calls[: len(batch)]
        del queue.response_sizes[: len(sizes)]
        self.reservations.forget(queue.org_id, [ended.id for ended in batch])

    async def _write_one_by_one(self, org_id: OrgId, batch: list[EndedCall], sizes: list[_ResponseSize]) -> None:
        """Write each call in its own transaction, so that one which cannot be written does not block the others.

        A StorageUnavailable ends this; the next try writes all again, and those that are stored already stay as they
        are.
        """
        await self._write_or_log(org_id, "response sizes", partial(self._write_batch, [], sizes))
        for ended in batch:
            if await self._write_or_log(org_id, ended.id, partial(self._write_batch, [ended], [])):
                continue
            if await self._write_or_log(org_id, ended.id, partial(self._record_uncharged, ended)):
                log.error("a chat call cannot be charged and is recorded as a loss", request_id=ended.id)
            else:
                log.error("a chat call cannot be recorded", request_id=ended.id, cost_nanos=ended.end.cost)
                if not ended.reservation.in_store:  # otherwise its hold shows it
                    await self._write_or_log(org_id, ended.id, partial(self._record_loss, ended))

    async def _write_or_log(
        self, org_id: OrgId, name: str, work: Callable[[Transaction], Awaitable[list[LateEnd] | None]]
    ) -> bool:
        """Write, and return whether that succeeded. Raises StorageUnavailable."""
        try:
            losses = await self.store.write(work, org_id=org_id)
        except StorageUnavailable:
            raise
        except Exception:
            log.exception("settlement failed", of=name)
            return False
        log_losses(losses or [])
        return True

    # ---------------------------------------------------------------------------------------------------- transactions

    async def _write_batches(self, tx: Transaction, batches: Sequence[_Batch]) -> list[list[LateEnd]]:
        ended_calls = [ended for batch in batches for ended in batch.ended_calls]
        sizes = [size for batch in batches for size in batch.response_sizes]
        late = {end.request_id: end for end in await self._write_batch(ended_calls, sizes, tx)}
        return [[late[ended.id] for ended in batch.ended_calls if ended.id in late] for batch in batches]

    async def _write_batch(self, batch: list[EndedCall], sizes: list[_ResponseSize], tx: Transaction) -> list[LateEnd]:
        """Write sizes and ended calls in the order of docs/decisions/lock-order.md: requests, usage slots, money."""
        now = self.clock.now_ms()
        in_store = [ended for ended in batch if ended.reservation.in_store]
        held = await self._update_requests(tx, in_store, sizes)
        added = await self._add_requests(tx, [ended for ended in batch if not ended.reservation.in_store])
        await add_leftovers(tx, [ended.leftovers for ended in batch])
        await count_usage(tx, [ended.usage for ended in (*held, *added)])
        for ended in (*held, *added):
            if ended.loss:
                await transfers.record_loss(tx, ended.org_id, ended.id, ended.loss, now)
        ended_now = {ended.id for ended in held}
        losses = await record_late_ends(tx, [ended.late_end for ended in in_store if ended.id not in ended_now], now)
        await transfers.end_holds(tx, [ended.hold_end for ended in held], now)
        await transfers.capture_reserved(tx, _charges(added), now)
        return losses

    async def _update_requests(
        self, tx: Transaction, held: list[EndedCall], sizes: list[_ResponseSize]
    ) -> list[EndedCall]:
        """Store sizes, and end requests that are in the store; return those that had not ended before."""
        ends: list[tuple[str, Row]] = [
            ("end_request", request_end_values(item.org_id, item.id, item.end)) for item in held
        ]
        size_rows = [{"id": item.id, "org_id": item.org_id, "response_bytes": item.size_bytes} for item in sizes]
        changes = ends + [("set_response_bytes", row) for row in size_rows]
        if not changes:
            return []
        changes.sort(key=lambda change: str(change[1]["id"]))
        # Only `end_request` returns rows, and only for a request that had not ended.
        ended = {values["id"] for (_, values), rows in zip(changes, await tx.each(changes), strict=True) if rows}
        return [item for item in held if item.id in ended]

    async def _add_requests(self, tx: Transaction, batch: list[EndedCall]) -> list[EndedCall]:
        """Add requests and return the new ones. Raises _AlreadyWritten if some of several are stored already."""
        rows = [_request_row(ended) for ended in batch]
        rows.sort(key=itemgetter("id"))
        if not rows or await add_ended_requests(tx, rows) == len(batch):
            return batch
        if len(batch) > 1:
            raise _AlreadyWritten
        return []

    async def _record_uncharged(self, ended: EndedCall, tx: Transaction) -> None:
        """Record a call whose cost cannot be charged: take what the balance has, and record the rest as a loss."""
        now = self.clock.now_ms()
        balance = None if ended.reservation.in_store else await tx.one("get_balance", org_id=ended.org_id)
        charged = Nanos(min(ended.end.cost, max(0, balance["available"] if balance else 0)))
        part = msgspec.structs.replace(ended, end=msgspec.structs.replace(ended.end, cost=charged), loss=ZERO)
        in_store = ended.reservation.in_store
        written = await (self._update_requests(tx, [part], []) if in_store else self._add_requests(tx, [part]))
        if not written:
            return
        await add_leftovers(tx, [ended.leftovers])
        await count_usage(tx, [part.usage])
        if loss := Nanos(ended.end.cost + ended.loss - charged):
            await transfers.record_loss(tx, ended.org_id, ended.id, loss, now)
        await transfers.capture_reserved(tx, [] if in_store else _charges(written), now)

    async def _record_loss(self, ended: EndedCall, tx: Transaction) -> None:
        """Record what a call without a record cost, also if that is nothing, so that the audit finds it."""
        loss = Nanos(ended.end.cost + ended.loss)
        await transfers.record_loss(tx, ended.org_id, ended.id, loss, self.clock.now_ms())


def _seconds_to_next_batch() -> float:
    """How long to wait for the next batch: those of all organizations begin at the same moments."""
    return BATCH_SECONDS - asyncio.get_running_loop().time() % BATCH_SECONDS


def _request_row(ended: EndedCall) -> Row:
    reservation = ended.reservation
    return ended_request_row(reservation.call, reservation.request, reservation.modality, ended.end)


def _charges(calls: list[EndedCall]) -> list[tuple[OrgId, str, Nanos]]:
    return [(ended.org_id, ended.id, ended.end.cost) for ended in calls if ended.is_charged]
