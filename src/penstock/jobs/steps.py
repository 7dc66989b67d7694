"""Store the steps of several jobs in one transaction."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import msgspec

from penstock.jobs.running import Lease, LeaseLost
from penstock.store.base import Change, Row, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.lock_order import in_lock_order
from penstock.values import OrgId

# The queries of a step, in the order of docs/decisions/lock-order.md, after that of the lease.
_QUERIES = ("set_made", "set_attempt", "add_attempt", "start_request")


class Step(msgspec.Struct, frozen=True):
    """What a job stores before its end, alone or together with other jobs, and only while it holds its lease."""

    lease: Lease
    changes: Sequence[Change] = ()
    is_progress: bool = False  # it cannot be made twice: the number of crashes is set to zero
    percent: int | None = None  # the generation is in progress, and so far; None: as before
    unless_cancelled: bool = False  # the changes are not stored after a cancel was requested

    @property
    def check(self) -> Change:
        """What checks the lease, and stores what belongs to the generation itself."""
        values: Row = {
            "id": self.lease.id,
            "lease_token": self.lease.token,
            "is_progress": int(self.is_progress),
            "percent": self.percent,
        }
        return "check_lease", values


class Steps:
    """Stores steps. Those that come while a transaction is under way share the next one."""

    def __init__(self, store: Store) -> None:
        self._groups = WriteGroups(store, write_steps)

    async def add(self, step: Step, org_id: OrgId) -> bool:
        """Store a step, and return whether a cancel of the generation was requested. It is durable then.

        Raises LeaseLost if the lease is no longer held, or what `Store.write` raises.
        """
        is_cancel_requested = await self._groups.add(step, org_id)
        if is_cancel_requested is None:
            raise LeaseLost(step.lease.id)
        return is_cancel_requested


async def write_steps(tx: Transaction, steps: Sequence[Step]) -> list[bool | None]:
    """Store steps, and return for each whether a cancel was requested; None if its lease is lost: then it changes
    nothing.
    """
    in_order = sorted(range(len(steps)), key=lambda number: steps[number].lease.id)
    checked = await tx.each([steps[number].check for number in in_order])
    cancels = {
        number: bool(rows[0]["cancel_requested"]) for number, rows in zip(in_order, checked, strict=True) if rows
    }
    stored = [
        steps[number]
        for number, is_cancelled in cancels.items()
        if not (is_cancelled and steps[number].unless_cancelled)
    ]
    changes = in_lock_order((change for step in stored for change in step.changes), _QUERIES)
    for name, same in groupby(changes, key=itemgetter(0)):
        await tx.put_many(name, [values for _, values in same])
    return [cancels.get(number) for number in range(len(steps))]
