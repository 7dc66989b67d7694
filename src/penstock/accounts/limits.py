"""Check the limits of a key: requests per minute, concurrent requests, dollars per day."""

from penstock.errors import RateLimited
from penstock.schema import SLOT_MS, Caller
from penstock.store.base import Transaction
from penstock.values import Nanos, dollars, first_id

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
_CONCURRENCY_RETRY_SECONDS = 1
_MAX_RETRY_SECONDS = 120


async def check_limits(tx: Transaction, caller: Caller, hold: Nanos, now_ms: int) -> None:
    """Raise RateLimited if a request that holds this amount would exceed a limit of the caller's key.

    Runs in the transaction that accepts the request. The key is locked, so that parallel calls of one key are checked
    one after the other.
    """
    await tx.one("lock_key", id=caller.key_id)
    if caller.requests_per_minute is not None:
        await _check_rate(tx, caller, caller.requests_per_minute, now_ms)
    if caller.concurrent_requests is not None:
        await _check_concurrency(tx, caller, caller.concurrent_requests)
    if caller.nanos_per_day is not None:
        await _check_spend(tx, caller, Nanos(caller.nanos_per_day), hold, now_ms)


async def _check_rate(tx: Transaction, caller: Caller, limit: int, now_ms: int) -> None:
    low = first_id("req", now_ms - _MINUTE_MS)
    row = await tx.one("count_recent_of_key", org_id=caller.org_id, key_id=caller.key_id, low=low)
    if row and row["count"] >= limit:
        headers = {
            "x-ratelimit-limit-requests": str(limit),
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "60s",
        }
        raise _rate_limited(f"This key is limited to {limit} requests per minute.", 60, headers)


async def _check_concurrency(tx: Transaction, caller: Caller, limit: int) -> None:
    row = await tx.one("count_open_of_key", org_id=caller.org_id, key_id=caller.key_id)
    if row and row["count"] >= limit:
        raise _rate_limited(f"This key is limited to {limit} concurrent requests.", _CONCURRENCY_RETRY_SECONDS)


async def _check_spend(tx: Transaction, caller: Caller, limit: Nanos, hold: Nanos, now_ms: int) -> None:
    """Count what was spent this UTC day and what is held for open requests."""
    first_slot = now_ms // _DAY_MS * _DAY_MS // SLOT_MS
    row = await tx.one("sum_spend_of_key", org_id=caller.org_id, key_id=caller.key_id, first=first_slot)
    spent = row["spent"] + row["held"] if row else 0
    if spent + hold > limit:
        seconds_left = (_DAY_MS - now_ms % _DAY_MS) // 1000
        message = f"This key is limited to {dollars(limit)} USD per day."
        raise _rate_limited(message, min(seconds_left, _MAX_RETRY_SECONDS))


def _rate_limited(message: str, retry_seconds: int, headers: dict[str, str] | None = None) -> RateLimited:
    return RateLimited(message, headers={"retry-after": str(retry_seconds), **(headers or {})}, should_retry=True)
