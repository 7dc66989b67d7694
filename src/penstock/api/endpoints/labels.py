"""Declare the labels of an organization, and set budgets for their values."""

from decimal import Decimal

from penstock.accounts.label_budgets import DEFAULT_PERCENTS, list_budgets, remove_budget, set_budget
from penstock.accounts.labels import checked_declarations, declare, read_declared
from penstock.accounts.orgs import MAX_USD_PER_MONTH
from penstock.api.fields import checked_fields
from penstock.errors import NotFound
from penstock.fields import array_field, field_table, number_field
from penstock.gateway import Gateway
from penstock.schema import Call, DeclaredLabel, Response
from penstock.values import nanos

LABEL_FIELDS = field_table(
    array_field(
        "declared_labels",
        "All labels that calls may have, each with a `name`, and perhaps `required`, `values` and `budget`.",
        required=True,
    ),
)
BUDGET_FIELDS = field_table(
    number_field(
        "usd_per_month", "Most that may be spent per UTC month.", required=True, low=0, high=MAX_USD_PER_MONTH
    ),
    array_field("alert_percents", "When the operator is told; by default at 80 and 100 percent."),
)


async def list_labels(gateway: Gateway, call: Call) -> Response:
    return _labels_response(await read_declared(gateway.store, call.caller.org_id))


async def declare_labels(gateway: Gateway, call: Call) -> Response:
    """Replace the declared labels. Records keep the labels that they have."""
    labels = checked_declarations(checked_fields(call.json, LABEL_FIELDS)["declared_labels"])
    await declare(gateway.store, gateway.clock, call.caller.org_id, labels)
    gateway.keys.forget_org(call.caller.org_id)
    return _labels_response(labels)


def _labels_response(labels: tuple[DeclaredLabel, ...]) -> Response:
    data = [
        {"name": label.name, "required": label.required, "values": label.values, "budget": label.budget}
        for label in labels
    ]
    return Response(json={"object": "labels", "declared_labels": data})


async def list_label_budgets(gateway: Gateway, call: Call) -> Response:
    budgets = await list_budgets(gateway.store, call.caller.org_id, gateway.clock.now_ms())
    return Response(json={"object": "list", "data": [budget.record() for budget in budgets]})


async def set_label_budget(gateway: Gateway, call: Call) -> Response:
    """Set the budget of a value; that of the value `*` is for each value without one of its own."""
    fields = checked_fields(call.json, BUDGET_FIELDS)
    limit = nanos(Decimal(str(fields["usd_per_month"])))
    org_id = call.caller.org_id
    name = call.path["name"]
    value = call.path["value"]
    percents = fields.get("alert_percents", DEFAULT_PERCENTS)
    await set_budget(gateway.store, gateway.clock, org_id, name, value, limit, percents)
    gateway.keys.forget_org(org_id)
    budgets = await list_budgets(gateway.store, org_id, gateway.clock.now_ms())
    found = next((budget for budget in budgets if (budget.name, budget.value) == (name, value)), None)
    if found is None:
        raise NotFound(f"The budget of `{name}` was removed meanwhile.")
    return Response(json=found.record())


async def remove_label_budget(gateway: Gateway, call: Call) -> Response:
    await remove_budget(gateway.store, gateway.clock, call.caller.org_id, call.path["name"], call.path["value"])
    gateway.keys.forget_org(call.caller.org_id)
    return Response(status=204)
