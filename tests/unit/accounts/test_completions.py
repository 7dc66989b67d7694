"""Generations that are completed in one transaction change usage and balance once."""

from typing import Any

from penstock.accounts.completions import Completion, write_completions
from penstock.accounts.requests import Usage
from penstock.accounts.transfers import EndedHold
from penstock.values import Nanos


class Statements:
    """A transaction that notes its statements."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Any]] = []

    async def put(self, name: str, /, **values: Any) -> None:
        self.ran.append((name, values))

    async def put_many(self, name: str, rows: list[dict[str, Any]], /) -> None:
        self.ran.append((name, rows))


def completion(request_id: str, cost: int, order: list[str], *, is_lost: bool = False) -> Completion:
    async def write(tx: object) -> Usage | None:
        order.append(request_id)
        return None if is_lost else Usage("org_1", "key_1", "completed", 7, cost)

    return Completion(EndedHold("org_1", request_id, Nanos(10), Nanos(cost)), 1000, write)


async def test_usage_and_balance_are_changed_once_for_all_whose_lease_is_held() -> None:
    tx = Statements()
    order: list[str] = []
    group = [
        completion("req_2", 3, order),
        completion("req_3", 9, order, is_lost=True),
        completion("req_1", 4, order),
    ]
    assert await write_completions(tx, group) == [True, False, True]  # type: ignore[arg-type]
    assert order == ["req_1", "req_2", "req_3"], "rows are locked in the order of their ids"
    names = [name for name, _ in tx.ran]
    assert names == ["add_usage", "add_transfer", "end_hold"]
    by_name = dict(tx.ran)
    assert {(row["count"], row["cost"]) for row in by_name["add_usage"]} == {(2, 7)}
    assert [row["ref"] for row in by_name["add_transfer"]] == ["req_2", "req_1"]
    assert by_name["end_hold"] == {"org_id": "org_1", "held": 20, "charged": 7}


async def test_nothing_shared_is_changed_when_every_lease_was_lost() -> None:
    tx = Statements()
    assert await write_completions(tx, [completion("req_1", 4, [], is_lost=True)]) == [False]  # type: ignore[arg-type]
    assert tx.ran == []
