"""Complete several generations of an organization in one transaction."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from penstock.accounts.requests import Usage, count_usage
from penstock.accounts.transfers import EndedHold, end_holds
from penstock.failpoints import failpoint
from penstock.store.base import Store, Transaction
from penstock.store.groups import WriteGroups


@dataclass(frozen=True, slots=True)
class Completion:
    """A generation that is to be completed, alone or together with others of its organization."""

    hold_end: EndedHold
    at_ms: int
    # Writes all that belongs to this generation alone. Returns None, and writes nothing, when the lease was lost.
    write: Callable[[Transaction], Awaitable[Usage | None]]

    @property
    def request_id(self) -> str:
        return self.hold_end.request_id


class Completions(WriteGroups[Completion, bool]):
    """Completes generations. Those that end while a transaction is under way share the next one."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, write_completions)


async def write_completions(tx: Transaction, completions: Sequence[Completion]) -> list[bool]:
    """Complete generations; return for each whether its lease was still held.

    Usage and balance, which all generations of an organization share, are changed once for all of them, and last.
    """
    usages = {}
    for completion in sorted(completions, key=lambda completion: completion.request_id):
        usages[completion.request_id] = await completion.write(tx)
    completed = [completion for completion in completions if usages[completion.request_id]]
    await count_usage(tx, [usage for usage in usages.values() if usage])
    at_ms = max((completion.at_ms for completion in completed), default=0)
    await end_holds(tx, [completion.hold_end for completion in completed], at_ms)
    for _ in completed:
        failpoint("settle.in_tx")
    return [usages[completion.request_id] is not None for completion in completions]
