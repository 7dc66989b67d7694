"""Check the limits of keys (requests, dollars, models), and the dollars per month of organizations and labels."""

from collections.abc import Mapping
from datetime import UTC, datetime

from penstock.accounts.labels import stored_label
from penstock.errors import BudgetReached, PermissionDenied, RateLimited, TooManyRequests, quoted
from penstock.schema import SLOT_MS, Caller
from penstock.store.base import Transaction
from penstock.values import DAY_MS, Nanos, OrgId, dollars, first_id, month_text

_MINUTE_MS = 60_000
_MAX_SHOWN = 10
_CONCURRENCY_RETRY_SECONDS = 1


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
    if caller.nanos_per_day is not None or caller.nanos_per_month is not None:
        await _check_spend(tx, caller, hold, now_ms)


async def _check_rate(tx: Transaction, caller: Caller, limit: int, now_ms: int) -> None:
    low = first_id("req", now_ms - _MINUTE_MS)
    row = await tx.one("count_recent_of_key", org_id=caller.org_id, key_id=caller.key_id, low=low)
    if row and row["count"] >= limit:
        raise too_many_requests(limit, 60)


def rate_headers(limit: int, left: int, reset_seconds: int) -> dict[str, str]:
    """The headers that say how many requests a key may still make in this minute, and when it ends."""
    return {
        "x-ratelimit-limit-requests": str(limit),
        "x-ratelimit-remaining-requests": str(left),
        "x-ratelimit-reset-requests": f"{reset_seconds}s",
    }


def too_many_requests(limit: int, reset_seconds: int) -> TooManyRequests:
    """The error for one request too many in this minute."""
    headers = {"retry-after": str(reset_seconds), **rate_headers(limit, 0, reset_seconds)}
    return TooManyRequests(f"This key is limited to {limit} requests per minute.", headers=headers, should_retry=True)


async def _check_concurrency(tx: Transaction, caller: Caller, limit: int) -> None:
    row = await tx.one("count_open_of_key", org_id=caller.org_id, key_id=caller.key_id)
    if row and row["count"] >= limit:
        headers = {"retry-after": str(_CONCURRENCY_RETRY_SECONDS)}
        message = f"This key is limited to {limit} concurrent requests."
        raise RateLimited(message, headers=headers, should_retry=True)


async def _check_spend(tx: Transaction, caller: Caller, hold: Nanos, now_ms: int) -> None:
    """Count what was spent this UTC day and this UTC month, and what is held for open requests."""
    day_ms = day_start_ms(now_ms)
    month_ms = day_ms if caller.nanos_per_month is None else month_start_ms(now_ms)
    slots = {"day": day_ms // SLOT_MS, "month": month_ms // SLOT_MS}
    row = await tx.one("sum_spend_of_key", org_id=caller.org_id, key_id=caller.key_id, **slots)
    assert row is not None, "sums are always returned"
    for limit, spent, span, until_ms in (
        (caller.nanos_per_day, row["today"], "day", day_ms + DAY_MS),
        (caller.nanos_per_month, row["this_month"], "month", next_month_ms(now_ms)),
    ):
        if limit is not None and spent + row["held"] + hold > limit:
            message, headers = _limit_of_span("This key", limit, span, until_ms, now_ms)
            if span == "month":
                raise BudgetReached(message, caller.key_id, headers=headers)
            raise RateLimited(message, headers=headers, should_retry=False)


async def check_budgets(tx: Transaction, caller: Caller, labels: Mapping[str, str], now_ms: int) -> None:
    """Raise RateLimited if the organization, or one of these labels, has now spent and held more than it may spend in
    this UTC month.

    Runs after the hold in the transaction that accepts the request. The hold has locked the organization, so that
    parallel calls of its keys are checked one after the other.
    """
    await _check_org_budget(tx, caller, now_ms)
    for label in caller.declared_labels:
        if label.budget and label.name in labels:
            await _check_label_budget(tx, caller.org_id, label.name, labels[label.name], now_ms)


async def _check_label_budget(tx: Transaction, org_id: OrgId, name: str, value: str, now_ms: int) -> None:
    asked = {"name": name, "value": value, "has_label": stored_label(name, value)}
    row = await tx.one("get_label_budget", org_id=org_id, month=month_text(now_ms), **asked)
    if row is not None and row["spent"] + row["held"] > row["nanos_per_month"]:
        who = f"The label `{name}` with the value `{value}`"
        message, headers = _limit_of_span(who, row["nanos_per_month"], "month", next_month_ms(now_ms), now_ms)
        raise BudgetReached(message, org_id, headers=headers, label=(name, value))


async def _check_org_budget(tx: Transaction, caller: Caller, now_ms: int) -> None:
    limit = caller.org_nanos_per_month
    if limit is None:
        return
    month_ms = month_start_ms(now_ms)
    row = await tx.one("sum_budget_of_org", org_id=caller.org_id, month=month_ms // SLOT_MS)
    assert row is not None, "a caller's organization exists"
    if row["spent"] + row["held"] > limit:
        message, headers = _limit_of_span("Your organization", limit, "month", next_month_ms(now_ms), now_ms)
        raise BudgetReached(message, caller.org_id, headers=headers)


def _limit_of_span(who: str, limit: int, span: str, until_ms: int, now_ms: int) -> tuple[str, dict[str, str]]:
    """The message and the headers of an error that says how many dollars may be spent in a day or a month."""
    seconds_left = -(-(until_ms - now_ms) // 1000)
    end = datetime.fromtimestamp(until_ms // 1000, UTC)
    rule = f"{who} is limited to {dollars(Nanos(limit))} USD per {span}"
    return f"{rule}; the {span} ends at {end:%Y-%m-%dT%H:%M:%SZ}.", {"retry-after": str(seconds_left)}


def day_start_ms(now_ms: int) -> int:
    """Return when the UTC day began."""
    return now_ms // DAY_MS * DAY_MS


def month_start_ms(now_ms: int) -> int:
    """Return when the UTC month began."""
    return day_start_ms(now_ms) - (datetime.fromtimestamp(now_ms // 1000, UTC).day - 1) * DAY_MS


def next_month_ms(now_ms: int) -> int:
    """Return when the next UTC month begins."""
    return month_start_ms(month_start_ms(now_ms) + 32 * DAY_MS)


def check_model(caller: Caller, model: str, listed_as: str) -> None:
    """Raise PermissionDenied if the key may not use a model, by the name in the call or the id that is listed."""
    if caller.models is None or caller.may_use(model) or caller.may_use(listed_as):
        return
    allowed = quoted(caller.models[:_MAX_SHOWN])
    more = " and others" if len(caller.models) > _MAX_SHOWN else ""
    raise PermissionDenied(f"This key may not use the model `{model}`; it may use {allowed}{more}.", param="model")
