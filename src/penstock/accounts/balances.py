"""Show the balance of an organization."""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.store.base import Store
from penstock.values import Nanos, dollars


class Balances:
    """Reads balances. `catch_up` writes charges of an organization that wait in memory, so that
    its balance includes them.
    """

    def __init__(self, store: Store, catch_up: Callable[[str], Awaitable[None]] | None = None) -> None:
        self._store = store
        self._catch_up = catch_up

    async def get(self, org_id: str) -> dict[str, Any]:
        """Return the balance object of the interface; a postpaid organization has no amount."""
        if self._catch_up:
            await self._catch_up(org_id)
        row = await self._store.one("get_balance", org_id=org_id)
        assert row is not None, "a caller's organization exists"
        prepaid = row["billing"] == "prepaid"
        amount = dollars(Nanos(row["available"])) if prepaid else None
        return {
            "object": "balance",
            "billing_type": row["billing"],
            "available": {"amount": amount, "currency": "usd"},
        }
