"""Complete several generations in one transaction."""

from collections.abc import Sequence

import msgspec

from penstock.accounts.requests import RequestUsage, count_usage
from penstock.accounts.transfers import EndedHold, end_holds
from penstock.failpoints import failpoint
from penstock.jobs.running import LeaseLost
from penstock.store.base import Change, Store, Transaction
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
    "complete_request",
    "add_message",
)


class Completion(msgspec.Struct, frozen=True):
    """A generation that is to be completed, alone or together with others."""

    hold_end: EndedHold
    usage: RequestUsage
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
    changed = await tx.run_each(changes)
    if changed["complete_generation"] < len(completions):
        raise LeaseLost(", ".join(completion.request_id for completion in completions))  # of one of them at least
    assert changed["complete_request"] == len(completions), "a generation and its request end in one transaction"
    await count_usage(tx, [completion.usage for completion in completions])
    at_ms = max(completion.at_ms for completion in completions)
    await end_holds(tx, [completion.hold_end for completion in completions], at_ms)
    for _ in completions:
        failpoint("settle.in_tx")
    return [None] * len(completions)
