"""Accept several generations in one transaction."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import msgspec

from penstock.accounts.chat_reservations import ChatReservations
from penstock.accounts.transfers import NewHold
from penstock.failpoints import failpoint
from penstock.store.base import Change, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.lock_order import in_lock_order

# The queries of an acceptance, in the order of docs/decisions/lock-order.md. The last one returns a row.
_QUERIES = (
    "add_request", "add_generation", "add_attempt", "add_media", "add_request_label", "add_reused_output",
    "defer_generation",
)  # fmt: skip


class Acceptance(msgspec.Struct, frozen=True):
    """A generation that is to be accepted, alone or together with others."""

    hold: NewHold
    changes: Sequence[Change]  # all that is stored besides the hold


class Acceptances:
    """Accepts generations. Those that come while a transaction is under way share the next one.

    If a balance is too low for all of a group, or one of them cannot be stored, each is accepted by itself.
    """

    def __init__(self, store: Store, reservations: ChatReservations) -> None:
        self._reservations = reservations
        self._groups = WriteGroups(store, self.write)

    async def add(self, acceptance: Acceptance) -> None:
        """Accept a generation whose key and organization have no limits.

        Raises InsufficientBalance, or what `Store.write` raises.
        """
        await self._groups.add(acceptance, acceptance.hold.org_id)

    async def write(self, tx: Transaction, acceptances: Sequence[Acceptance]) -> list[None]:
        """Accept generations: all of them or, by raising InsufficientBalance, none.

        The balance, which all generations of an organization share, is changed once and last.
        """
        changes = in_lock_order((change for acceptance in acceptances for change in acceptance.changes), _QUERIES)
        for name, same in groupby(changes, key=itemgetter(0)):
            if name == "defer_generation":
                await tx.each([*same])
            else:
                await tx.put_many(name, [values for _, values in same])
        await self._reservations.hold_all(tx, [acceptance.hold for acceptance in acceptances])
        for _ in acceptances:
            failpoint("accept.in_tx")
        return [None] * len(acceptances)
