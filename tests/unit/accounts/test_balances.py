"""Balances as the interface shows them."""

from decimal import Decimal

from penstock.accounts import transfers
from penstock.accounts.balances import Balances
from penstock.store.base import Store, Transaction
from penstock.values import nanos, new_id
from tests.databases import Database

NOW = 1_700_000_000_000


async def create_org(store: Store, billing: str, credit_usd: str, hold_usd: str) -> str:
    org_id = new_id("org", NOW)

    async def write(tx: Transaction) -> None:
        await tx.run("add_org", id=org_id, name="o", billing=billing, created_at_ms=NOW)
        await transfers.add_credit(tx, org_id, nanos(credit_usd), NOW, "test credit")
        await transfers.hold(tx, org_id, new_id("req", NOW), nanos(hold_usd), NOW)

    await store.write(write)
    return org_id


async def test_a_prepaid_balance_is_what_is_available_in_dollars(database: Database) -> None:
    async with database.open() as store:
        org_id = await create_org(store, "prepaid", "12.345", "0.005")
        assert await Balances(store).get(org_id) == {
            "object": "balance",
            "billing_type": "prepaid",
            "available": {"amount": Decimal("12.34"), "currency": "usd"},
        }


async def test_a_postpaid_balance_has_no_amount(database: Database) -> None:
    async with database.open() as store:
        org_id = await create_org(store, "postpaid", "0", "5")
        assert await Balances(store).get(org_id) == {
            "object": "balance",
            "billing_type": "postpaid",
            "available": {"amount": None, "currency": "usd"},
        }


async def test_waiting_charges_are_written_first(database: Database) -> None:
    async with database.open() as store:
        org_id = await create_org(store, "prepaid", "1", "0")

        async def catch_up(_: str) -> None:
            charge = (org_id, new_id("req", NOW), nanos("0.25"))
            await store.write(lambda tx: transfers.capture_reserved(tx, [charge], NOW))

        shown = await Balances(store, catch_up).get(org_id)
        assert shown["available"]["amount"] == Decimal("0.75")
