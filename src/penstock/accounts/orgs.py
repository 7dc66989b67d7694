"""Create, change and list organizations, and add credit to them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.accounts.transfers import Credit, add_credit
from penstock.audit_log import Act, Note, changed, write_audited
from penstock.clock import Clock
from penstock.errors import InvalidRequest, NotFound
from penstock.provenance.policy import check_words
from penstock.store.base import Store, Transaction
from penstock.values import ZERO, Nanos, OrgId, dollars, new_id

MAX_NAME_CHARS = 200
MAX_USD_PER_MONTH = 1_000_000
BILLING_TYPES = ("prepaid", "postpaid")
_CHANGEABLE = ("name", "nanos_per_month", "storage_bytes", "provenance")
_MAX_INTEGER = 2**63 - 1


class Org(msgspec.Struct, frozen=True):
    """An organization, its balance and its limits."""

    id: OrgId
    name: str
    billing: str
    available: Nanos
    held: Nanos
    created_at_ms: int
    nanos_per_month: int | None = None  # most that its keys together may spend in a month (UTC)
    storage_bytes: int | None = None  # most bytes of its files; 0: no limit; None: as the settings say
    provenance: str | None = None  # what is asked of Content Credentials; None: as the settings say


async def create_org(store: Store, clock: Clock, name: str, billing: str) -> Org:
    """Create an organization without money, keys and limits; raise InvalidRequest for a bad name or billing type."""
    _check_name(name)
    if billing not in BILLING_TYPES:
        raise InvalidRequest(f"`billing` must be one of: {', '.join(BILLING_TYPES)}.", param="billing")
    at_ms = clock.now_ms()
    org = Org(OrgId(new_id("org", at_ms)), name, billing, ZERO, ZERO, at_ms)

    async def write(tx: Transaction, note: Note) -> None:
        await add_org(tx, org.id, name, billing, at_ms)
        note(org_created(org.id, name, billing))

    await write_audited(store, at_ms, write)
    return org


def org_created(org_id: OrgId, name: str, billing: str) -> Act:
    """The new organization, for the audit log."""
    return Act("organization.created", org_id, org_id, after={"name": name, "billing_type": billing})


async def add_first_org(tx: Transaction, note: Note, org_id: OrgId, billing: str, amount: Nanos, at_ms: int) -> None:
    """Add the organization of a new installation, with its starting credit."""
    await add_org(tx, org_id, "default", billing, at_ms)
    note(org_created(org_id, "default", billing))
    note(credit_added(await add_credit(tx, org_id, amount, at_ms, "starting credit")))


async def credit_org(store: Store, clock: Clock, org_id: OrgId, amount: Nanos, note_text: str) -> Credit:
    """Add credit to an organization, which must exist."""
    at_ms = clock.now_ms()

    async def write(tx: Transaction, note: Note) -> Credit:
        credit = await add_credit(tx, org_id, amount, at_ms, note_text)
        note(credit_added(credit))
        return credit

    return await write_audited(store, at_ms, write)


def credit_added(credit: Credit) -> Act:
    """Credit, for the audit log."""
    facts = {"id": credit.id, "amount": f"{dollars(credit.amount):f}", "note": credit.note}
    return Act("credit.added", credit.org_id, credit.org_id, after=facts)


async def add_org(tx: Transaction, org_id: OrgId, name: str, billing: str, at_ms: int) -> None:
    await tx.run("add_org", id=org_id, name=name, billing=billing, created_at_ms=at_ms)


async def get_org(store: Store | Transaction, org_id: OrgId) -> Org:
    """Raises NotFound for an unknown organization."""
    row = await store.one("get_org", id=org_id)
    if row is None:
        raise NotFound(f"No such organization: {org_id}.")
    return Org(**row)


async def change_org(store: Store, clock: Clock, org_id: OrgId, changes: Mapping[str, Any]) -> Org:
    """Change the name, the limits or the policy, by the names of the fields of `Org`, and return the organization. None
    removes a limit. Every process notices within two seconds, and a storage limit within half a minute.

    Raises InvalidRequest for a bad value and NotFound for an unknown organization.
    """
    if "name" in changes:
        _check_name(changes["name"])
    if (words := changes.get("provenance")) is not None:
        check_words(words)
    for name in ("nanos_per_month", "storage_bytes"):
        if (value := changes.get(name)) is not None and not 0 <= value <= _MAX_INTEGER:
            raise InvalidRequest(f"`{name}` must be from 0 to {_MAX_INTEGER}.", param=name)

    async def write(tx: Transaction, note: Note) -> Org:
        await tx.one("lock_org", id=org_id)
        former = await get_org(tx, org_id)
        org = msgspec.structs.replace(former, **changes)
        await tx.run("set_org", id=org_id, **{name: getattr(org, name) for name in _CHANGEABLE})
        note(changed("organization.changed", org_id, org_id, _facts(former), _facts(org)))
        return org

    return await write_audited(store, clock.now_ms(), write)


def _facts(org: Org) -> dict[str, Any]:
    """What can be changed, for the audit log."""
    budget = None if org.nanos_per_month is None else f"{dollars(Nanos(org.nanos_per_month)):f}"
    limits = {"usd_per_month": budget, "storage_bytes": org.storage_bytes}
    return {"name": org.name, **limits, "provenance": org.provenance}


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidRequest(f"`name` must have 1 to {MAX_NAME_CHARS} printable characters.", param="name")


async def list_orgs(store: Store) -> list[Org]:
    """Return all organizations, oldest first."""
    return [Org(**row) for row in await store.slow("list_orgs")]
