"""Complete several generations in one transaction."""

from collections.abc import Sequence

import msgspec

from penstock.accounts.requests import Usage, count_usage
from penstock.accounts.transfers import EndedHold, end_holds
from penstock.failpoints import failpoint
from penstock.jobs.running import LeaseLost
from penstock.schema import SLOT_MS
from penstock.store.base import Change, Row, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.lock_order import in_lock_order

# The queries of a completion, in the order of docs/decisions/lock-order.md.
_QUERIES = (
    "complete_generation",
    "release_recording_claim",
    "set_attempt",
    "schedule_checks",
    "add_media",
    "expire_inputs",
    "add_recording",
    "add_recording_file",
    "end_request",
    "add_message",
)


class Completion(msgspec.Struct, frozen=True):
    """A generation that is to be completed, alone or together with others."""

    hold_end: EndedHold
    at_ms: int
    changes: Sequence[Change]  # all that is stored besides money and usage

    @property
    def request_id(self) -> str:
        return self.hold_end.request_id


class Completions:
    """Completes generations. Those that end while a transaction is under way share the next one."""

    def __init__(self, store: Store) -> None:
        self._groups = WriteGroups(store, write_completions)

    async def add(self, completion: Completion) -> None:
        """Complete a generation. Raises LeaseLost if its lease is no longer held, or what `Store.write` raises."""
        await self._groups.add(completion, completion.hold_end.org_id)


async def write_completions(tx: Transaction, completions: Sequence[Completion]) -> list[None]:
    """Complete generations: all of them or, by raising LeaseLost, none.

    Usage and balance, which all generations of an organization share, are changed once for all of them, and last.
    """
    changes = in_lock_order((change for completion in completions for change in completion.changes), _QUERIES)
    returned = await tx.each(changes)
    usages = []
    for (name, values), rows in zip(changes, returned, strict=True):
        if name == "complete_generation" and not rows:
            raise LeaseLost(values["id"])
        if name == "end_request":
            assert rows, "a generation and its request end in one transaction"
            usages.append(_usage(values, rows[0]))
    await count_usage(tx, usages)
    at_ms = max(completion.at_ms for completion in completions)
    await end_holds(tx, [completion.hold_end for completion in completions], at_ms)
    for _ in completions:
        failpoint("settle.in_tx")
    return [None] * len(completions)


def _usage(end: Row, row: Row) -> Usage:
    """What to count of a request, from the values of `end_request` and the row that it returned."""
    return Usage(end["org_id"], row["key_id"], end["status"], row["created_at_ms"] // SLOT_MS, end["cost"])
