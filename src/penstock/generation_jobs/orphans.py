"""Ask about provider jobs that still ran, or were lost, when their generation ended; what was made is a loss."""

import asyncio
from contextlib import suppress
from decimal import Decimal
from functools import partial

import msgspec
import structlog

from penstock.accounts.prices import failed_cost
from penstock.accounts.transfers import record_loss
from penstock.gateway import Gateway
from penstock.generation_jobs.job import attempt_end, billed_cost, restore_candidate
from penstock.generation_jobs.rows import AttemptRow, GenerationRow, get_generation, list_last_attempts
from penstock.providers.spec import Result
from penstock.store.base import Change, ConstraintViolated, Transaction
from penstock.store.waiting import retry_while_unavailable
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.values import ZERO, Nanos, OrgId, nanos

log = structlog.get_logger()

# The pauses before the checks have 1, 4, 16, 64 and 256 minutes; later the providers no longer know the job.
FIRST_PAUSE_SECONDS = 60.0
_CHECKS_MAX = 5
_CHECKS_AT_ONCE = 32
_STATES = {"completed": "completed", "failed": "failed"}  # of the attempt, by the provider's status; else cancelled


def first_checks(gateway: Gateway, row: GenerationRow) -> Change:
    """What schedules checks of the jobs that may still run, in the transaction in which their generation ends."""
    at_ms = gateway.clock.steady_ms() + int(FIRST_PAUSE_SECONDS * 1000)
    return "schedule_checks", {"request_id": row.id, "org_id": row.org_id, "at_ms": at_ms}


async def keep_late_job(gateway: Gateway, org_id: OrgId, attempt_id: str, result: Result) -> None:
    """Store a provider's job although another process has the lease of its generation.

    That process did not know the job and took the attempt's outcome for unknown, or will do so: it polls the job if it
    still can, and otherwise the job is asked about later.
    """
    end = attempt_end(attempt_id, "unknown", gateway.clock.now_ms(), result=result)
    job = {name: end[name] for name in ("id", "upstream_id", "ref")}

    async def write(tx: Transaction) -> None:
        if await tx.run("keep_late_job", **job):
            await tx.run("check_attempt_now", id=attempt_id, now_ms=gateway.clock.steady_ms())

    with suppress(ConstraintViolated):  # the id of another job
        await retry_while_unavailable(gateway.clock, partial(gateway.store.write, write, org_id=org_id))


async def check_due(gateway: Gateway) -> int:
    """Ask about the jobs that are due; return how many of them have ended."""
    due = {
        "now_ms": gateway.clock.steady_ms(),
        "checks_max": _CHECKS_MAX,
        "pause_ms": int(FIRST_PAUSE_SECONDS * 1000),
        "limit": _CHECKS_AT_ONCE,
    }

    async def claim(tx: Transaction) -> list[AttemptRow]:
        attempts = [AttemptRow(**row) for row in await tx.all("claim_due_checks", **due)]
        for attempt in sorted(attempts, key=lambda attempt: attempt.id):
            if attempt.check_at_ms is None:
                await tx.run("forget_purged_job", id=attempt.id)
        return attempts

    return sum(await asyncio.gather(*(_check(gateway, attempt) for attempt in await gateway.store.write(claim))))


async def _check(gateway: Gateway, attempt: AttemptRow) -> bool:
    """Ask about one job; return whether it has ended."""
    row = await get_generation(gateway.store, attempt.request_id, attempt.org_id)
    assert row is not None, "generations are never deleted"
    candidate = await restore_candidate(gateway, row.decode_plan().candidates[attempt.candidate], row.task)
    if candidate is None or attempt.ref is None:  # no longer configured, or purged after the last check
        return False
    try:
        result = await gateway.upstream.poll(candidate, msgspec.json.decode(attempt.ref))
    except AttemptFailed as problem:
        if problem.failure.kind != "rejected" or attempt.state == "unknown":  # a job that was lost may be found again
            return False
        result = Result(status="cancelled")  # the provider no longer knows the job: it was cancelled as asked
    if not result.done:
        return False
    loss = await _loss(gateway, row, attempt, candidate, result)
    return await _settle(gateway, attempt, result, loss)


async def _loss(
    gateway: Gateway, row: GenerationRow, attempt: AttemptRow, candidate: Candidate, result: Result
) -> Nanos:
    """What the provider bills for this attempt's part of the outputs. For a purged request it is what the provider
    reports, or else the part of the hold. For a job that was not completed it is what the provider reports.
    """
    request = row.decode_request()
    if candidate.fee_percent is not None:
        return ZERO  # the vendor bills the organization
    if result.status != "completed":
        return failed_cost(candidate.model, request, result.cost_usd, result.usage)
    if request is not None:
        return billed_cost(candidate, request, attempt.count, result)
    if result.cost_usd is not None:
        return nanos(Decimal(result.cost_usd))
    attempts = await list_last_attempts(gateway.store, row.id)
    count = sum(other.count for other in attempts if other.candidate == attempt.candidate)
    return Nanos(row.hold * attempt.count // max(count, attempt.count))


async def _settle(gateway: Gateway, attempt: AttemptRow, result: Result, loss: Nanos) -> bool:
    """Store the attempt's end and the loss. The generation stays failed, and its caller is not charged."""
    state = _STATES.get(result.status, "cancelled")
    now = gateway.clock.now_ms()

    async def write(tx: Transaction) -> bool:
        ended = await tx.run("settle_checked_attempt", id=attempt.id, state=state, cost=loss or None, at_ms=now)
        if ended:
            await tx.run("forget_purged_job", id=attempt.id)
        if ended and loss:
            await record_loss(tx, attempt.org_id, attempt.id, loss, now)
        return bool(ended)

    ended = await gateway.store.write(write)
    if ended and (loss or state == "completed"):
        log.warning("orphan", request_id=attempt.request_id, provider=attempt.provider, loss_nanos=loss)
    return ended
