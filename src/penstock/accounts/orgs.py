"""Create and list organizations."""

from dataclasses import dataclass

from penstock.clock import Clock
from penstock.errors import InvalidRequest
from penstock.store.base import Store, Transaction
from penstock.values import ZERO, Nanos, new_id

MAX_NAME_CHARS = 200
BILLING_TYPES = ("prepaid", "postpaid")


@dataclass(frozen=True, slots=True)
class Org:
    """An organization and its balance."""

    id: str
    name: str
    billing: str
    available: Nanos
    held: Nanos
    created_at_ms: int


async def create_org(store: Store, clock: Clock, name: str, billing: str) -> Org:
    """Create an organization without money and keys; raise InvalidRequest for a bad name or billing type."""
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidRequest(f"`name` must have 1 to {MAX_NAME_CHARS} printable characters.", param="name")
    if billing not in BILLING_TYPES:
        raise InvalidRequest(f"`billing` must be one of: {', '.join(BILLING_TYPES)}.", param="billing")
    at_ms = clock.now_ms()
    org = Org(new_id("org", at_ms), name, billing, ZERO, ZERO, at_ms)
    await store.write(lambda tx: add_org(tx, org.id, name, billing, at_ms))
    return org


async def add_org(tx: Transaction, org_id: str, name: str, billing: str, at_ms: int) -> None:
    await tx.run("add_org", id=org_id, name=name, billing=billing, created_at_ms=at_ms)


async def list_orgs(store: Store) -> list[Org]:
    """Return all organizations, oldest first."""
    return [Org(**row) for row in await store.slow("list_orgs")]
