"""Move money between accounts in double entry: credit, hold, capture, release, loss."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from penstock.errors import InsufficientBalance
from penstock.store.base import Change, Row, Store, Transaction
from penstock.values import ZERO, Nanos, OrgId, dollars, new_id

# Accounts that belong to no organization.
FUNDING = "funding"
REVENUE = "revenue"
PLATFORM_LOSS = "platform_loss"
PROVIDERS = "providers"


def available_account(org_id: OrgId) -> str:
    """Return the account of what an organization may spend."""
    return f"{org_id}:available"


def held_account(org_id: OrgId) -> str:
    """Return the account of what is held for an organization's open requests."""
    return f"{org_id}:held"


class Credit(msgspec.Struct, frozen=True):
    """Money that was added to what an organization may spend."""

    id: str
    org_id: OrgId
    amount: Nanos
    note: str | None
    created_at_ms: int


async def add_credit(tx: Transaction, org_id: OrgId, amount: Nanos, at_ms: int, note: str) -> Credit:
    """Add to what an organization may spend."""
    credit = Credit(new_id("crd", at_ms), org_id, amount, note, at_ms)
    transfer = _transfer("credit", org_id, credit.id, FUNDING, available_account(org_id), amount, at_ms, note=note)
    await tx.put("add_transfer", **transfer)
    await tx.put("add_credit", org_id=org_id, amount=amount)
    return credit


async def list_credits(store: Store, org_id: OrgId, limit: int) -> list[Credit]:
    """The newest credits of an organization."""
    return [Credit(**row) for row in await store.slow("list_credits", org_id=org_id, limit=limit)]


class NewHold(NamedTuple):
    """An amount to hold for a request."""

    org_id: OrgId
    request_id: str
    amount: Nanos
    at_ms: int


async def hold_all(tx: Transaction, holds: Iterable[NewHold], reserved: Mapping[OrgId, Nanos]) -> None:
    """Hold amounts for requests; raise InsufficientBalance if a prepaid organization has less than the sum of its own.

    `reserved` is what this process has reserved in memory for chat calls of each organization; a hold does not touch
    it. The check and the change are one statement, so that parallel calls cannot hold the same money. Balances are
    changed in the order of their ids and as the last step of a transaction, because many transactions share them.

    For several requests, an insufficient balance raises ConstraintViolated instead, from here or from the commit: so
    nothing waits for the result while the balances are locked. Then each request has to be held by itself.
    """
    transfers: list[Row] = []
    amounts = defaultdict[OrgId, int](int)
    for org_id, request_id, amount, at_ms in sorted(holds, key=lambda new: new.org_id):
        source = available_account(org_id)
        transfers.append(_transfer("hold", org_id, request_id, source, held_account(org_id), amount, at_ms))
        amounts[org_id] += amount
    await tx.put_many("add_transfer", transfers)
    if len(transfers) > 1 and not any(reserved.values()):
        for org_id, total in amounts.items():
            if total:
                await tx.put("hold_unseen", org_id=org_id, amount=total)
        return
    changes: list[Change] = [
        ("hold_amount", {"org_id": org_id, "amount": amount, "reserved": reserved.get(org_id, ZERO)})
        for org_id, amount in amounts.items()
        if amount
    ]
    changed = await tx.each(changes) if changes else []
    for (_, values), rows in zip(changes, changed, strict=True):
        if not rows:
            balance = await tx.one("get_balance", org_id=values["org_id"])
            raise insufficient_balance(values["amount"], Nanos(balance["available"] if balance else 0))


def insufficient_balance(amount: Nanos, available: Nanos) -> InsufficientBalance:
    """Return the error for a request that may cost more than there is."""
    message = f"This request may cost up to {dollars(amount):f} USD and {dollars(available):f} USD are available."
    return InsufficientBalance(message, should_retry=False)


class EndedHold(NamedTuple):
    """A hold that ends: the cost is charged, at most what was held; without a cost the hold is released."""

    org_id: OrgId
    request_id: str
    held: Nanos
    cost: Nanos | None

    @property
    def charged(self) -> Nanos:
        return min(self.cost or ZERO, self.held)

    @property
    def loss(self) -> Nanos:
        """The part of the cost above the hold, which the operator loses."""
        return Nanos((self.cost or ZERO) - self.charged)


async def end_holds(tx: Transaction, ended: Sequence[EndedHold], at_ms: int) -> None:
    """End holds by a capture or a release. What is not charged is available again.

    Each organization's balance is changed once for all its requests, in the order of their ids and as the last step of
    a transaction: many transactions share it.
    """
    if not ended:
        return
    rows: list[Row] = []
    held = defaultdict[OrgId, int](int)
    charged = defaultdict[OrgId, int](int)
    for hold_end in ended:
        amount = hold_end.charged
        held[hold_end.org_id] += hold_end.held
        charged[hold_end.org_id] += amount
        rows += _end_transfers(hold_end, amount, at_ms)
    await tx.put_many("add_transfer", rows)
    for org_id in sorted(held):
        await tx.put("end_hold", org_id=org_id, held=held[org_id], charged=charged[org_id])


def _end_transfers(ended: EndedHold, charged: Nanos, at_ms: int) -> list[Row]:
    org_id, request_id, held, cost = ended
    source = held_account(org_id)
    if cost is None:
        return [_transfer("release", org_id, request_id, source, available_account(org_id), held, at_ms)]
    rest = Nanos(held - charged)
    rows = [_transfer("capture", org_id, request_id, source, REVENUE, charged, at_ms, returned=rest)]
    return [*rows, _loss(org_id, request_id, ended.loss, at_ms)] if cost > charged else rows


async def capture_reserved(tx: Transaction, charges: Sequence[tuple[OrgId, str, Nanos]], at_ms: int) -> None:
    """Charge requests whose money was reserved in memory instead of held; `charges` are (org id, request id, cost).

    Each organization's balance is changed once for all its requests.
    """
    if not charges:
        return
    costs = defaultdict[OrgId, int](int)
    for org_id, _, cost in charges:
        costs[org_id] += cost
    accounts = {org_id: available_account(org_id) for org_id in costs}
    transfers = [
        _transfer("capture", org_id, request_id, accounts[org_id], REVENUE, cost, at_ms)
        for org_id, request_id, cost in charges
    ]
    await tx.put_many("add_transfer", transfers)
    for org_id in sorted(costs):
        await tx.put("capture_reserved", org_id=org_id, amount=costs[org_id])


async def record_loss(tx: Transaction, org_id: OrgId, ref: str, amount: Nanos, at_ms: int) -> None:
    """Record what a provider bills and no caller pays; `ref` is the id of the request or the attempt."""
    await tx.put("add_transfer", **_loss(org_id, ref, amount, at_ms))


def _loss(org_id: OrgId, ref: str, amount: Nanos, at_ms: int) -> Row:
    return _transfer("loss", org_id, ref, PLATFORM_LOSS, PROVIDERS, amount, at_ms)


def _transfer(
    kind: str,
    org_id: OrgId,
    ref: str,
    source: str,
    target: str,
    amount: Nanos,
    at_ms: int,
    *,
    returned: Nanos = ZERO,
    note: str | None = None,
) -> Row:
    return {
        "ref": ref,
        "step": "end" if kind in ("capture", "release") else kind,
        "kind": kind,
        "org_id": org_id,
        "source": source,
        "target": target,
        "amount": amount,
        "returned": returned,
        "created_at_ms": at_ms,
        "note": note,
    }
