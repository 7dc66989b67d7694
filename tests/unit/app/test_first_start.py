"""The first organization and its keys."""

import asyncio

from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key, ensure_first_org
from penstock.app.opening import open_store_and_vault
from penstock.values import OrgId, nanos
from tests.gateway import Installation
from tests.manual_clock import ManualClock

ORG = OrgId("org_1")


async def test_the_first_start_returns_the_key_once(installation: Installation) -> None:
    async with build_gateway(installation.own_settings(starting_credit_usd="2.5"), installation.clock, {}) as gateway:
        first, again = await ensure_first_key(gateway), await ensure_first_key(gateway)
        assert first.key is not None
        assert again.key is None
        assert again.org_id == first.org_id
        caller = await gateway.keys.authenticate(f"Bearer {first.key}")
        assert (caller.org_id, caller.scopes) == (first.org_id, frozenset({"admin", "operator", "metrics"}))
        balance = await gateway.balances.get(first.org_id)
        assert nanos(balance["available"]["amount"]) == nanos("2.5")
        assert first.key not in repr(first)


async def test_ten_first_starts_at_once(installation: Installation) -> None:
    """They create one organization, one credit and one valid key."""
    async with (
        build_gateway(installation.own_settings(), installation.clock, {}) as gateway,
        build_gateway(installation.own_settings(), installation.clock, {}) as other,
    ):
        welcomes = await asyncio.gather(*(ensure_first_key(process) for process in (gateway, other) * 5))
        assert len({welcome.org_id for welcome in welcomes}) == 1
        (key,) = [welcome.key for welcome in welcomes if welcome.key]
        await gateway.keys.authenticate(f"Bearer {key}")
        page = await gateway.keys.list_records(welcomes[0].org_id, status="active")
        assert len(page.data) == 1
        row = await gateway.store.one("get_balance", org_id=welcomes[0].org_id)
        assert row is not None
        assert row["available"] == nanos("10")


async def test_an_organization_made_by_a_command_gets_its_key_at_the_start(installation: Installation) -> None:
    async with open_store_and_vault(installation.own_settings()) as (store, _):
        org_id = await ensure_first_org(store, installation.own_settings(), ManualClock())
    async with build_gateway(installation.own_settings(), installation.clock, {}) as gateway:
        welcome = await ensure_first_key(gateway)
        assert welcome.org_id == org_id
        assert welcome.key is not None


# ------------------------------------------------------------------------------------------------------------ the parts
