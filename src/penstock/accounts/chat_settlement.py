"""Book chat calls: money reserved before they are sent, many settled in one transaction after they were answered."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec
import structlog

from penstock.accounts import limits, requests, transfers
from penstock.clock import Clock
from penstock.errors import InternalError, StorageUnavailable
from penstock.schema import SLOT_MS, Call, Request
from penstock.store.base import Row, Store, Transaction
from penstock.values import ZERO, Nanos, first_id

log = structlog.get_logger()
_FRESH_SECONDS = 1.0
_RETRY_SECONDS = 0.5
_GATHER_SECONDS = 0.02
_RECOVERED = 1000


class _BookedBefore(Exception):
    """Some of a batch are in the store already: the commit that nobody was told of had landed."""


class Entry(msgspec.Struct, frozen=True):
    """A chat call that money is set aside for."""

    call: Call
    request: Request
    hold: Nanos
    modality: str | None
    in_store: bool  # the hold is a row that other processes see; otherwise it is in our memory


class Ending(msgspec.Struct):
    """How an entry ended."""

    entry: Entry
    status: str
    cost: Nanos
    duration_ms: int
    response_bytes: int
    error_code: str | None = None
    error_message: str | None = None


@dataclass(slots=True)
class _Account:
    """What this process knows of a prepaid balance; never more than there is."""

    available: int = 0
    read_at: float = -1e9  # monotonic
    reserved: int = 0  # by chat calls under way
    leaving: int = 0  # by holds that are on their way into the store

    @property
    def free(self) -> int:
        return self.available - self.reserved - self.leaving


@dataclass(slots=True)
class ChatSettlement:
    """Where one process alone serves a database, holds of chat calls can live in memory: nobody else could spend the
    money meanwhile, and a crash forgets hold and call together. Where several do, or where the key has limits that
    must be counted, the hold is a row like any other.
    """

    store: Store
    clock: Clock
    accounts: dict[str, _Account] = field(default_factory=dict)
    endings: list[Ending] = field(default_factory=list)
    sizes: list[tuple[str, str, int]] = field(default_factory=list)  # of answers: organization, request, bytes
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    trouble: bool = False  # the last settlement failed: nothing new is sent until one succeeds
    _under_way: list[Ending] = field(default_factory=list)  # handed to the store, not yet known to be durable
    _task: asyncio.Task[None] | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _stopping: bool = False

    def reserved(self, org_id: str) -> Nanos:
        """What chat calls under way may still cost; holds in the store leave that much alone."""
        account = self.accounts.get(org_id)
        return Nanos(account.reserved) if account else ZERO

    async def open(self, call: Call, request: Request, hold: Nanos, modality: str | None) -> Entry:
        if self.trouble:
            raise StorageUnavailable("There is nowhere to keep the record of this request.", should_retry=True)
        caller = call.caller
        if self.store.dialect == "postgres" or caller.is_limited:
            await self.store.write(lambda tx: self._begin(tx, call, request, hold, modality))
            return Entry(call, request, hold, modality, in_store=True)
        if caller.prepaid:
            account = await self._account(caller.org_id, hold)
            account.reserved += hold
        return Entry(call, request, hold, modality, in_store=False)

    async def _begin(self, tx: Transaction, call: Call, request: Request, hold: Nanos, modality: str | None) -> None:
        if call.caller.is_limited:
            await limits.check(tx, call.caller, hold, self.clock.now_ms())
        org_id = call.caller.org_id
        await transfers.hold(tx, org_id, call.id, hold, call.at_ms, reserved=self.reserved(org_id))
        await requests.begin(tx, call, request, hold, status="processing", modality=modality)

    async def _account(self, org_id: str, hold: Nanos) -> _Account:
        """An account that can bear the hold."""
        account = self.accounts.setdefault(org_id, _Account())
        if self.clock.monotonic() - account.read_at < _FRESH_SECONDS and account.free >= hold:
            return account
        await self._read(account, org_id)
        if account.free < hold:
            # What is committed a moment before its writer hears of it is counted twice; behind the writer's queue it
            # is not.
            await self.store.write(lambda tx: tx.one("get_balance", org_id=org_id))
            await self._read(account, org_id)
        if account.free < hold:
            raise transfers.insufficient_balance(hold, Nanos(max(0, account.free)))
        return account

    async def _read(self, account: _Account, org_id: str) -> None:
        row = await self.store.one("get_balance", org_id=org_id)
        waiting = sum(one.cost for one in (*self._under_way, *self.endings) if one.entry.call.caller.org_id == org_id)
        account.available = (int(row["available"]) if row else 0) - waiting
        account.read_at = self.clock.monotonic()

    @contextmanager
    def leaving(self, org_id: str, amount: Nanos) -> Iterator[None]:
        """While a hold is on its way into the store: neither there for others to see nor still to be spent."""
        account = self.accounts.setdefault(org_id, _Account())
        account.leaving += amount
        try:
            yield
        finally:
            account.leaving -= amount
            account.read_at = -1e9

    def close(self, ending: Ending) -> None:
        """Book it with the next transaction; nobody waits for that."""
        entry = ending.entry
        if not entry.in_store and entry.call.caller.prepaid:
            account = self.accounts[entry.call.caller.org_id]
            account.reserved -= entry.hold
            account.available -= ending.cost
        self.endings.append(ending)
        self.ended.set()

    def sized(self, org_id: str, request_id: str, size_bytes: int) -> None:
        """How large an answer was, which only who sends it knows; written with the next transaction."""
        self.sizes.append((org_id, request_id, size_bytes))
        self.ended.set()

    # ------------------------------------------------------------------------------------------------------ the books

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="settle chats")

    async def stop(self) -> None:
        """A transaction under way is let finish: broken off, nobody would know whether it landed."""
        self._stopping = True
        self.ended.set()
        if self._task:
            await self._task

    async def catch_up(self) -> None:
        """Write what waits now, and do not wait for more."""
        if self._waits and not self.trouble:  # in trouble `_run` tries again, and not everybody who asks
            with suppress(StorageUnavailable):  # the question itself will say so
                await asyncio.shield(asyncio.create_task(self._flush()))

    @property
    def _waits(self) -> bool:
        return bool(self._under_way or self.endings or self.sizes)

    async def _run(self) -> None:
        while True:
            await self.ended.wait()
            if not self._stopping:
                # On a quiet gateway this makes one transaction of what would have been several.
                await asyncio.sleep(_GATHER_SECONDS)
            try:
                await self._flush()
            except StorageUnavailable:
                log.warning("chat calls not settled yet: storage unavailable", waiting=len(self._under_way))
                if self._stopping:
                    return
                await self.clock.sleep(_RETRY_SECONDS)
            if self._stopping and not self._waits:
                return

    async def _flush(self) -> None:
        async with self._turn:
            try:
                await self._write_all()
            except StorageUnavailable:
                self.trouble = True
                self.ended.set()
                raise
            self.trouble = False

    async def _write_all(self) -> None:
        """Everything that has ended so far, in one transaction."""
        self.ended.clear()
        self._under_way += self.endings
        self.endings = []
        sizes = self.sizes.copy()  # more may come while these are written
        if not self._waits:
            return
        try:
            await self.store.write(partial(self._settle, self._under_way, sizes))
        except StorageUnavailable:
            raise
        except _BookedBefore:
            await self._settle_apart(sizes)
        except Exception:
            log.exception("a batch of chat calls cannot be settled as one", calls=len(self._under_way))
            await self._settle_apart(sizes)
        self._under_way = []
        del self.sizes[: len(sizes)]

    async def _settle_apart(self, sizes: list[tuple[str, str, int]]) -> None:
        """One by one, so that a call which cannot be booked takes no other with it."""
        for endings in ([], *([one] for one in self._under_way)):
            try:
                await self.store.write(partial(self._settle, endings, [] if endings else sizes))
            except StorageUnavailable:  # all of them again, then: those that are booked already stay as they are
                raise
            except Exception:
                lost = [(one.entry.call.id, one.cost) for one in endings]
                log.exception("a chat call cannot be settled", ids_and_nanos=lost)

    async def _settle(self, endings: list[Ending], sizes: list[tuple[str, str, int]], tx: Transaction) -> None:
        """Balances and slots are changed once for all calls of an organization, not once for each."""
        for org_id, request_id, size_bytes in sizes:
            await tx.run("set_response_bytes", id=request_id, org_id=org_id, response_bytes=size_bytes)
        now = self.clock.now_ms()
        for ending in endings:
            if ending.entry.in_store:
                await self._end(tx, ending, now)
        await self._book([one for one in endings if not one.entry.in_store], tx, now)

    async def _book(self, endings: list[Ending], tx: Transaction, now: int) -> None:
        """Calls that the store hears of for the first time."""
        if not endings:
            return
        if await requests.write_ended(tx, [_record(one) for one in endings]) < len(endings):
            if len(endings) > 1:
                raise _BookedBefore
            return
        charges, used = [], defaultdict[tuple[str, int, str, str], list[int]](lambda: [0, 0])
        for ending in endings:
            call = ending.entry.call
            org_id = call.caller.org_id
            if ending.status == "completed" or ending.cost:
                charges.append((org_id, call.id, ending.cost))
            slot = used[org_id, call.at_ms // SLOT_MS, call.caller.key_id, ending.status]
            slot[0] += 1
            slot[1] += ending.cost
        if charges:
            await transfers.capture_reserved(tx, charges, now)
        for (org_id, number, key_id, status), (count, cost) in used.items():
            await requests.count(tx, org_id, number, key_id, status, count, cost)

    async def _end(self, tx: Transaction, ending: Ending, now: int) -> None:
        entry = ending.entry
        org_id, request_id = entry.call.caller.org_id, entry.call.id
        ended = await requests.end(
            tx,
            request_id,
            org_id,
            ending.status,
            now,
            cost=ending.cost,
            duration_ms=ending.duration_ms,
            error_code=ending.error_code,
            error_message=ending.error_message,
            response_bytes=ending.response_bytes,
        )
        if ended and (ending.status == "completed" or ending.cost):
            await transfers.capture(tx, org_id, request_id, entry.hold, ending.cost, now)
        elif ended:
            await transfers.release(tx, org_id, request_id, entry.hold, now)

    async def recover(self, before_ms: int) -> int:
        """Give back what was held for calls whose process died while it answered them."""
        found = 0
        high = first_id("req", before_ms)
        for org in await self.store.slow("list_orgs"):
            rows = await self.store.slow("list_abandoned_requests", org_id=org["id"], high=high, limit=_RECOVERED)
            found += len(rows)
            if rows:
                await self.store.write(partial(self._give_back, rows))
        return found

    async def _give_back(self, rows: list[Row], tx: Transaction) -> None:
        problem, now = InternalError("The gateway was interrupted while it answered."), self.clock.now_ms()
        for row in rows:
            org_id, code, words = row["org_id"], problem.code, problem.message
            ended = await requests.end(
                tx, row["id"], org_id, "upstream_failure", now, error_code=code, error_message=words
            )
            if ended:
                await transfers.release(tx, org_id, row["id"], Nanos(row["hold"]), now)


def _record(ending: Ending) -> Row:
    return requests.ended(
        ending.entry.call,
        ending.entry.request,
        modality=ending.entry.modality,
        status=ending.status,
        cost=ending.cost,
        duration_ms=ending.duration_ms,
        error_code=ending.error_code,
        error_message=ending.error_message,
        response_bytes=ending.response_bytes,
    )
