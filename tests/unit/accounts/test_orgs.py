"""Organizations are created with a valid name and billing type, and listed."""

import pytest

from penstock.accounts.orgs import create_org, list_orgs
from penstock.clock import ManualClock
from penstock.errors import InvalidRequest
from tests.databases import Database


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
