"""Show the balance of an organization."""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.clock import Clock
from penstock.schema import SLOT_MS
from penstock.store.base import Store
from penstock.values import DAY_MS, Nanos, OrgId, dollars

PACE_DAYS = 7


class Balances:
    """Reads balances. `catch_up` writes charges of an organization that wait in memory, so that its balance includes
    them.
    """

    def __init__(self, store: Store, clock: Clock, catch_up: Callable[[OrgId], Awaitable[None]]) -> None:
        self._store = store
        self._clock = clock
        self._catch_up = catch_up

    async def get(self, org_id: OrgId) -> dict[str, Any]:
        """Return the balance object of the interface; a postpaid organization has no amount."""
        await self._catch_up(org_id)
        row = await self._store.one("get_balance", org_id=org_id)
        assert row is not None, "a caller's organization exists"
        available = Nanos(row["available"]) if row["billing"] == "prepaid" else None
        return {
            "object": "balance",
            "billing_type": row["billing"],
            "available": {"amount": None if available is None else dollars(available), "currency": "usd"},
            "held": dollars(Nanos(row["held"])),
            "pace": await self._pace(org_id, available),
        }

    async def _pace(self, org_id: OrgId, available: Nanos | None) -> dict[str, Any]:
        """Return what was spent in the last days, and how long the balance lasts at this pace.

        An organization whose first request is younger is judged by the time since then, but not by less than a day.
        """
        now_ms = self._clock.now_ms()
        first = (now_ms - PACE_DAYS * DAY_MS) // SLOT_MS
        row = await self._store.one("sum_pace", org_id=org_id, first=first)
        assert row is not None, "sums are always returned"
        spent = int(row["spent"])
        start_slot = first if row["first_slot"] is None else max(first, row["first_slot"])
        elapsed_ms = min(max(now_ms - start_slot * SLOT_MS, DAY_MS), PACE_DAYS * DAY_MS)
        days_left = None
        if available is not None and spent:
            days_left = round(max(0, available) * elapsed_ms / (spent * DAY_MS), 1)
        return {
            "days": round(elapsed_ms / DAY_MS, 1),
            "spent": dollars(Nanos(spent)),
            "per_day": dollars(Nanos(spent * DAY_MS // elapsed_ms)),
            "days_left": days_left,
        }
