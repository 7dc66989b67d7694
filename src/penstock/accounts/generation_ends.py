"""End several generations, completed or failed, in one transaction."""

from collections.abc import Sequence

import msgspec

from penstock.accounts.requests import RequestUsage, count_usage
from penstock.accounts.transfers import EndedHold, end_holds, record_loss
from penstock.failpoints import failpoint
from penstock.jobs.running import LeaseLost
from penstock.store.base import Change, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.lock_order import in_lock_order
from penstock.values import Nanos

# The queries of an end, in the order of docs/decisions/lock-order.md.
_QUERIES = (
    ("complete_generation", "fail_generation"),
    "release_recording_claim",
    "set_attempt",
    "schedule_checks",
    "add_media",
    "expire_inputs",
    "add_seal",
    "add_recording",
    "add_recording_file",
    "end_generation_request",
    "add_message",
)


class GenerationEnd(msgspec.Struct, frozen=True):
    """A generation that is to be completed or failed, alone or together with others."""

    hold_end: EndedHold
    usage: RequestUsage
    at_ms: int
    changes: Sequence[Change]  # all that is stored besides money and usage
    losses: Sequence[tuple[str, Nanos]] = ()  # what the gateway pays, by the ids of attempts

    @property
    def request_id(self) -> str:
        return self.hold_end.request_id


class GenerationEnds:
    """Ends generations. Those that end while a transaction is under way share the next one."""

    def __init__(self, store: Store) -> None:
        self._groups = WriteGroups(store, write_generation_ends)

    async def add(self, end: GenerationEnd) -> None:
        """End a generation. Raises LeaseLost if its lease is no longer held, or what `Store.write` raises."""
        await self._groups.add(end, end.hold_end.org_id)


async def write_generation_ends(tx: Transaction, ends: Sequence[GenerationEnd]) -> list[None]:
    """End generations: all of them or, by raising LeaseLost, none.

    Usage and balance, which all generations of an organization share, are changed once for all of them, and last.
    """
    changes = in_lock_order((change for end in ends for change in end.changes), _QUERIES)
    changed = await tx.run_each(changes)
    if changed["complete_generation"] + changed["fail_generation"] < len(ends):
        raise LeaseLost(", ".join(end.request_id for end in ends))  # of one of them at least
    assert changed["end_generation_request"] == len(ends), "a generation and its request end in one transaction"
    await count_usage(tx, [end.usage for end in ends])
    for end in ends:
        for attempt_id, amount in end.losses:
            await record_loss(tx, end.hold_end.org_id, attempt_id, amount, end.at_ms)
    at_ms = max(end.at_ms for end in ends)
    await end_holds(tx, [end.hold_end for end in ends], at_ms)
    for _ in ends:
        failpoint("settle.in_tx")
    return [None] * len(ends)
