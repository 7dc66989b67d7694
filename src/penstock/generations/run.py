"""How an accepted generation is brought to its end; may be killed at any line and run again."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

import msgspec
import structlog

from penstock.accounts import transfers
from penstock.accounts.requests import RequestEnd, end_request
from penstock.errors import Cancelled, InternalError, Problem, StorageUnavailable
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generations import orphans
from penstock.generations.attempt import attempt
from penstock.generations.batches import batches
from penstock.generations.job import AttemptResult, Job, Part, check_lease, set_attempt
from penstock.generations.playback import follow, stand_in
from penstock.jobs.leases import Lease, LeaseLost
from penstock.media.transfer import OutputNotStored
from penstock.metrics import NO_PROVIDER
from penstock.recordings import recordings
from penstock.schema import AttemptSummary, GenerationResult, Output, Plan, PlannedCandidate, Request, StoredOutput
from penstock.store.base import Row, Transaction
from penstock.store.waiting import retry_while_unavailable
from penstock.upstream.outcome import Failure, error_for
from penstock.values import ZERO, Nanos, nanos
from penstock.webhooks import events

log = structlog.get_logger()
_RETRY_STORE_SECONDS = 5.0
_OPEN = ("intent", "submitted")


async def run_generation(gateway: Gateway, lease: Lease) -> None:
    """From wherever it stands to `completed` or `failed`; a store that is away is waited for."""
    drive = partial(_drive, gateway, lease)
    await retry_while_unavailable(gateway.clock, drive, pause_seconds=_RETRY_STORE_SECONDS, request_id=lease.id)


async def _drive(gateway: Gateway, lease: Lease) -> None:
    job = await _load(gateway, lease)
    if job is None:
        raise LeaseLost(lease.id)
    try:
        if lease.is_poison:
            raise InternalError("The gateway failed repeatedly while working on this request.")
        if job.plan.follows and not job.plan.replays:
            await follow(gateway, job)
        if job.plan.replays or job.plan.mocks:
            settled, files = await stand_in(gateway, job)
            await _complete(gateway, job, settled, files)
        else:
            await _complete_made(gateway, job, await _served(gateway, job))
    except StorageUnavailable:
        raise  # nothing was decided
    except OutputNotStored:
        await _failed(gateway, job, StorageUnavailable("There is nowhere to keep the result.", should_retry=False))
    except Problem as problem:
        await _failed(gateway, job, problem)


async def _served(gateway: Gateway, job: Job) -> list[AttemptResult]:
    """By the providers of the plan."""
    made, misses = await _make(gateway, job, job.request.n, 0)
    if not made:
        raise error_for(misses, forced=job.plan.forced, is_video=job.request.task == "video")
    return made


async def _failed(gateway: Gateway, job: Job, problem: Problem) -> None:
    await fail(gateway, job.row, job.lease.token, problem)
    job.lease.problem = problem


async def _load(gateway: Gateway, lease: Lease) -> Job | None:
    row = await gateway.store.one("get_driven_generation", id=lease.id, lease_token=lease.token)
    if row is None:
        return None
    attempts = await gateway.store.all("list_attempts", request_id=lease.id)
    return Job(
        lease=lease,
        row=row,  # without what is kept beside it: there are thousands of these
        request=msgspec.json.decode(row.pop("request"), type=Request),
        plan=msgspec.json.decode(row.pop("plan"), type=Plan),
        attempts={(one["candidate"], one["part"]): one for one in attempts},
    )


async def _make(gateway: Gateway, job: Job, count: int, number: int) -> tuple[list[AttemptResult], list[Failure]]:
    """`count` outputs from choice `number` of the plan; what it fails to make is asked of the next."""
    choice = job.plan.choices[number]
    option = gateway.catalog.option(choice, job.request.task)
    outcomes: Sequence[AttemptResult | Failure]
    if option is None:
        outcomes = [_gone(job, choice, count, number)]
    else:
        sizes = batches(count, option.model.op.native_n)
        shares = [Part(number, part, size, option, choice) for part, size in enumerate(sizes)]
        outcomes = await _all(gateway, job, shares)
    made = [one for one in outcomes if isinstance(one, AttemptResult)]
    misses = [one for one in outcomes if isinstance(one, Failure)]
    name = f"{choice.provider}/{choice.upstream}"
    job.tried += [AttemptSummary(choice.provider, name, miss.kind, miss.message) for miss in misses]
    again = sum(miss.count for miss in misses)
    if again and number + 1 < len(job.plan.choices) and all(miss.allows_failover for miss in misses):
        more, others = await _make(gateway, job, again, number + 1)
        return made + more, misses + others
    return made, misses


def _gone(job: Job, choice: PlannedCandidate, count: int, number: int) -> Failure:
    """An operator took the provider away; what it was sent before that, nobody can ask about any more."""
    open_ones = [row for (tried, _), row in job.attempts.items() if tried == number and row["state"] in _OPEN]
    words = f"{choice.provider} is not set up any more."
    return Failure("broken", words, count, sent=bool(open_ones), unknown=bool(open_ones))


async def _all(gateway: Gateway, job: Job, shares: Sequence[Part]) -> list[AttemptResult | Failure]:
    """Shares side by side, each to its own end; then one that was cancelled or out of time speaks for all."""
    if len(shares) == 1:
        return [await attempt(gateway, job, shares[0])]  # most are; and thousands wait at a time
    outcomes = await asyncio.gather(*(attempt(gateway, job, share) for share in shares), return_exceptions=True)
    problems = [one for one in outcomes if isinstance(one, BaseException)]
    if problems:
        undecided = (one for one in problems if isinstance(one, LeaseLost | StorageUnavailable))
        raise next(undecided, problems[0])
    return [one for one in outcomes if not isinstance(one, BaseException)]


# ------------------------------------------------------------------------------------------------------------ the ends


async def _complete_made(gateway: Gateway, job: Job, made: Sequence[AttemptResult]) -> None:
    files: list[StoredOutput] = [file for one in made for file in one.files][: job.request.n]
    cost = nanos(sum((one.cost_usd for one in made), Decimal(0)))
    first = made[0]
    done = AttemptSummary(first.share.choice.provider, first.share.option.executed_model, "made")
    settled = GenerationResult(
        provider=first.share.option.provider.slug,
        provider_name=first.share.option.provider.name,
        executed_model=first.share.option.executed_model,
        cost=min(cost, Nanos(job.row["hold"])),
        files=tuple(file.output for file in files),
        upstream_id=first.result.upstream_id or first.attempt_id,
        tried=(*job.tried, done),
        stand="recorded" if job.plan.records else "live",
        recording=job.plan.records,
    )
    await _complete(gateway, job, settled, files, made, cost)


async def _complete(
    gateway: Gateway,
    job: Job,
    settled: GenerationResult,
    files: Sequence[StoredOutput],
    made: Sequence[AttemptResult] = (),
    cost: Nanos = ZERO,
) -> None:
    """Money, record, files, recording and news in one transaction."""
    now = gateway.clock.now_ms()
    until = now + job.row["retention_seconds"] * 1000
    keeps = settled.stand == "recorded" and job.plan.records is not None
    try:
        copies = await gateway.recordings.shelve(job.plan.records or "", files) if keeps else []
        outputs = await _outputs(gateway, settled.files, until) if job.row["webhook_url"] else []
    except StorageUnavailable as problem:
        if job.request.task == "video":
            raise  # it can be fetched again
        raise OutputNotStored from problem

    async def write(tx: Transaction) -> None:
        await check_lease(tx, job)
        for one in made:
            await set_attempt(tx, one.attempt_id, "completed", now, result=one.result, cost=nanos(one.cost_usd))
        await gateway.media.add_outputs(tx, job.org_id, job.id, files, 0, until)
        await tx.run("expire_inputs", request_id=job.id, org_id=job.org_id, at_ms=now)
        charged = await transfers.capture(tx, job.org_id, job.id, Nanos(job.row["hold"]), cost, now)
        duration = now - job.row["created_at_ms"]
        await end_request(tx, job.org_id, job.id, RequestEnd("completed", charged, max(0, duration)))
        await tx.run(
            "complete_generation",
            id=job.id,
            lease_token=job.lease.token,
            result=msgspec.json.encode(settled),
            at_ms=now,
            expires_at_ms=until,
        )
        if keeps:
            await gateway.recordings.write(tx, _recording(job, settled, files, now), copies)
        if job.plan.records:
            await tx.run("release_recording_claim", request_id=job.id)
        await _announce(gateway, tx, job.row, "completed", now, outputs=outputs)
        failpoint("settle.in_tx")

    await retry_while_unavailable(gateway.clock, lambda: gateway.store.write(write), request_id=job.id)
    failpoint("settle.after_commit")
    source = settled.provider if made else settled.stand
    gateway.metrics.count_generation(source, job.request.task, "completed", min(cost, Nanos(job.row["hold"])))
    job.lease.files = files
    if cost > job.row["hold"]:
        log.warning("cost above hold", request_id=job.id, loss_nanos=cost - job.row["hold"])
    gateway.deliveries.wake()


def _recording(job: Job, settled: GenerationResult, files: Sequence[StoredOutput], now: int) -> dict[str, object]:
    like = job.plan.likeness
    assert like is not None, "whoever records knows what"
    return {
        "id": job.plan.records,
        "org_id": job.org_id,
        "request_id": job.id,
        "kind": like.kind,
        "task": job.request.task,
        "model": like.model,
        "standard": like.standard,
        "strict": like.strict,
        "request": msgspec.json.encode(like.values),
        "result": recordings.recorded(settled, [file.output for file in files]),
        "duration_ms": max(0, now - job.row["created_at_ms"]),
        "created_at_ms": now,
    }


async def _outputs(gateway: Gateway, files: Sequence[Output], until_ms: int) -> list[dict[str, object]]:
    base_url = gateway.settings.base_url
    return [{"url": await gateway.media.signed_url(kept.media_id, until_ms, base_url)} for kept in files]


async def fail(gateway: Gateway, row: Row, token: int, problem: Problem) -> bool:
    """End badly and give the hold back; False when somebody else ended it first."""
    now = gateway.clock.now_ms()
    status = "cancelled" if isinstance(problem, Cancelled) else "upstream_failure"

    async def write(tx: Transaction) -> bool:
        ended = await tx.run(
            "fail_generation",
            id=row["id"],
            lease_token=token,
            error_code=problem.code,
            error_message=problem.message,
        )
        if not ended:
            return False
        await settle_failure(gateway, tx, row, problem, status, now)
        failpoint("settle.in_tx")
        return True

    if not await gateway.store.write(write):
        raise LeaseLost(row["id"])
    failpoint("settle.after_commit")
    gateway.metrics.count_generation(NO_PROVIDER, row["task"], status)
    gateway.deliveries.wake()
    return True


async def settle_failure(gateway: Gateway, tx: Transaction, row: Row, problem: Problem, status: str, now: int) -> None:
    """The money and the news of a bad end, in the caller's transaction."""
    await transfers.release(tx, row["org_id"], row["id"], Nanos(row["hold"]), now)
    end = RequestEnd(
        status,
        duration_ms=max(0, now - row["created_at_ms"]),
        error_code=problem.code,
        error_message=problem.message,
    )
    await end_request(tx, row["org_id"], row["id"], end)
    await orphans.expect(gateway, tx, row)
    await tx.run("expire_inputs", request_id=row["id"], org_id=row["org_id"], at_ms=now)
    await tx.run("release_recording_claim", request_id=row["id"])
    kind = "cancelled" if status == "cancelled" else "failed"
    await _announce(gateway, tx, row, kind, now, error={"code": problem.code, "message": problem.message})


async def _announce(
    gateway: Gateway,
    tx: Transaction,
    row: Row,
    status: str,
    at_ms: int,
    *,
    outputs: Sequence[dict[str, object]] = (),
    error: dict[str, str] | None = None,
) -> None:
    if not row["webhook_url"]:
        return
    event = f"{'video' if row['task'] == 'video' else 'image'}.{status}"
    body = events.event_body(event, row["id"], row["model"], outputs=outputs, error=error)
    await events.add_message(
        tx,
        org_id=row["org_id"],
        request_id=row["id"],
        url=row["webhook_url"],
        event=event,
        body=body,
        at_ms=at_ms,
    )
