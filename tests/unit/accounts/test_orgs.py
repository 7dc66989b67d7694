"""Organizations are created with a valid name and billing type, and listed."""

import pytest
from msgspec.structs import replace

from penstock.accounts.orgs import change_org, create_org, list_orgs
from penstock.errors import InvalidRequest, NotFound
from penstock.values import OrgId
from tests.databases import Database
from tests.manual_clock import ManualClock


async def test_organizations_are_listed_oldest_first(database: Database) -> None:
    clock = ManualClock()
    async with database.open() as store:
        first = await create_org(store, clock, "One", "prepaid")
        clock.advance(1)
        second = await create_org(store, clock, "Two", "postpaid")
        assert await list_orgs(store) == [first, second]


async def test_a_bad_name_or_billing_type_is_refused(database: Database) -> None:
    async with database.open() as store:
        for name, billing, param in (
            ("", "prepaid", "name"),
            ("a\nb", "prepaid", "name"),
            ("x" * 201, "prepaid", "name"),
            ("Acme", "free", "billing"),
        ):
            with pytest.raises(InvalidRequest) as caught:
                await create_org(store, ManualClock(), name, billing)
            assert caught.value.param == param
        assert await list_orgs(store) == []


async def test_what_a_change_names_is_changed_and_the_rest_stays(database: Database) -> None:
    async with database.open() as store:
        org = await create_org(store, ManualClock(), "One", "prepaid")
        other = await create_org(store, ManualClock(), "Two", "prepaid")
        limited = await change_org(store, ManualClock(), org.id, {"nanos_per_month": 5, "storage_bytes": 0})
        assert limited == replace(org, nanos_per_month=5, storage_bytes=0)
        changed = await change_org(store, ManualClock(), org.id, {"name": "New", "nanos_per_month": None})
        assert changed == replace(org, name="New", storage_bytes=0)
        assert sorted(await list_orgs(store), key=lambda each: each.name) == [changed, other]


async def test_a_bad_change_changes_nothing(database: Database) -> None:
    async with database.open() as store:
        org = await create_org(store, ManualClock(), "One", "prepaid")
        for changes in ({"name": ""}, {"name": None}, {"nanos_per_month": -1}, {"storage_bytes": 2**63}):
            with pytest.raises(InvalidRequest):
                await change_org(store, ManualClock(), org.id, changes)
        with pytest.raises(NotFound):
            await change_org(store, ManualClock(), OrgId("org_nonesuch"), {"name": "New"})
        assert await list_orgs(store) == [org]
