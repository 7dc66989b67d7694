"""Keep the items of recent responses for a while, so that their organization can refer to them by id."""

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.store.related import read_related
from penstock.values import OrgId, Retention

# Of one organization. When it has more, its oldest ones are removed.
MOST_ITEMS = 10_000
_MOST_BYTES = 256 * 1024  # of an item; a longer one is not kept
_MOST_ID_CHARS = 256


class ResponseItem(msgspec.Struct, frozen=True):
    """An item of a response, such as a message or a function call."""

    id: str
    data: bytes  # as JSON


class KeptItem(msgspec.Struct, frozen=True):
    """A row of the table `response_items`."""

    org_id: OrgId
    id: str
    request_id: str
    data: bytes
    expires_at_ms: int


def kept_items(
    settings: Settings, org_id: OrgId, request_id: str, items: Iterable[ResponseItem], at_ms: int
) -> tuple[KeptItem, ...]:
    """The items as they are kept: none where the settings say that no texts are stored, and no very long ones."""
    if settings.payloads == "none":
        return ()
    expires_at_ms = at_ms + Retention.parse(settings.response_item_retention).seconds * 1000
    return tuple(
        KeptItem(org_id, item.id, request_id, item.data, expires_at_ms)
        for item in items
        if 0 < len(item.id) <= _MOST_ID_CHARS and len(item.data) <= _MOST_BYTES
    )


async def add_items(tx: Transaction, items: Iterable[KeptItem]) -> None:
    """Store items. A provider may use an id again, also in one batch; the newest item has it."""
    newest = {(item.org_id, item.id): item for item in items}
    if newest:
        await tx.put_many("add_response_item", [msgspec.structs.asdict(newest[key]) for key in sorted(newest)])


async def find_items(store: Store, org_id: OrgId, ids: Sequence[str], now_ms: int) -> dict[str, bytes]:
    """The kept items with these ids, as JSON."""
    rows = await read_related(store, "list_response_items", ids, org_id=org_id, now_ms=now_ms)
    return {row["id"]: row["data"] for row in rows}


async def delete_old_items(store: Store, now_ms: int) -> int:
    """Remove the items that have expired, and the oldest of an organization that has too many; return their number."""
    deleted = await store.write(lambda tx: tx.run("delete_expired_response_items", now_ms=now_ms))
    for row in await store.slow("list_orgs_with_many_items", most=MOST_ITEMS):
        deleted += await store.write(partial(_delete_oldest, row["org_id"]))
    return deleted


async def _delete_oldest(org_id: OrgId, tx: Transaction) -> int:
    return await tx.run("delete_oldest_response_items", org_id=org_id, most=MOST_ITEMS)
