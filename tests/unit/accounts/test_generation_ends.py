"""Generations that are completed in one transaction change usage and balance once, and each row in one order."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from penstock.accounts.generation_ends import GenerationEnd, write_generation_ends
from penstock.accounts.requests import RequestUsage
from penstock.accounts.transfers import EndedHold
from penstock.jobs.running import LeaseLost
from penstock.store.base import Change, Row
from penstock.values import Nanos, OrgId


class Statements:
    """A transaction that notes its statements; the generations in `lost` are not completed."""

    def __init__(self, *lost: str) -> None:
        self.ran: list[tuple[str, Any]] = []
        self._lost = lost

    async def put(self, name: str, /, **values: Any) -> None:
        self.ran.append((name, values))

    async def put_many(self, name: str, rows: list[Row], /) -> None:
        self.ran.append((name, rows))

    async def run_each(self, changes: list[Change], /) -> Counter[str]:
        self.ran += changes
        return Counter(name for name, values in changes if values["id"] not in self._lost)


def generation_end(request_id: str, cost: int, attempt_id: str) -> GenerationEnd:
    changes: list[Change] = [
        ("set_attempt", {"id": attempt_id}),
        ("end_generation_request", {"id": request_id}),
        ("complete_generation", {"id": request_id}),
    ]
    hold_end = EndedHold(OrgId("org_1"), request_id, Nanos(10), Nanos(cost))
    return GenerationEnd(hold_end, RequestUsage(OrgId("org_1"), "key_1", "completed", 7, cost), 1000, changes)


async def test_a_group_locks_rows_in_one_order_and_changes_usage_and_balance_once() -> None:
    tx = Statements()
    await write_generation_ends(tx, [generation_end("req_2", 3, "att_1"), generation_end("req_1", 4, "att_2")])  # type: ignore[arg-type]
    assert [(name, values["id"]) for name, values in tx.ran[:6]] == [
        ("complete_generation", "req_1"),
        ("complete_generation", "req_2"),
        ("set_attempt", "att_1"),
        ("set_attempt", "att_2"),
        ("end_generation_request", "req_1"),
        ("end_generation_request", "req_2"),
    ]
    assert [name for name, _ in tx.ran[6:]] == ["add_usage", "add_transfer", "end_hold"]
    by_name = dict(tx.ran[6:])
    assert {(row["slot"], row["count"], row["cost"]) for row in by_name["add_usage"]} == {(7, 2, 7)}
    assert [row["ref"] for row in by_name["add_transfer"]] == ["req_2", "req_1"]
    assert by_name["end_hold"] == {"org_id": "org_1", "held": 20, "charged": 7}


async def test_completed_and_failed_generations_of_a_group_are_locked_in_one_order() -> None:
    tx = Statements()
    failed = generation_end("req_1", 0, "att_2")
    failed = msgspec.structs.replace(failed, changes=[("fail_generation", {"id": "req_1"}), *failed.changes[:2]])
    await write_generation_ends(tx, [generation_end("req_2", 3, "att_1"), failed])  # type: ignore[arg-type]
    assert [name for name, _ in tx.ran[:2]] == ["fail_generation", "complete_generation"]


async def test_a_lost_lease_ends_the_transaction_before_anything_shared_is_changed() -> None:
    tx = Statements("req_2")
    with pytest.raises(LeaseLost):
        await write_generation_ends(tx, [generation_end("req_1", 4, "att_1"), generation_end("req_2", 3, "att_2")])  # type: ignore[arg-type]
    assert {name for name, _ in tx.ran} == {"complete_generation", "set_attempt", "end_generation_request"}
