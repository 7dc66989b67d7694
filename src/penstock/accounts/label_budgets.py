"""Budgets per month for the values of labels."""

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.accounts.labels import read_declared
from penstock.audit_log import Act, Note, write_audited
from penstock.clock import Clock
from penstock.errors import InvalidRequest, NotFound, quoted
from penstock.schema import EACH_VALUE
from penstock.store.base import Store, Transaction
from penstock.values import Nanos, OrgId, dollars, month_text

DEFAULT_PERCENTS = (80, 100)
_MAX_PERCENTS = 5


class LabelBudget(msgspec.Struct, frozen=True):
    """What a value of a label, or each value, may spend in a month."""

    name: str
    value: str  # or EACH_VALUE
    nanos_per_month: Nanos
    alert_percents: str  # as a JSON list
    spent: Nanos

    def record(self) -> dict[str, Any]:
        return {
            "object": "label_budget",
            "name": self.name,
            "value": self.value,
            "usd_per_month": dollars(self.nanos_per_month),
            "alert_percents": msgspec.json.decode(self.alert_percents),
            "spent_this_month": None if self.value == EACH_VALUE else dollars(self.spent),
        }


async def list_budgets(store: Store, org_id: OrgId, now_ms: int) -> list[LabelBudget]:
    """The budgets of an organization, by name and value."""
    rows = await store.slow("list_label_budgets", org_id=org_id, month=month_text(now_ms))
    return [LabelBudget(**row) for row in rows]


async def set_budget(
    store: Store,
    clock: Clock,
    org_id: OrgId,
    name: str,
    value: str,
    limit: Nanos,
    percents: Sequence[int] = DEFAULT_PERCENTS,
) -> None:
    """Set the budget of a value, or that of each value without one of its own; raise NotFound for a label that is not
    declared, and InvalidRequest for one that may have none.
    """
    declared = {label.name: label for label in await read_declared(store, org_id)}
    if name not in declared:
        raise NotFound(f"`{name[:64]}` is not a declared label.")
    if not declared[name].budget:
        raise InvalidRequest(f"`{name}` is not a label that may have budgets: declare it with `budget`.", param="name")
    allowed = declared[name].values
    if value != EACH_VALUE and allowed is not None and value not in allowed:
        raise InvalidRequest(f"`{name}` must be one of {quoted(allowed)}, or `*` for each of them.", param="value")
    are_percents = all(type(percent) is int and 1 <= percent <= 100 for percent in percents)
    if not are_percents or len(percents) > _MAX_PERCENTS:
        message = f"`alert_percents` must be a list of up to {_MAX_PERCENTS} whole numbers from 1 to 100."
        raise InvalidRequest(message, param="alert_percents")
    columns = {
        "org_id": org_id,
        "name": name,
        "value": value,
        "nanos_per_month": limit,
        "alert_percents": msgspec.json.encode(sorted(set(percents))).decode(),
    }

    async def write(tx: Transaction, note: Note) -> None:
        await tx.run("set_label_budget", **columns)
        facts = {"usd_per_month": f"{dollars(limit):f}", "alert_percents": sorted(set(percents))}
        note(Act("label_budget.set", f"{name}={value}", org_id, after=facts))

    await write_audited(store, clock.now_ms(), write)


async def remove_budget(store: Store, clock: Clock, org_id: OrgId, name: str, value: str) -> None:
    """Remove the budget of a value; raise NotFound if it has none."""

    async def write(tx: Transaction, note: Note) -> int:
        removed = await tx.run("remove_label_budget", org_id=org_id, name=name, value=value)
        if removed:
            note(Act("label_budget.removed", f"{name}={value}", org_id))
        return removed

    if not await write_audited(store, clock.now_ms(), write):
        raise NotFound(f"There is no budget of `{name[:64]}` with the value `{value[:64]}`.")
