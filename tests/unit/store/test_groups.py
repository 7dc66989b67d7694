"""Items that are added during a transaction are written together with the next one, and fail each for itself."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from penstock.errors import StorageUnavailable
from penstock.store.base import RowsLocked, Transaction
from penstock.store.groups import LOCK_MS, WriteGroups
from penstock.values import OrgId
from tests.loop_time import jumping_time
from tests.unit.store.small_schema import Database, add_account

ORG = OrgId("org_1")
OTHER_ORG = OrgId("org_2")


class HeldStore:
    """Runs each transaction when it is let go."""

    def __init__(self) -> None:
        self.calls: list[tuple[str | None, int | None]] = []
        self.may_run = asyncio.Event()
        self.problem: Exception | None = None
        self.locked: str | None = None  # the organization whose rows somebody else has locked
        self.unlocked = asyncio.Event()

    @property
    def transactions(self) -> list[str | None]:
        return [org_id for org_id, _ in self.calls]

    async def write(
        self, work: Any, *, org_id: OrgId | None = None, lock_ms: int | None = None, unlocks_early: bool = False
    ) -> Any:
        assert unlocks_early
        self.calls.append((org_id, lock_ms))
        await self.may_run.wait()
        if self.problem:
            raise self.problem
        if self.locked and not self.unlocked.is_set() and org_id in (None, self.locked):
            if lock_ms:
                raise RowsLocked
            await self.unlocked.wait()
        return await work(None)


class Groups(WriteGroups[str, str]):
    def __init__(self, store: HeldStore, most: int = 64, collect_seconds: float = 0.0) -> None:
        self.attempted: list[list[str]] = []
        self.written: list[list[str]] = []
        super().__init__(store, self.write_items, most, collect_seconds=collect_seconds)  # type: ignore[arg-type]

    async def write_items(self, tx: object, items: Sequence[str]) -> list[str]:
        self.attempted.append([*items])
        if "bad" in items:
            raise ValueError
        self.written.append([*items])
        return [item.upper() for item in items]


async def add_all(groups: Groups, items: Sequence[str], org_id: OrgId | None = None) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(groups.add(item, org_id)) for item in items]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_items_that_come_during_a_transaction_share_the_next_one() -> None:
    store = HeldStore()
    groups = Groups(store)
    tasks = await add_all(groups, ["a"])
    assert store.transactions == [None], "the first one waits for no other"
    tasks += await add_all(groups, ["b", "c"])
    cancelled = await add_all(groups, ["d"])
    cancelled[0].cancel()
    await asyncio.sleep(0)
    store.may_run.set()
    assert await asyncio.gather(*tasks) == ["A", "B", "C"]
    assert groups.written == [["a"], ["b", "c"]]


async def test_the_first_item_waits_for_others_where_they_are_to_be_collected() -> None:
    store = HeldStore()
    store.may_run.set()
    groups = Groups(store, collect_seconds=60.0)
    with jumping_time():
        tasks = await add_all(groups, ["a"])
        tasks += await add_all(groups, ["b"], ORG)
        assert store.transactions == []
        await asyncio.gather(*tasks)
        await asyncio.gather(*await add_all(groups, ["c"]))
    assert groups.written == [["a", "b"], ["c"]]


async def test_items_of_several_organizations_share_a_transaction_in_turn() -> None:
    store = HeldStore()
    groups = Groups(store, most=4)
    tasks = await add_all(groups, ["first"], ORG)
    tasks += await add_all(groups, ["a", "b", "c", "d", "e"], ORG) + await add_all(groups, ["A", "B"], OTHER_ORG)
    store.may_run.set()
    await asyncio.gather(*tasks)
    assert groups.written == [["first"], ["a", "A", "b", "B"], ["c", "d", "e"]]
    assert {lock_ms for _, lock_ms in store.calls} == {LOCK_MS}, "it waits only shortly for the rows of one of them"


async def test_an_organization_whose_rows_are_locked_is_written_apart() -> None:
    store = HeldStore()
    groups = Groups(store)
    store.may_run.set()
    store.locked = ORG
    stuck = await add_all(groups, ["a"], ORG)
    results = await asyncio.gather(*await add_all(groups, ["b"], OTHER_ORG))
    later = await add_all(groups, ["c"], ORG)
    results += await asyncio.gather(*await add_all(groups, ["d"], OTHER_ORG))
    assert results == ["B", "D"]
    assert not any(task.done() for task in (*stuck, *later))
    store.unlocked.set()
    assert await asyncio.gather(*stuck, *later) == ["A", "C"]
    assert groups.written == [["b"], ["d"], ["a"], ["c"]]
    assert await asyncio.gather(*await add_all(groups, ["e"], ORG)) == ["E"]
    assert store.transactions[-1] is None, "it shares transactions again"


async def test_an_organization_whose_items_fail_stays_apart_for_a_while() -> None:
    store = HeldStore()
    groups = Groups(store)
    for _ in range(2):
        store.may_run.clear()
        tasks = await add_all(groups, ["first"], ORG)
        tasks += await add_all(groups, ["good"], ORG) + await add_all(groups, ["bad", "a"], OTHER_ORG)
        store.may_run.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in results if isinstance(result, str)] == ["FIRST", "GOOD", "A"]
    mixed = [items for items in groups.attempted if "bad" in items and len(items) > 2]
    assert mixed == [["good", "bad", "a"]], "it spoils the transaction of another once"
    groups._apart_until[OTHER_ORG] = 0.0
    assert await asyncio.gather(*await add_all(groups, ["b"], OTHER_ORG)) == ["B"]
    assert store.transactions[-1] is None


async def test_an_organization_that_is_written_apart_already_gets_more_from_a_transaction_that_fails() -> None:
    """One of its items may be in a transaction with others when the next one is written apart."""
    store = HeldStore()
    turns = asyncio.Semaphore(0)
    store.may_run.wait = turns.acquire  # type: ignore[method-assign]
    groups = Groups(store)

    async def run_next(count: int = 1) -> None:
        for _ in range(count):
            turns.release()
        for _ in range(10):
            await asyncio.sleep(0)

    tasks = await add_all(groups, ["bad"], ORG)
    tasks += await add_all(groups, ["bad"], ORG) + await add_all(groups, ["x"], OTHER_ORG)
    await run_next()  # the first fails, and the next two share a transaction
    tasks += await add_all(groups, ["c"], ORG)
    assert store.transactions == [None, None, ORG]
    turns.release()
    await run_next(10)
    async with asyncio.timeout(60):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(results[0]), type(results[1]), *results[2:]] == [ValueError, ValueError, "X", "C"]
    assert not groups._apart


async def test_an_item_that_fails_does_not_fail_the_others() -> None:
    store = HeldStore()
    groups = Groups(store)
    store.may_run.set()
    results = await asyncio.gather(*await add_all(groups, ["a", "bad", "b"]), return_exceptions=True)
    assert results[0] == "A"
    assert isinstance(results[1], ValueError)
    assert results[2] == "B"


async def test_an_unavailable_store_is_reported_to_all_without_trying_each() -> None:
    store = HeldStore()
    store.problem = StorageUnavailable("gone")
    groups = Groups(store)
    store.may_run.set()
    results = await asyncio.gather(*await add_all(groups, ["a", "b"]), return_exceptions=True)
    assert [type(result) for result in results] == [StorageUnavailable, StorageUnavailable]
    assert len(store.transactions) == 1
    store.problem = None
    assert await groups.add("c") == "C", "it goes on"


@pytest.mark.parametrize("count", [65, 130])
async def test_a_transaction_has_a_limited_number_of_items(count: int) -> None:
    store = HeldStore()
    groups = Groups(store)
    store.may_run.set()
    items = [str(number) for number in range(count)]
    assert await asyncio.gather(*await add_all(groups, items)) == items
    assert max(map(len, groups.written)) == 64


async def test_a_locked_row_in_postgres(postgres_database: Database) -> None:
    """A transaction of somebody else holds the row of one organization; another one shares a transaction with it."""
    transactions: list[tuple[list[str], str]] = []

    async def write(tx: Transaction, items: Sequence[str]) -> list[str]:
        row = await tx.one("get_lock_limit")
        assert row is not None
        transactions.append((sorted(items), row["value"]))
        for account in items:
            await tx.one("put_amount", id=account, amount=1)
        return [*items]

    async with postgres_database.open() as store:
        for account in ("locked", "free"):
            await store.write(add_account(account))
        groups = WriteGroups(store, write)
        with psycopg.connect(postgres_database.address) as somebody_else:
            somebody_else.execute("SELECT id FROM accounts WHERE id = 'locked' FOR UPDATE")
            stuck = asyncio.create_task(groups.add("locked", ORG))
            assert await groups.add("free", OTHER_ORG) == "free"
            assert not stuck.done(), "the row is still locked"
        assert await stuck == "locked"
    assert transactions[0] == (["free", "locked"], "1s")
    assert sorted(transactions[1:]) == [(["free"], "10s"), (["locked"], "10s")], "by themselves, they may wait longer"
