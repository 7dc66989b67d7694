"""The first organization and its keys, which a first start creates."""

from dataclasses import dataclass, field

from penstock.accounts.key_records import ADMIN, OPERATOR
from penstock.accounts.keys import Keys
from penstock.accounts.orgs import add_first_org
from penstock.app.opening import open_store_and_vault
from penstock.audit_log import Note, write_audited
from penstock.clock import Clock
from penstock.gateway import Gateway
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.values import OrgId, nanos, new_id


@dataclass(frozen=True, slots=True)
class Welcome:
    """The first organization, and its key if this start created it: the key is shown once and stored nowhere."""

    org_id: OrgId
    key: str | None = field(repr=False)


async def ensure_first_org(store: Store, settings: Settings, clock: Clock) -> OrgId:
    """Return the default organization; create it with its starting credit if it does not exist."""
    now = clock.now_ms()
    org_id = OrgId(new_id("org", now))

    async def write(tx: Transaction, note: Note) -> None:
        if await tx.run("add_fact", name="first_org", value=org_id):
            await add_first_org(tx, note, org_id, settings.billing, nanos(settings.starting_credit_usd), now)

    row = await store.one("get_fact", name="first_org")
    if row is None:
        await write_audited(store, now, write)
        row = await store.one("get_fact", name="first_org")
    assert row is not None, "this process or another has added it"
    return OrgId(row["value"])


async def ensure_first_key(gateway: Gateway) -> Welcome:
    """Create the first organization, its credit and its first key for everything, if no start has done so yet."""
    org_id = await ensure_first_org(gateway.store, gateway.settings, gateway.clock)
    if await gateway.store.one("get_fact", name="first_key") is not None:
        return Welcome(org_id, None)
    created = await gateway.keys.create_key(org_id, name="first key", scopes=[ADMIN, OPERATOR])
    is_first = await gateway.store.write(lambda tx: tx.run("add_fact", name="first_key", value=created.id))
    if not is_first:  # another process of the cluster started at the same moment
        await gateway.keys.revoke_key(org_id, created.id)
    return Welcome(org_id, created.key if is_first else None)


async def ensure_terminal_key(settings: Settings, *, is_operator: bool = False) -> str:
    """Return the first organization's key for the command line; create it if there is none."""
    async with open_store_and_vault(settings) as (store, vault):
        org_id = await ensure_first_org(store, settings, Clock())
        return await Keys(store, vault, Clock()).ensure_terminal_key(org_id, is_operator=is_operator)
