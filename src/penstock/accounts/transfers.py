"""Move money between accounts in double entry: credit, hold, capture, release, loss."""

from collections import defaultdict
from collections.abc import Sequence

from penstock.errors import InsufficientBalance
from penstock.store.base import Row, Transaction
from penstock.values import ZERO, Nanos, dollars, new_id

# Accounts that belong to no organization.
FUNDING = "funding"
REVENUE = "revenue"
PLATFORM_LOSS = "platform_loss"
PROVIDERS = "providers"


def available_account(org_id: str) -> str:
    """Return the account of what an organization may spend."""
    return f"{org_id}:available"


def held_account(org_id: str) -> str:
    """Return the account of what is held for an organization's open requests."""
    return f"{org_id}:held"


async def add_credit(tx: Transaction, org_id: str, amount: Nanos, at_ms: int, note: str) -> None:
    await tx.run("add_credit", org_id=org_id, amount=amount)
    credit_id = new_id("crd", at_ms)
    transfer = _transfer("credit", org_id, credit_id, FUNDING, available_account(org_id), amount, at_ms, note=note)
    await tx.run("add_transfer", **transfer)


async def hold(
    tx: Transaction, org_id: str, request_id: str, amount: Nanos, at_ms: int, *, reserved: Nanos = ZERO
) -> None:
    """Hold an amount for a request; raise InsufficientBalance if a prepaid organization does not have it.

    The check and the change are one statement, so that parallel calls cannot hold the same money. `reserved` is what
    this process has reserved in memory for chat calls; a hold does not touch it.
    """
    if amount and not await tx.run("hold_amount", org_id=org_id, amount=amount, reserved=reserved):
        balance = await tx.one("get_balance", org_id=org_id)
        raise insufficient_balance(amount, Nanos(balance["available"] if balance else 0))
    source = available_account(org_id)
    target = held_account(org_id)
    await tx.run("add_transfer", **_transfer("hold", org_id, request_id, source, target, amount, at_ms))


def insufficient_balance(amount: Nanos, available: Nanos) -> InsufficientBalance:
    """Return the error for a request that may cost more than there is."""
    message = f"This request may cost up to {dollars(amount):f} USD and {dollars(available):f} USD are available."
    return InsufficientBalance(message, should_retry=False)


async def capture(tx: Transaction, org_id: str, request_id: str, held: Nanos, cost: Nanos, at_ms: int) -> Nanos:
    """End a hold by charging the cost, at most what was held, and return what was charged.

    The rest of the hold is available again. A cost above the hold is recorded as a loss of the operator.
    """
    charged = min(cost, held)
    await tx.run("end_hold", org_id=org_id, held=held, charged=charged)
    source = held_account(org_id)
    rest = Nanos(held - charged)
    transfer = _transfer("capture", org_id, request_id, source, REVENUE, charged, at_ms, returned=rest)
    await tx.run("add_transfer", **transfer)
    if cost > charged:
        await record_loss(tx, org_id, request_id, Nanos(cost - charged), at_ms)
    return charged


async def capture_reserved(tx: Transaction, charges: Sequence[tuple[str, str, Nanos]], at_ms: int) -> None:
    """Charge requests whose money was reserved in memory instead of held; `charges` are (org id, request id, cost).

    Each organization's balance is changed once for all its requests.
    """
    costs: dict[str, int] = defaultdict(int)
    for org_id, _, cost in charges:
        costs[org_id] += cost
    for org_id, amount in costs.items():
        await tx.run("capture_reserved", org_id=org_id, amount=amount)
    accounts = {org_id: available_account(org_id) for org_id in costs}
    transfers = [
        _transfer("capture", org_id, request_id, accounts[org_id], REVENUE, cost, at_ms)
        for org_id, request_id, cost in charges
    ]
    await tx.run_many("add_transfer", transfers)


async def release(tx: Transaction, org_id: str, request_id: str, held: Nanos, at_ms: int) -> None:
    """End a hold without a charge: all of it is available again."""
    await tx.run("end_hold", org_id=org_id, held=held, charged=ZERO)
    source = held_account(org_id)
    target = available_account(org_id)
    await tx.run("add_transfer", **_transfer("release", org_id, request_id, source, target, held, at_ms))


async def record_loss(tx: Transaction, org_id: str, ref: str, amount: Nanos, at_ms: int) -> None:
    """Record what a provider bills and no caller pays; `ref` is the id of the request or the attempt."""
    await tx.run("add_transfer", **_transfer("loss", org_id, ref, PLATFORM_LOSS, PROVIDERS, amount, at_ms))


def _transfer(
    kind: str,
    org_id: str,
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
