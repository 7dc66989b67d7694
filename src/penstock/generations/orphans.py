"""Ask about jobs that were given up: what a provider finished all the same is our loss, and nobody else's."""

import asyncio
from decimal import Decimal

import msgspec
import structlog

from penstock.accounts.prices import quote, restore_prices
from penstock.accounts.transfers import record_loss
from penstock.gateway import Gateway
from penstock.providers.spec import Result
from penstock.schema import Plan, PlannedCandidate, Request
from penstock.store.base import Row, Transaction
from penstock.upstream.catalog import Candidate
from penstock.upstream.client import AttemptFailed
from penstock.values import ZERO, Nanos, nanos

log = structlog.get_logger()

# One question after a minute, then after 4, 16, 64 and 256: by then providers have forgotten the job themselves.
FIRST_PAUSE_SECONDS = 60.0
_MOST_QUESTIONS = 5
_AT_ONCE = 32


async def expect(gateway: Gateway, tx: Transaction, row: Row) -> None:
    """Part of the transaction in which a generation fails: whatever is still under way for it is asked about later."""
    at_ms = gateway.clock.steady_ms() + int(FIRST_PAUSE_SECONDS * 1000)
    await tx.run("expect_late", request_id=row["id"], org_id=row["org_id"], at_ms=at_ms)


async def ask(gateway: Gateway) -> int:
    """One round of questions; how many jobs were found to have ended."""
    due = {
        "now_ms": gateway.clock.steady_ms(),
        "most": _MOST_QUESTIONS,
        "pause_ms": int(FIRST_PAUSE_SECONDS * 1000),
        "limit": _AT_ONCE,
    }
    rows = await gateway.store.write(lambda tx: tx.all("claim_late_attempts", **due))
    return sum(await asyncio.gather(*(_ask(gateway, row) for row in rows)))


async def _ask(gateway: Gateway, attempt: Row) -> bool:
    row = await gateway.store.one("get_generation", id=attempt["request_id"], org_id=attempt["org_id"])
    assert row is not None, "generations are never deleted"
    choice = msgspec.json.decode(row["plan"], type=Plan).choices[attempt["candidate"]]
    option = gateway.catalog.option(choice, row["task"])
    if option is None or attempt["ref"] is None:  # not set up any more; purged
        return False
    try:
        result = await gateway.upstream.poll(option, msgspec.json.decode(attempt["ref"]))
    except AttemptFailed as problem:
        if problem.kind != "rejected":
            return False
        result = Result(status="cancelled")  # a job that is not known any more was called off as we asked
    if not result.done:
        return False
    loss = _loss(row, attempt, choice, option, result) if result.status == "completed" else ZERO
    return await _settle(gateway, attempt, result, loss, choice)


def _loss(row: Row, attempt: Row, choice: PlannedCandidate, option: Candidate, result: Result) -> Nanos:
    """What the provider says it charges, else the ceiling that was set for this share of the work."""
    if result.cost_usd is not None:
        return nanos(Decimal(result.cost_usd))
    if row["request"] is None:
        return Nanos(row["hold"])
    request = msgspec.json.decode(row["request"], type=Request)
    share = msgspec.structs.replace(request, values={**request.values, "n": attempt["count"]})
    return quote(option.model, share, restore_prices(choice.prices)).total


async def _settle(gateway: Gateway, attempt: Row, result: Result, loss: Nanos, choice: PlannedCandidate) -> bool:
    """The books only: the generation stays failed, its caller is neither charged nor told."""
    state = {"completed": "completed", "failed": "failed"}.get(result.status, "cancelled")
    now = gateway.clock.now_ms()

    async def write(tx: Transaction) -> bool:
        ended = await tx.run("settle_late_attempt", id=attempt["id"], state=state, cost=loss or None, at_ms=now)
        if ended and loss:
            await record_loss(tx, attempt["org_id"], attempt["id"], loss, now)
        return bool(ended)

    ended = await gateway.store.write(write)
    if ended and state == "completed":
        log.warning("orphan", request_id=attempt["request_id"], provider=choice.provider, loss_nanos=loss)
    return ended
