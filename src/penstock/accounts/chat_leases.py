"""End chat calls whose process is gone, and release their holds."""

from functools import partial

from penstock.accounts import transfers
from penstock.accounts.orgs import list_orgs
from penstock.accounts.requests import RequestEnd, count_usage, end_request
from penstock.clock import Clock
from penstock.errors import InternalError
from penstock.store.base import Row, Store, Transaction
from penstock.values import Nanos, first_id

_MAX_ABANDONED = 1000


async def release_abandoned(store: Store, clock: Clock, before_ms: int) -> int:
    """Fail calls that began before a moment and whose process died, release their holds, and return how many."""
    count = 0
    high = first_id("req", before_ms)
    for org in await list_orgs(store):
        rows = await store.slow("list_abandoned_requests", org_id=org.id, high=high, limit=_MAX_ABANDONED)
        count += len(rows)
        if rows:
            await store.write(partial(_fail_abandoned, rows, clock.now_ms()))
    return count


async def _fail_abandoned(rows: list[Row], now_ms: int, tx: Transaction) -> None:
    problem = InternalError("The gateway was interrupted while it handled this call.")
    end = RequestEnd("upstream_failure", error_code=problem.code, error_message=problem.message)
    usage = {row["id"]: await end_request(tx, row["org_id"], row["id"], end) for row in rows}
    holds = [
        transfers.EndedHold(row["org_id"], row["id"], Nanos(row["hold"]), None) for row in rows if usage[row["id"]]
    ]
    await count_usage(tx, filter(None, usage.values()))
    await transfers.end_holds(tx, holds, now_ms)
