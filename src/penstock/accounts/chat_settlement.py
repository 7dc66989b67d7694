"""Reserve money for chat calls, and record and charge the ended ones in batches."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec
import structlog

from penstock.accounts import limits, transfers
from penstock.accounts.payloads import Payload, add_payload
from penstock.accounts.requests import (
    RequestEnd,
    Usage,
    add_ended_requests,
    count_usage,
    end_request,
    ended_request,
    open_request,
)
from penstock.clock import Clock
from penstock.errors import StorageUnavailable, nothing_sent
from penstock.schema import SLOT_MS, Call, Request
from penstock.store.base import Row, Store, Transaction
from penstock.store.waiting import retry_while_unavailable
from penstock.values import ZERO, Nanos

log = structlog.get_logger()
_NEVER = -1e9
_BALANCE_SECONDS = 1.0  # how long a balance that was read is used
_RETRY_SECONDS = 0.5
_BATCH_SECONDS = 0.02  # how long ended calls are collected before they are written


class _AlreadyWritten(Exception):
    """Some calls of a batch are stored already: an earlier commit succeeded but was not confirmed."""


class Reservation(msgspec.Struct, frozen=True):
    """The money that is reserved for a chat call."""

    call: Call
    request: Request
    amount: Nanos
    modality: str | None
    in_store: bool  # a hold in the store, which other processes see; otherwise in the memory of this process


class EndedCall(msgspec.Struct, frozen=True):
    """A chat call that has ended and is not written yet."""

    reservation: Reservation
    end: RequestEnd  # its cost is what is charged
    payload: Payload | None = None  # where the settings ask to store it
    loss: Nanos = ZERO  # what the call cost beyond the reserved amount

    @property
    def org_id(self) -> str:
        return self.reservation.call.caller.org_id

    @property
    def id(self) -> str:
        return self.reservation.call.id

    @property
    def is_charged(self) -> bool:
        return self.end.status == "completed" or self.end.cost > 0

    @property
    def usage(self) -> Usage:
        call = self.reservation.call
        return Usage(self.org_id, call.caller.key_id, self.end.status, call.at_ms // SLOT_MS, self.end.cost)

    @property
    def hold_end(self) -> transfers.EndedHold:
        cost = Nanos(self.end.cost + self.loss) if self.is_charged else None
        return transfers.EndedHold(self.org_id, self.id, self.reservation.amount, cost)


class _ResponseSize(msgspec.Struct, frozen=True):
    org_id: str
    id: str
    size_bytes: int


@dataclass(slots=True)
class _Balance:
    """What this process knows of a prepaid balance; never more than there is."""

    available: int = 0
    read_at: float = _NEVER  # monotonic time
    reserved: int = 0  # for running chat calls
    being_held: int = 0  # for holds that are being written

    @property
    def free(self) -> int:
        return self.available - self.reserved - self.being_held


@dataclass(slots=True)
class ChatSettlement:
    """Reserves money for chat calls and settles them after they ended.

    On SQLite one process alone serves the database, so money is reserved in memory: nobody else can spend it, and a
    crash forgets the reservation together with the call. On Postgres, or for a key with limits that must be counted,
    the reservation is a hold in the store.
    """

    store: Store
    clock: Clock
    process_id: str  # of this process, which `chat_leases` keeps alive
    is_blocked: bool = False  # the last batch could not be written; new calls are refused until one is
    ended_calls: list[EndedCall] = field(default_factory=list)  # not yet handed to the store
    _response_sizes: list[_ResponseSize] = field(default_factory=list)
    _balances: dict[str, _Balance] = field(default_factory=dict)
    _batch: list[EndedCall] = field(default_factory=list)  # handed to the store, not yet known to be durable
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _flush_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _task: asyncio.Task[None] | None = None
    _stopping: bool = False

    # ---------------------------------------------------------------------------------------------------- reservations

    async def reserved_amount(self, tx: Transaction, org_id: str) -> Nanos:
        """Return what the chat calls of this process have cost or may cost beyond what the store has charged already;
        a hold in this transaction must leave it available.
        """
        balance = self._balances.get(org_id)
        if balance is None:
            return ZERO
        unwritten = self._unwritten_costs(org_id)
        if unwritten:  # some may be in the store, if their batch is committed but not yet confirmed to this task
            ids = msgspec.json.encode(list(unwritten)).decode()
            for row in await tx.all("list_stored_requests", org_id=org_id, ids=ids):
                del unwritten[row["id"]]
        return Nanos(balance.reserved + sum(unwritten.values()))

    def _unwritten_costs(self, org_id: str) -> dict[str, Nanos]:
        """Return the cost of each ended call of an organization whose charge is not known to be in the store."""
        return {
            ended.reservation.call.id: ended.end.cost
            for ended in (*self._batch, *self.ended_calls)
            if ended.org_id == org_id and not ended.reservation.in_store
        }

    async def reserve(self, call: Call, request: Request, amount: Nanos, modality: str | None) -> Reservation:
        """Reserve the highest possible cost of a call before it is sent.

        Raises InsufficientBalance, RateLimited, or StorageUnavailable while ended calls cannot be written.
        """
        if self.is_blocked:
            raise StorageUnavailable("The database cannot be written, so no call is accepted.", should_retry=True)
        caller = call.caller
        in_store = self.store.dialect == "postgres" or caller.is_limited
        reservation = Reservation(call, request, amount, modality, in_store)
        if in_store:
            with self.holding(caller.org_id, amount), nothing_sent():
                await self.store.write(partial(self._hold, reservation), org_id=caller.org_id)
        elif caller.prepaid:
            balance = await self._sufficient_balance(caller.org_id, amount)
            balance.reserved += amount
        return reservation

    async def _hold(self, reservation: Reservation, tx: Transaction) -> None:
        call = reservation.call
        org_id = call.caller.org_id
        amount = reservation.amount
        if call.caller.is_limited:
            await limits.check_limits(tx, call.caller, amount, self.clock.now_ms())
        reserved = await self.reserved_amount(tx, org_id)
        await open_request(
            tx,
            call,
            reservation.request,
            amount,
            status="processing",
            modality=reservation.modality,
            process_id=self.process_id,
        )
        await transfers.hold(tx, org_id, call.id, amount, call.at_ms, reserved=reserved)

    async def _sufficient_balance(self, org_id: str, amount: Nanos) -> _Balance:
        """Return a balance with the amount free; raise InsufficientBalance if there is less."""
        balance = self._balances.setdefault(org_id, _Balance())
        if self.clock.monotonic() - balance.read_at < _BALANCE_SECONDS and balance.free >= amount:
            return balance
        await self._read_balance(balance, org_id)
        if balance.free < amount:
            # A charge that is committed but not yet confirmed to its writer is counted twice. A write queues behind
            # that commit, so the second read counts it once.
            await self.store.write(lambda tx: tx.one("get_balance", org_id=org_id))
            await self._read_balance(balance, org_id)
        if balance.free < amount:
            raise transfers.insufficient_balance(amount, Nanos(max(0, balance.free)))
        return balance

    async def _read_balance(self, balance: _Balance, org_id: str) -> None:
        row = await self.store.one("get_balance", org_id=org_id)
        unwritten = self._unwritten_costs(org_id).values()
        balance.available = (int(row["available"]) if row else 0) - sum(unwritten)
        balance.read_at = self.clock.monotonic()

    @contextmanager
    def holding(self, org_id: str, amount: Nanos) -> Iterator[None]:
        """Keep chat calls from spending an amount while a hold of it is being written to the store."""
        balance = self._balances.setdefault(org_id, _Balance())
        balance.being_held += amount
        try:
            yield
        finally:
            balance.being_held -= amount
            balance.read_at = _NEVER

    # --------------------------------------------------------------------------------------------------------- batches

    def settle_later(self, reservation: Reservation, end: RequestEnd, payload: Payload | None = None) -> None:
        """Free the reservation, and record and charge the call, and store its payload, with the next batch.

        A cost above the reserved amount is not charged but recorded as a loss.
        """
        caller = reservation.call.caller
        loss = ZERO
        if end.cost > reservation.amount:
            loss = Nanos(end.cost - reservation.amount)
            end = msgspec.structs.replace(end, cost=reservation.amount)
            log.warning("cost above hold", request_id=reservation.call.id, loss_nanos=loss)
        if not reservation.in_store and caller.prepaid:
            balance = self._balances[caller.org_id]
            balance.reserved -= reservation.amount
            balance.available -= end.cost
        self.ended_calls.append(EndedCall(reservation, end, payload, loss))
        self._wake.set()

    def set_response_size(self, org_id: str, request_id: str, size_bytes: int) -> None:
        """Write the size of a response with the next batch; it is known only after the request has ended."""
        self._response_sizes.append(_ResponseSize(org_id, request_id, size_bytes))
        self._wake.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="settle chats")

    async def stop(self) -> None:
        """Write what waits and end the task. A transaction that is running is not cancelled."""
        self._stopping = True
        self._wake.set()
        if self._task:
            await self._task

    async def catch_up(self) -> None:
        """Write what waits now instead of after the usual delay. Does nothing while the store is unavailable."""
        if self._has_unwritten and not self.is_blocked:
            with suppress(StorageUnavailable):  # the caller's own query will raise it
                await asyncio.shield(asyncio.create_task(self._flush()))

    @property
    def _has_unwritten(self) -> bool:
        return bool(self._batch or self.ended_calls or self._response_sizes)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            if not self._stopping:
                await asyncio.sleep(_BATCH_SECONDS)
            try:
                await retry_while_unavailable(
                    self.clock, self._flush, pause_seconds=_RETRY_SECONDS, gives_up=lambda: self._stopping
                )
            except StorageUnavailable:
                log.warning("stopped before chat calls were settled: storage unavailable", waiting=len(self._batch))
                return
            if self._stopping and not self._has_unwritten:
                return

    async def _flush(self) -> None:
        async with self._flush_lock:
            try:
                await self._write_all()
            except StorageUnavailable:
                self.is_blocked = True
                self._wake.set()
                raise
            self.is_blocked = False

    async def _write_all(self) -> None:
        """Write everything that has ended so far in one transaction."""
        self._wake.clear()
        self._batch += self.ended_calls
        self.ended_calls = []
        sizes = self._response_sizes.copy()  # more may be added while these are written
        if not self._has_unwritten:
            return
        try:
            await self.store.write(partial(self._write_batch, self._batch, sizes))
        except StorageUnavailable:
            raise
        except _AlreadyWritten:
            await self._write_one_by_one(sizes)
        except Exception:
            log.exception("a batch of chat calls cannot be settled as one", calls=len(self._batch))
            await self._write_one_by_one(sizes)
        self._batch = []
        del self._response_sizes[: len(sizes)]

    async def _write_one_by_one(self, sizes: list[_ResponseSize]) -> None:
        """Write each call in its own transaction, so that one which cannot be written does not block the others.

        A StorageUnavailable ends this; the next try writes all again, and those that are stored already stay as they
        are.
        """
        await self._write_or_log("response sizes", partial(self._write_batch, [], sizes))
        for ended in self._batch:
            request_id = ended.reservation.call.id
            if await self._write_or_log(request_id, partial(self._write_batch, [ended], [])):
                continue
            if await self._write_or_log(request_id, partial(self._record_uncharged, ended)):
                log.error("a chat call cannot be charged and is recorded as a loss", request_id=request_id)
            else:
                log.error("a chat call cannot be recorded", request_id=request_id, cost_nanos=ended.end.cost)

    async def _write_or_log(self, name: str, work: Callable[[Transaction], Awaitable[None]]) -> bool:
        """Write, and return whether that succeeded. Raises StorageUnavailable."""
        try:
            await self.store.write(work)
        except StorageUnavailable:
            raise
        except Exception:
            log.exception("settlement failed", of=name)
            return False
        return True

    # ---------------------------------------------------------------------------------------------------- transactions

    async def _write_batch(self, batch: list[EndedCall], sizes: list[_ResponseSize], tx: Transaction) -> None:
        """Write sizes and ended calls in the order of docs/decisions/lock-order.md: requests, usage slots, money."""
        now = self.clock.now_ms()
        held = await self._update_requests(tx, [ended for ended in batch if ended.reservation.in_store], sizes)
        added = await self._add_requests(tx, [ended for ended in batch if not ended.reservation.in_store])
        for ended in batch:
            if ended.payload:
                await add_payload(tx, ended.org_id, ended.id, ended.payload)
        await count_usage(tx, [ended.usage for ended in (*held, *added)])
        for ended in added:
            if ended.loss:
                await transfers.record_loss(tx, ended.org_id, ended.id, ended.loss, now)
        await transfers.end_holds(tx, [ended.hold_end for ended in held], now)
        await transfers.capture_reserved(tx, _charges(added), now)

    async def _update_requests(
        self, tx: Transaction, held: list[EndedCall], sizes: list[_ResponseSize]
    ) -> list[EndedCall]:
        """Store sizes, and end requests that are in the store; return those that had not ended before."""
        written: list[EndedCall] = []
        changes: list[EndedCall | _ResponseSize] = [*held, *sizes]
        for change in sorted(changes, key=lambda change: change.id):
            if isinstance(change, _ResponseSize):
                await tx.run("set_response_bytes", id=change.id, org_id=change.org_id, response_bytes=change.size_bytes)
            elif await end_request(tx, change.org_id, change.id, change.end):
                written.append(change)
        return written

    async def _add_requests(self, tx: Transaction, batch: list[EndedCall]) -> list[EndedCall]:
        """Add requests and return the new ones. Raises _AlreadyWritten if some of several are stored already."""
        rows = [_request_row(ended) for ended in sorted(batch, key=lambda ended: ended.id)]
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
        if ended.payload:
            await add_payload(tx, ended.org_id, ended.id, ended.payload)
        await count_usage(tx, [part.usage])
        if loss := Nanos(ended.end.cost + ended.loss - charged):
            await transfers.record_loss(tx, ended.org_id, ended.id, loss, now)
        await transfers.capture_reserved(tx, [] if in_store else _charges(written), now)


def _request_row(ended: EndedCall) -> Row:
    reservation = ended.reservation
    return ended_request(reservation.call, reservation.request, reservation.modality, ended.end)


def _charges(calls: list[EndedCall]) -> list[tuple[str, str, Nanos]]:
    return [(ended.org_id, ended.id, ended.end.cost) for ended in calls if ended.is_charged]
