"""Request records: the lines of a cost, and the attempts of chat calls."""

from decimal import Decimal
from typing import Any

from penstock.accounts.request_records import (
    RequestRow,
    attempts_without_messages,
    encode_attempts,
    encode_lines,
    request_record,
)
from penstock.schema import CostLine, FailedAttempt
from penstock.values import Nanos


def request_row(**columns: Any) -> RequestRow:
    defaults = dict.fromkeys(RequestRow.__struct_fields__)
    known = {"org_id": "org_1", "id": "req_1", "key_id": "key_1", "created_at_ms": 0, "endpoint": "/x", "hold": 0}
    return RequestRow(**{**defaults, **known, "status": "completed", "cost": 0, **columns})


LINES = (CostLine("image", 2, "0.04", Nanos(80_000_000)), CostLine("reported", 1, None, Nanos(5)))


def test_lines_are_shown_in_dollars_and_add_up_to_the_cost() -> None:
    record = request_record(request_row(cost=80_000_005, cost_lines=encode_lines(LINES)))
    assert record["cost_lines"] == [
        {"metric": "image", "quantity": 2, "unit_price": Decimal("0.04"), "amount": Decimal("0.08")},
        {"metric": "reported", "quantity": 1, "unit_price": None, "amount": Decimal("0.000000005")},
    ]
    assert sum(line["amount"] for line in record["cost_lines"]) == record["cost"]


def test_a_cost_that_was_limited_has_a_line_for_the_rest() -> None:
    lines = request_row(cost=70_000_000, cost_lines=encode_lines(LINES)).decode_cost_lines()
    assert lines[-1] == CostLine("not_charged", 1, None, Nanos(-10_000_005))
    assert sum(line.amount for line in lines) == 70_000_000
    assert request_row(cost=0).decode_cost_lines() == []


def test_messages_are_removed_from_stored_attempts() -> None:
    attempts = (FailedAttempt("lab", "chat-1", 1, 2, "busy", "quoted words", 429),)
    row = request_row(attempts=encode_attempts(attempts))
    assert row.decode_attempts() == attempts
    stripped = attempts_without_messages(row)
    assert stripped is not None
    assert "quoted" not in stripped
    assert request_row(attempts=stripped).decode_attempts()[0].http_status == 429
    assert attempts_without_messages(request_row()) is None


def test_the_executed_model_needs_a_provider() -> None:
    assert request_row(provider="lab", upstream_model="a/b").executed_model == "lab/a/b"
    assert request_row(upstream_model="a/b").executed_model is None
