"""Check every promise of the ledger against what is stored; what is found is a fault of ours."""

from penstock.clock import Clock
from penstock.media.files import find_strays
from penstock.media.storage import Storage, storage_key
from penstock.store.base import Store
from penstock.values import Nanos

_SHOWN = 20
_OVERDUE_MS = 10 * 60 * 1000

# Each query finds rows that break one rule, so an empty answer is a kept promise.
RULES = {
    "audit_balances": "{id}: balance {available}/{held} differs from its transfers {sum_available}/{sum_held}",
    "audit_overdrafts": "{id}: prepaid balance below zero: {available}",
    "audit_open_holds": "{id}: ended as {status} but its hold was neither captured nor released",
    "audit_early_ends": "{id}: {status} but its hold is already settled",
    "audit_missing_holds": "{id}: {status} without the transfer that goes with it",
    "audit_costs": "{id}: the record says {cost}, the transfers captured {captured}",
    "audit_refunds": "{id}: {moved} came out of a hold of {hold}",
    "audit_states": "{id}: generation {generation} but request {status}",
    "audit_messages": "{id}: ended with a webhook_url but has no message",
    "audit_early_messages": "{id}: has a message but has not ended",
    "audit_overdue": "{id}: unfinished past its deadline",
    "audit_purged": "{id}: purged, but something of it is still stored",
    "audit_attempts": "{id}: sent to another provider although the first may have made it",
    "audit_losses": "{id}: made for a generation that failed, its cost {cost} not booked as a loss",
    "audit_usage": "{org_id}: counted {counted} requests costing {cost}, records say {records} costing {spent}",
}


async def audit(store: Store, shelf: Storage, clock: Clock) -> list[str]:
    """One line per breach."""
    breaches: list[str] = []
    for name, words in RULES.items():
        values = {"now_ms": clock.now_ms() - _OVERDUE_MS} if name == "audit_overdue" else {}
        rows = await store.slow(name, **values)
        breaches += [f"{name.removeprefix('audit_')}: {words.format(**row)}" for row in rows[:_SHOWN]]
    return breaches + await _files(store, shelf, clock.now_ms())


async def orphans(store: Store) -> tuple[int, Nanos]:
    """What providers made, or may have made, without anybody being charged: no breach, but somebody's bill. The second
    is what is known to be lost.
    """
    (row,) = await store.slow("count_orphans")
    return row["count"], Nanos(row["cost"])


async def _files(store: Store, shelf: Storage, now_ms: int) -> list[str]:
    """A row for each file and a file for each row; what is being removed loses its file first."""
    rows = {storage_key(row["id"]): row for row in await store.slow("list_all_files")}
    sizes = {key: size for key, size, _ in await shelf.list_files()}
    due = {key for key, row in rows.items() if row["expires_at_ms"] is None or row["expires_at_ms"] > now_ms}
    absent = due - sizes.keys()
    kept = {storage_key(row["id"]) for row in await store.slow("list_all_files")} if absent else set()
    missing = [f"media: {key} is missing" for key in absent & kept]
    wrong = [
        f"media: {key} has {sizes[key]} bytes, its row says {row['size_bytes']}"
        for key, row in rows.items()
        if key in sizes and sizes[key] != row["size_bytes"]
    ]
    return sorted(missing + wrong + [f"media: {key} belongs to nothing" for key in await find_strays(store, shelf)])
