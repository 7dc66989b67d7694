"""Check that balances, requests, generations, messages and files agree with each other."""

import hashlib
from contextlib import suppress

from penstock.clock import Clock
from penstock.media.files import find_strays
from penstock.media.rows import list_all_files, list_file_digests
from penstock.media.storage import FileMissing, Storage, storage_key
from penstock.store.base import Store
from penstock.store.database_time import follow_database_time
from penstock.values import Nanos

_MAX_SHOWN = 20
_OVERDUE_MS = 10 * 60 * 1000

# Queries that find rows which break a rule, and the message for each row.
RULES = {
    "audit_balances": "{id}: balance {available}/{held} differs from its transfers {sum_available}/{sum_held}",
    "audit_overdrafts": "{id}: prepaid balance below zero: {available}",
    "audit_open_holds": "{id}: ended as {status} but its hold was neither captured nor released",
    "audit_early_ends": "{id}: {status} but its hold was already captured or released",
    "audit_missing_holds": "{id}: {status} without the hold or the capture that belongs to it",
    "audit_unrecorded": "{id}: has a {kind} but no record",
    "audit_costs": "{id}: the record says {cost}, the transfers captured {captured}",
    "audit_refunds": "{id}: {moved} was captured and returned from a hold of {hold}",
    "audit_states": "{id}: generation {generation} but request {status}",
    "audit_messages": "{id}: ended with a webhook_url but has no message",
    "audit_early_messages": "{id}: has a message but has not ended",
    "audit_overdue": "{id}: unfinished past its deadline",
    "audit_abandoned": "{id}: its process is gone, but it has not ended",
    "audit_purged": "{id}: purged, but part of it is still stored",
    "audit_attempts": "{id}: sent to a second provider although the first may have completed it",
    "audit_losses": "{id}: completed for a failed generation, but its cost {cost} is not recorded as a loss",
    "audit_usage": "{org_id}: counted {counted} requests costing {cost}, records say {records} costing {spent}",
}
# Those of them that need the time: what was due before it breaks the rule.
_TIMED_RULES = ("audit_overdue", "audit_abandoned")


async def audit(store: Store, storage: Storage, clock: Clock, *, reads_files: bool = False) -> list[str]:
    """Return one line per breach of a rule, at most twenty per rule; an empty list if everything agrees.

    With `reads_files` every file is read and compared with its stored SHA-256, which takes as long as reading them all.
    """
    await follow_database_time(store, clock)
    breaches: list[str] = []
    for name, message in RULES.items():
        values = {"now_ms": clock.steady_ms() - _OVERDUE_MS} if name in _TIMED_RULES else {}
        rows = await store.slow(name, **values)
        breaches += [f"{name.removeprefix('audit_')}: {message.format(**row)}" for row in rows[:_MAX_SHOWN]]
    breaches += await _check_files(store, storage, clock.now_ms())
    return breaches + (await _find_changed_files(store, storage) if reads_files else [])


async def count_orphans(store: Store) -> tuple[int, Nanos]:
    """Return how many attempts were completed, or may have been, without a charge, and their known cost.

    They are not breaches: the provider bills them and no caller pays.
    """
    (row,) = await store.slow("count_orphans")
    return row["count"], Nanos(row["cost"])


async def _find_changed_files(store: Store, storage: Storage) -> list[str]:
    """Return the files whose bytes differ from the stored SHA-256. Missing files are the subject of another check."""
    changed = []
    for file in await list_file_digests(store):
        digest = hashlib.sha256()
        with suppress(FileMissing):
            async for chunk in storage.read(storage_key(file.id), 0, file.size_bytes):
                digest.update(chunk)
            if digest.digest() != file.sha256:
                changed.append(f"media: {storage_key(file.id)} was changed: its SHA-256 is not the stored one")
    return changed


async def _check_files(store: Store, storage: Storage, now_ms: int) -> list[str]:
    """Return files without a row, unexpired rows without a file, and rows with a wrong size.

    Rows and files are not deleted at the same moment. So a missing file counts only if its row is still there
    afterwards, and so does a file without a row only if it is.
    """
    files = {storage_key(file.id): file for file in await list_all_files(store)}
    sizes = {key: size for key, size, _ in await storage.list_files()}
    expected = {key for key, file in files.items() if file.expires_at_ms is None or file.expires_at_ms > now_ms}
    missing = expected - sizes.keys()
    if missing:
        missing &= {storage_key(file.id) for file in await list_all_files(store)}
    wrong = [
        f"media: {key} has {sizes[key]} bytes, its row says {file.size_bytes}"
        for key, file in files.items()
        if key in sizes and sizes[key] != file.size_bytes
    ]
    strays = {*await find_strays(store, storage)}
    if strays:
        strays &= {file.key for file in await storage.list_files()}
    found = [f"media: {key} is missing" for key in missing] + [f"media: {key} belongs to nothing" for key in strays]
    return sorted(found + wrong)
