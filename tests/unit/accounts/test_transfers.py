"""Transfers: money is held once, captured or released once, and never created or lost."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.accounts import transfers
from penstock.accounts.transfers import EndedHold, NewHold
from penstock.errors import InsufficientBalance, StorageUnavailable
from penstock.store.base import ConstraintViolated, Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.values import Nanos, OrgId, nanos, new_id
from tests.databases import Database

NOW = 1_700_000_000_000


async def org(store: Store, usd: str, billing_type: str = "prepaid") -> OrgId:
    org_id = OrgId(new_id("org", NOW))

    async def write(tx: Any) -> None:
        await tx.run("add_org", id=org_id, name="o", billing=billing_type, created_at_ms=NOW)
        await transfers.add_credit(tx, org_id, nanos(usd), NOW, "test credit")

    await store.write(write)
    return org_id


async def hold(store: Store, org_id: OrgId, usd: str) -> str:
    request_id = new_id("req", NOW)
    await store.write(lambda tx: transfers.hold_all(tx, [NewHold(org_id, request_id, nanos(usd), NOW)], {}))
    return request_id


async def balance(store: Store, org_id: OrgId) -> tuple[int, int]:
    row = await store.one("get_balance", org_id=org_id)
    assert row is not None
    return row["available"], row["held"]


async def check_books(store: Store) -> None:
    assert await store.slow("audit_balances") == []
    assert await store.slow("audit_overdrafts") == []
    assert await store.slow("audit_refunds") == []


async def test_a_capture_charges_the_cost_and_returns_the_rest(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await hold(store, org_id, "0.40")
        assert await balance(store, org_id) == (nanos("0.60"), nanos("0.40"))
        await store.write(
            lambda tx: transfers.end_holds(tx, [EndedHold(org_id, request_id, nanos("0.40"), nanos("0.10"))], NOW)
        )
        assert await balance(store, org_id) == (nanos("0.90"), 0)
        await check_books(store)


async def test_a_release_returns_the_whole_hold(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await hold(store, org_id, "0.40")
        await store.write(lambda tx: transfers.end_holds(tx, [EndedHold(org_id, request_id, nanos("0.40"), None)], NOW))
        assert await balance(store, org_id) == (nanos("1"), 0)
        await check_books(store)


async def test_a_cost_above_the_hold_is_a_loss(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0.40")
        request_id = await hold(store, org_id, "0.40")
        await store.write(
            lambda tx: transfers.end_holds(tx, [EndedHold(org_id, request_id, nanos("0.40"), nanos("1.20"))], NOW)
        )
        assert await balance(store, org_id) == (0, 0)
        await check_books(store)


async def test_a_hold_ends_only_once(database: Database) -> None:
    """Of a hundred parallel captures and releases of one request, one succeeds."""
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await hold(store, org_id, "0.40")

        async def end(number: int) -> bool:
            try:
                if number % 2:
                    await store.write(
                        lambda tx: transfers.end_holds(tx, [EndedHold(org_id, request_id, nanos("0.40"), None)], NOW)
                    )
                else:
                    await store.write(
                        lambda tx: transfers.end_holds(
                            tx, [EndedHold(org_id, request_id, nanos("0.40"), nanos("0.1"))], NOW
                        )
                    )
            except ConstraintViolated:
                return False
            return True

        assert sum(await asyncio.gather(*(end(number) for number in range(100)))) == 1
        assert (await balance(store, org_id))[1] == 0
        await check_books(store)


async def test_a_request_has_only_one_hold(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await hold(store, org_id, "0.10")
        with pytest.raises(ConstraintViolated):
            await store.write(lambda tx: transfers.hold_all(tx, [NewHold(org_id, request_id, nanos("0.10"), NOW)], {}))
        assert await balance(store, org_id) == (nanos("0.90"), nanos("0.10"))


async def test_a_hold_above_the_balance_is_refused(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0.05")
        with pytest.raises(InsufficientBalance) as caught:
            await hold(store, org_id, "0.0500001")
        assert caught.value.status == 402
        assert "0.0500001 USD" in caught.value.message
        assert "0.05 USD are available" in caught.value.message
        assert caught.value.should_retry is False
        assert await balance(store, org_id) == (nanos("0.05"), 0)


async def test_a_hold_does_not_touch_what_is_reserved_in_memory(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        with pytest.raises(InsufficientBalance):
            await store.write(
                lambda tx: transfers.hold_all(
                    tx, [NewHold(org_id, new_id("req", NOW), nanos("0.5"), NOW)], {org_id: nanos("0.6")}
                )
            )


@pytest.mark.parametrize("reserved", ["0", "0.0000001"])
async def test_holds_of_several_requests_above_the_balance_are_all_refused(database: Database, reserved: str) -> None:
    """Also those of an organization that has enough. Each is then held by itself; see `store/groups.py`."""
    async with database.open() as store:
        rich, poor = await org(store, "1"), await org(store, "0.1")
        amounts = [(rich, "0.5"), (poor, "0.06"), (poor, "0.06")]
        holds = [NewHold(org_id, new_id("req", NOW), nanos(usd), NOW) for org_id, usd in amounts]
        known = {rich: nanos(reserved)}
        with pytest.raises((InsufficientBalance, ConstraintViolated)) as caught:
            await store.write(lambda tx: transfers.hold_all(tx, holds, known))
        assert not isinstance(caught.value, ConstraintViolated) or caught.value.kind == "check"
        assert [await balance(store, org_id) for org_id in (rich, poor)] == [(nanos("1"), 0), (nanos("0.1"), 0)]
        await store.write(lambda tx: transfers.hold_all(tx, holds[:2], known))
        assert await balance(store, rich) == (nanos("0.5"), nanos("0.5"))
        assert await balance(store, poor) == (nanos("0.04"), nanos("0.06"))
        with pytest.raises(InsufficientBalance, match=r"0\.04 USD are available"):
            await store.write(lambda tx: transfers.hold_all(tx, holds[2:], known))
        await check_books(store)


async def test_a_free_request_needs_no_balance(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0")
        request_id = await hold(store, org_id, "0")
        await store.write(lambda tx: transfers.end_holds(tx, [EndedHold(org_id, request_id, Nanos(0), Nanos(0))], NOW))
        await check_books(store)


async def test_a_postpaid_balance_may_be_negative(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0", "postpaid")
        request_id = await hold(store, org_id, "5")
        await store.write(
            lambda tx: transfers.end_holds(tx, [EndedHold(org_id, request_id, nanos("5"), nanos("5"))], NOW)
        )
        assert await balance(store, org_id) == (-nanos("5"), 0)
        await check_books(store)


async def test_parallel_holds_cannot_overdraw_a_balance(database: Database) -> None:
    """The balance is enough for seven holds; two hundred are made at once, through two stores."""
    async with database.open() as store, database.open() as other:
        org_id = await org(store, "0.70")

        async def try_hold(number: int) -> bool:
            while True:
                try:
                    await hold(store if number % 2 else other, org_id, "0.10")
                except InsufficientBalance:
                    return False
                except StorageUnavailable:  # no connection was free on a slow machine: nothing was held, try again
                    continue
                return True

        succeeded = await asyncio.gather(*(try_hold(number) for number in range(200)))
        assert sum(succeeded) == 7
        assert await balance(store, org_id) == (0, nanos("0.70"))
        await check_books(store)


async def write_holds(tx: Transaction, holds: Sequence[NewHold]) -> list[None]:
    await transfers.hold_all(tx, holds, {})
    return [None] * len(holds)


async def write_ends(tx: Transaction, ends: Sequence[EndedHold]) -> list[None]:
    await transfers.end_holds(tx, ends, NOW)
    return [None] * len(ends)


@pytest.mark.parametrize("seed", range(3))
async def test_holds_and_ends_in_groups_are_exact(database: Database, seed: int) -> None:
    """Requests of three organizations with random amounts, held and ended in groups by two processes at once."""
    chance = random.Random(seed)
    async with database.open() as one, database.open() as two:
        stores = [one, two]
        org_ids = [await org(one, "1"), await org(one, "0.3"), await org(one, "0", "postpaid")]
        holding = [WriteGroups(store, write_holds) for store in stores]
        ending = [WriteGroups(store, write_ends) for store in stores]
        spent: Counter[OrgId] = Counter()
        outcomes: Counter[str] = Counter()

        async def run_request(place: int, org_id: OrgId, amount: Nanos, cost: Nanos | None) -> None:
            request_id = new_id("req", NOW)
            try:
                await holding[place].add(NewHold(org_id, request_id, amount, NOW), org_id)
            except InsufficientBalance:
                outcomes["refused"] += 1
                return
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
            await ending[place].add(EndedHold(org_id, request_id, amount, cost), org_id)
            spent[org_id] += min(cost or 0, amount)
            outcomes["ended"] += 1

        requests = []
        for _ in range(150):
            amount = Nanos(chance.randrange(nanos("0.1")))
            cost = chance.choice([None, Nanos(chance.randrange(nanos("0.05"))), amount])
            requests.append(run_request(chance.randrange(2), chance.choice(org_ids), amount, cost))
        await asyncio.gather(*requests)
        assert outcomes["ended"] > 50
        assert outcomes["refused"] > 0
        for org_id, credit in zip(org_ids, ("1", "0.3", "0"), strict=True):
            assert await balance(one, org_id) == (nanos(credit) - spent[org_id], 0)
        await check_books(one)
