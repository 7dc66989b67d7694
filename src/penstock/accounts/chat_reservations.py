"""Reserve the highest possible cost of a chat call before it is sent: in memory, or as a hold in the store."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from penstock.accounts import limits, transfers
from penstock.accounts.labels import label_rows
from penstock.accounts.requests import new_request_row
from penstock.clock import Clock
from penstock.errors import StorageUnavailable, nothing_sent
from penstock.schema import Call, Request
from penstock.store.base import ConstraintViolated, Row, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.values import ZERO, Nanos, OrgId

_NEVER = -1e9
_MOST_HOLDS = 200  # in one transaction
_BALANCE_SECONDS = 1.0  # how long a balance that was read is used


class Reservation(msgspec.Struct, frozen=True):
    """The money that is reserved for a chat call."""

    call: Call
    request: Request
    amount: Nanos
    modality: str | None
    in_store: bool  # a hold in the store, which other processes see; otherwise in the memory of this process
    lease_id: str = ""  # of whose lease in `processes` keeps the hold; empty: that of this process

    @property
    def new_hold(self) -> transfers.NewHold:
        return transfers.NewHold(self.call.caller.org_id, self.call.id, self.amount, self.call.at_ms)


@dataclass(slots=True)
class _Balance:
    """What this process knows of a prepaid balance; never more than there is."""

    available: int = 0
    read_at: float = _NEVER  # monotonic time
    reserved: int = 0  # for running chat calls
    being_held: int = 0  # for holds that are being written
    uncharged: dict[str, Nanos] = field(default_factory=dict)  # costs of ended calls, not known to be in the store

    @property
    def free(self) -> int:
        return self.available - self.reserved - self.being_held


class _Holding:
    """A `with` block in which a hold is written to the store; see `ChatReservations.holding`."""

    __slots__ = ("_amount", "_balance")

    def __init__(self, balance: _Balance, amount: Nanos) -> None:
        self._balance = balance
        self._amount = amount

    def __enter__(self) -> None:
        self._balance.being_held += self._amount

    def __exit__(self, *exception: object) -> None:
        self._balance.being_held -= self._amount
        self._balance.read_at = _NEVER


@dataclass(slots=True)
class ChatReservations:
    """Reserves money for chat calls.

    On SQLite one process alone serves the database, so money is reserved in memory: nobody else can spend it, and a
    crash forgets the reservation together with the call. On Postgres, or for a call with limits that must be counted,
    the reservation is a hold in the store.
    """

    store: Store
    clock: Clock
    process_id: str  # of this process, which `chat_leases` keeps alive
    is_blocked: bool = False  # ended calls cannot be written, so nothing is reserved in memory for new ones
    _balances: dict[OrgId, _Balance] = field(default_factory=dict)
    _holds: WriteGroups[Reservation, None] = field(init=False)

    def __post_init__(self) -> None:
        self._holds = WriteGroups(self.store, self._hold_all, _MOST_HOLDS)

    def reserve_at_once(self, call: Call, request: Request, amount: Nanos, modality: str | None) -> Reservation | None:
        """Reserve the highest possible cost of a call in memory, if nothing has to be read or written for that."""
        caller = call.caller
        if self.store.dialect == "postgres" or caller.is_counted(request.labels) or self.is_blocked:
            return None
        if caller.prepaid:
            balance = self._balance(caller.org_id)
            if not self._is_sufficient(balance, amount):
                return None
            balance.reserved += amount
        return Reservation(call, request, amount, modality, in_store=False)

    async def reserve(self, call: Call, request: Request, amount: Nanos, modality: str | None) -> Reservation:
        """Reserve the highest possible cost of a call before it is sent.

        Raises InsufficientBalance, RateLimited, or StorageUnavailable while the store cannot be written.
        """
        caller = call.caller
        is_counted = caller.is_counted(request.labels)
        in_store = self.store.dialect == "postgres" or is_counted
        reservation = Reservation(call, request, amount, modality, in_store)
        if in_store:
            with self.holding(caller.org_id, amount), nothing_sent():
                if is_counted:
                    await self.store.write(partial(self._hold_within_limits, reservation), org_id=caller.org_id)
                else:
                    await self._holds.add(reservation, caller.org_id)
            return reservation
        if self.is_blocked:
            raise StorageUnavailable("The database cannot be written, so no call is accepted.", should_retry=True)
        if caller.prepaid:
            balance = await self._sufficient_balance(caller.org_id, amount)
            balance.reserved += amount
        return reservation

    async def hold_together(
        self, reservations: Sequence[Reservation], work: Callable[[Transaction], Awaitable[None]]
    ) -> None:
        """Hold for several calls of one caller in the transaction of `work`: for all of them or, if a limit is reached
        or the balance is too low, for none. Raises as `reserve` does.
        """
        caller = reservations[0].call.caller
        amount = Nanos(sum(reservation.amount for reservation in reservations))

        async def write(tx: Transaction) -> None:
            if caller.is_limited:
                await limits.check_limits(tx, caller, amount, self.clock.now_ms())
            await work(tx)
            await self._hold_all(tx, reservations)
            for reservation in reservations:
                if caller.is_counted(reservation.request.labels):
                    await limits.check_budgets(tx, caller, reservation.request.labels, self.clock.now_ms())

        with self.holding(caller.org_id, amount), nothing_sent():
            try:
                await self.store.write(write, org_id=caller.org_id)
            except ConstraintViolated as problem:  # of the balance: several holds are not checked before
                if problem.kind != "check":
                    raise
                row = await self.store.one("get_balance", org_id=caller.org_id)
                raise transfers.insufficient_balance(amount, Nanos(row["available"] if row else 0)) from None

    def end(self, reservation: Reservation, cost: Nanos) -> None:
        """Free a reservation. Its cost counts as spent until `forget` is told that the store has charged it."""
        caller = reservation.call.caller
        if not reservation.in_store and caller.prepaid:
            balance = self._balances[caller.org_id]
            balance.reserved -= reservation.amount
            balance.available -= cost
            balance.uncharged[reservation.call.id] = cost

    def forget(self, org_id: OrgId, request_ids: Iterable[str]) -> None:
        """Stop counting the costs of ended calls: they are charged in the store."""
        if balance := self._balances.get(org_id):
            for request_id in request_ids:
                balance.uncharged.pop(request_id, None)

    def holding(self, org_id: OrgId, amount: Nanos) -> _Holding:
        """Keep chat calls from spending an amount while a hold of it is being written to the store."""
        return _Holding(self._balance(org_id), amount)

    def _balance(self, org_id: OrgId) -> _Balance:
        balance = self._balances.get(org_id)
        if balance is None:
            balance = self._balances[org_id] = _Balance()
        return balance

    async def hold_all(self, tx: Transaction, holds: Sequence[transfers.NewHold]) -> None:
        """Hold amounts for requests, and leave what chat calls of this process have reserved; see `transfers`."""
        org_ids = dict.fromkeys(new.org_id for new in holds)
        await transfers.hold_all(tx, holds, {org_id: await self._reserved_amount(tx, org_id) for org_id in org_ids})

    async def _reserved_amount(self, tx: Transaction, org_id: OrgId) -> Nanos:
        """What the chat calls of this process have cost or may cost beyond what the store has charged already; a hold
        in this transaction must leave it available.
        """
        balance = self._balances.get(org_id)
        if balance is None:
            return ZERO
        uncharged = dict(balance.uncharged)
        if uncharged:  # some may be in the store, if their batch is committed but not yet confirmed to this task
            ids = msgspec.json.encode(list(uncharged)).decode()
            for row in await tx.all("list_stored_requests", org_id=org_id, ids=ids):
                del uncharged[row["id"]]
        return Nanos(balance.reserved + sum(uncharged.values()))

    async def _hold_within_limits(self, reservation: Reservation, tx: Transaction) -> None:
        """Hold for a call whose key, organization or labels have limits, which are counted call by call."""
        caller = reservation.call.caller
        if caller.is_limited:
            await limits.check_limits(tx, caller, reservation.amount, self.clock.now_ms())
        await self._hold_all(tx, [reservation])
        await limits.check_budgets(tx, caller, reservation.request.labels, self.clock.now_ms())

    async def _hold_all(self, tx: Transaction, reservations: Sequence[Reservation]) -> list[None]:
        """Hold for calls: for all of them or, if a balance is too low, for none."""
        in_order = sorted(reservations, key=lambda reservation: reservation.call.id)
        rows = [self._request_row(reservation) for reservation in in_order]
        await tx.put_many("add_request", rows)
        if labels := label_rows(rows):
            await tx.put_many("add_request_label", labels)
        await self.hold_all(tx, [reservation.new_hold for reservation in in_order])
        return [None] * len(in_order)

    def _request_row(self, reservation: Reservation) -> Row:
        return new_request_row(
            reservation.call,
            reservation.request,
            reservation.amount,
            status="processing",
            modality=reservation.modality,
            process_id=reservation.lease_id or self.process_id,
        )

    async def _sufficient_balance(self, org_id: OrgId, amount: Nanos) -> _Balance:
        """Return a balance with the amount free; raise InsufficientBalance if there is less."""
        balance = self._balance(org_id)
        if self._is_sufficient(balance, amount):
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

    def _is_sufficient(self, balance: _Balance, amount: Nanos) -> bool:
        """Whether a balance that was read a moment ago has the amount free."""
        return self.clock.monotonic() - balance.read_at < _BALANCE_SECONDS and balance.free >= amount

    async def _read_balance(self, balance: _Balance, org_id: OrgId) -> None:
        row = await self.store.one("get_balance", org_id=org_id)
        balance.available = (int(row["available"]) if row else 0) - sum(balance.uncharged.values())
        balance.read_at = self.clock.monotonic()
