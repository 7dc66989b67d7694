"""Items that are added during a transaction are written together with the next one, and fail each for itself."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.errors import StorageUnavailable
from penstock.store.groups import WriteGroups


class HeldStore:
    """Runs each transaction when it is let go."""

    def __init__(self) -> None:
        self.transactions: list[str | None] = []
        self.may_run = asyncio.Event()
        self.problem: Exception | None = None

    async def write(self, work: Any, *, org_id: str | None = None) -> Any:
        self.transactions.append(org_id)
        await self.may_run.wait()
        if self.problem:
            raise self.problem
        return await work(None)


class Groups(WriteGroups[str, str]):
    def __init__(self, store: HeldStore) -> None:
        self.written: list[list[str]] = []
        super().__init__(store, self.write_items)  # type: ignore[arg-type]

    async def write_items(self, tx: object, items: Sequence[str]) -> list[str]:
        if "bad" in items:
            raise ValueError
        self.written.append([*items])
        return [item.upper() for item in items]


async def add_all(groups: Groups, items: Sequence[str], org_id: str | None = None) -> list[asyncio.Task[str]]:
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


async def test_items_of_two_organizations_are_not_mixed() -> None:
    store = HeldStore()
    groups = Groups(store)
    tasks = await add_all(groups, ["a", "b"], "org_1") + await add_all(groups, ["c"], "org_2")
    assert store.transactions == ["org_1", "org_2"], "neither waits for the other"
    store.may_run.set()
    await asyncio.gather(*tasks)
    assert groups.written == [["a", "b"], ["c"]]


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
