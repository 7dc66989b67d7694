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


class Completions:
    """Completes generations. On SQLite, those that end while a transaction is under way share the next one.

    On Postgres each has its own: several in one would lock their rows in another order than all other transactions do.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._groups = WriteGroups(store, write_completions)

    async def write(self, completion: Completion) -> bool:
        """Complete a generation; return whether its lease was still held. Raises what `Store.write` raises."""
        org_id = completion.hold_end.org_id
        if self._store.dialect == "sqlite":
            return await self._groups.add(completion, org_id)
        (is_completed,) = await self._store.write(lambda tx: write_completions(tx, [completion]), org_id=org_id)
        return is_completed


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
