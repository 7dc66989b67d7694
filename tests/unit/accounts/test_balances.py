"""Balances as the interface shows them."""

from decimal import Decimal

from penstock.accounts import transfers
from penstock.accounts.balances import Balances
from penstock.accounts.requests import RequestUsage, count_usage
from penstock.schema import SLOT_MS
from penstock.store.base import Store, Transaction
from penstock.values import OrgId, nanos, new_id
from tests.databases import Database, nothing_waits
from tests.manual_clock import ManualClock

NOW = 1_700_000_000_000


async def create_org(store: Store, billing: str, credit_usd: str, hold_usd: str) -> OrgId:
    org_id = OrgId(new_id("org", NOW))

    async def write(tx: Transaction) -> None:
        await tx.run("add_org", id=org_id, name="o", billing=billing, created_at_ms=NOW)
        await transfers.add_credit(tx, org_id, nanos(credit_usd), NOW, "test credit")
        await transfers.hold_all(tx, [transfers.NewHold(org_id, new_id("req", NOW), nanos(hold_usd), NOW)], {})

    await store.write(write)
    return org_id


async def test_a_prepaid_balance_is_what_is_available_in_dollars(database: Database) -> None:
    async with database.open() as store:
        org_id = await create_org(store, "prepaid", "12.345", "0.005")
        assert await Balances(store, ManualClock(NOW), nothing_waits).get(org_id) == {
            "object": "balance",
            "billing_type": "prepaid",
            "available": {"amount": Decimal("12.34"), "currency": "usd"},
            "held": Decimal("0.005"),
            "pace": {"days": 7.0, "spent": 0, "per_day": 0, "days_left": None},
        }


async def test_a_postpaid_balance_has_no_amount(database: Database) -> None:
    async with database.open() as store:
        org_id = await create_org(store, "postpaid", "0", "5")
        balance = await Balances(store, ManualClock(NOW), nothing_waits).get(org_id)
        assert (balance["billing_type"], balance["available"]) == ("postpaid", {"amount": None, "currency": "usd"})
        assert balance["pace"]["days_left"] is None


async def test_the_pace_says_how_long_the_balance_lasts(database: Database) -> None:
    """An organization that is younger than a week is judged by its own age, and by a day at least."""
    day = 86_400_000
    async with database.open() as store:
        org_id = await create_org(store, "prepaid", "10", "0")
        balances = Balances(store, clock := ManualClock(NOW), nothing_waits)

        async def spend(usd: str) -> None:
            usage = RequestUsage(org_id, "key_a", "completed", clock.now_ms() // SLOT_MS, nanos(usd))
            await store.write(lambda tx: count_usage(tx, [usage]))

        await spend("2")
        pace = (await balances.get(org_id))["pace"]
        assert pace == {"days": 1.0, "spent": Decimal(2), "per_day": Decimal(2), "days_left": 5.0}
        clock.advance(2 * day // 1000 - NOW % SLOT_MS // 1000)
        await spend("2")
        pace = (await balances.get(org_id))["pace"]
        assert pace == {"days": 2.0, "spent": Decimal(4), "per_day": Decimal(2), "days_left": 5.0}
        clock.advance(6 * day // 1000)
        pace = (await balances.get(org_id))["pace"]
        assert (pace["days"], pace["spent"], pace["days_left"]) == (7.0, Decimal(2), 35.0), "only the last week counts"


async def test_waiting_charges_are_written_first(database: Database) -> None:
    async with database.open() as store:
        org_id = await create_org(store, "prepaid", "1", "0")

        async def catch_up(_: str) -> None:
            charge = (org_id, new_id("req", NOW), nanos("0.25"))
            await store.write(lambda tx: transfers.capture_reserved(tx, [charge], NOW))

        shown = await Balances(store, ManualClock(NOW), catch_up).get(org_id)
        assert shown["available"]["amount"] == Decimal("0.75")
