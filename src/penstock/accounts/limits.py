"""Per-key rate, concurrency and spend."""

from penstock.errors import RateLimited
from penstock.schema import SLOT_MS, Caller
from penstock.store.base import Transaction
from penstock.values import Nanos, dollars, first_id

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000


async def check(tx: Transaction, caller: Caller, hold: Nanos, now_ms: int) -> None:
    """Inside the transaction that accepts, and one call of a key at a time: parallel calls cannot pass together."""
    await tx.one("lock_key", id=caller.key_id)
    if caller.requests_per_minute is not None:
        await _check_rate(tx, caller, caller.requests_per_minute, now_ms)
    if caller.concurrent_requests is not None:
        row = await tx.one("count_open_of_key", org_id=caller.org_id, key_id=caller.key_id)
        if row and row["count"] >= caller.concurrent_requests:
            raise _limited(f"This key may have {caller.concurrent_requests} requests under way at a time.", 1)
    if caller.nanos_per_day is not None:
        await _check_spend(tx, caller, Nanos(caller.nanos_per_day), hold, now_ms)


async def _check_rate(tx: Transaction, caller: Caller, most: int, now_ms: int) -> None:
    low = first_id("req", now_ms - _MINUTE_MS)
    row = await tx.one("count_recent_of_key", org_id=caller.org_id, key_id=caller.key_id, low=low)
    made = row["count"] if row else 0
    if made >= most:
        headers = {
            "x-ratelimit-limit-requests": str(most),
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "60s",
        }
        raise _limited(f"This key may make {most} requests a minute.", 60, headers)


async def _check_spend(tx: Transaction, caller: Caller, most: Nanos, hold: Nanos, now_ms: int) -> None:
    """Days are UTC days; what is held counts as spent until it is settled."""
    first = now_ms // _DAY_MS * _DAY_MS // SLOT_MS
    spent = await tx.one("sum_key_since", org_id=caller.org_id, key_id=caller.key_id, first=first)
    held = await tx.one("sum_holds_of_key", org_id=caller.org_id, key_id=caller.key_id)
    total = (spent["cost"] if spent else 0) + (held["cost"] if held else 0) + hold
    if total > most:
        seconds = (_DAY_MS - now_ms % _DAY_MS) // 1000
        raise _limited(f"This key may spend {dollars(most)} USD a day.", min(seconds, 120))


def _limited(message: str, seconds: int, headers: dict[str, str] | None = None) -> RateLimited:
    return RateLimited(message, headers={"retry-after": str(seconds), **(headers or {})}, should_retry=True)
