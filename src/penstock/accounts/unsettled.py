"""Accept calls of an organization that has unsettled money: held for chat calls which have ended already."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock.accounts.chat_settlement import BATCH_SECONDS, ChatSettlement
from penstock.errors import InsufficientBalance, RateLimited, TooManyRequests
from penstock.schema import Caller
from penstock.store.base import Store
from penstock.values import OrgId

T = TypeVar("T")
_OTHERS_BATCHES = 3  # how long a refused call waits for the batches of other processes


@dataclass(frozen=True, slots=True)
class UnsettledMoney:
    """What `ChatSettlement` has not written yet, where a new call may need it: calls of all kinds come by here."""

    store: Store
    settlement: ChatSettlement

    async def accept(self, org_id: OrgId, accept: Callable[[], Awaitable[T]]) -> T:
        """Accept a call of an organization; raise what `accept` raises.

        Calls that have ended and wait to be written still count as under way, with all that was held for them. So if a
        limit or the balance refuses the new call, they are written, and it is tried once more. Other processes have the
        time for a few batches before that.
        """
        was_waiting = self.settlement.is_waiting(org_id)  # they may be written before the refusal arrives here
        is_shared = self.store.dialect == "postgres"
        try:
            return await accept()
        except TooManyRequests:
            raise  # ended calls count as well
        except (RateLimited, InsufficientBalance):
            if not was_waiting and not self.settlement.is_waiting(org_id) and not is_shared:
                raise
        await self.settlement.catch_up(org_id)
        if is_shared and await self._is_waiting_elsewhere(org_id):
            await asyncio.sleep(_OTHERS_BATCHES * BATCH_SECONDS)
        return await accept()

    async def free_place(self, caller: Caller, *, has_items: bool = False) -> None:
        """Write that a call has ended, before its caller learns of it, if the key may only make so many at a time, or
        the response has items that may be referred to: the next call may come at once, and to another process.
        """
        if (has_items or caller.concurrent_requests is not None) and self.store.dialect == "postgres":
            await self.settlement.catch_up(caller.org_id)

    async def _is_waiting_elsewhere(self, org_id: OrgId) -> bool:
        """Whether a call that another process handles is not written as ended; nobody knows here if it has ended."""
        values = {"org_id": org_id, "process_id": self.settlement.reservations.process_id}
        return await self.store.one("find_request_elsewhere", **values) is not None
