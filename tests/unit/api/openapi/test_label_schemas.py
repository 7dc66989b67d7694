"""The schemas about labels accept what the functions that make these records return."""

from typing import Any

import jsonschema_rs

from penstock.accounts.forecast import forecast_record
from penstock.accounts.label_budgets import LabelBudget
from penstock.api.openapi.label_schemas import LABEL_SCHEMAS
from penstock.values import Nanos


def valid(name: str, value: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(LABEL_SCHEMAS[name]).is_valid(value)


def test_a_budget_and_a_forecast_have_their_shapes() -> None:
    budget = LabelBudget("customer", "acme", Nanos(5_000_000_000), "[80,100]", Nanos(7)).record()
    amounts = {"usd_per_month": 5, "spent_this_month": 0.1}
    assert valid("LabelBudget", budget | amounts)
    assert not valid("LabelBudget", budget | amounts | {"more": 1})
    forecast = forecast_record([0] * 28, 0, None, 86_400_000, 0, 31 * 86_400_000)
    assert valid("Forecast", {**forecast, "spent": 0, "labels": {"customer": "a"}})
