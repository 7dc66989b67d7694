"""One share of a generation's outputs from one provider: intent, submission, polling, keeping."""

import random
from dataclasses import dataclass, field, replace
from decimal import Decimal

import msgspec

from penstock import billing
from penstock.catalog import Option
from penstock.errors import Cancelled, UpstreamTimeout
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.gather import Unusable
from penstock.jobs import Lease, LeaseLost
from penstock.providers.spec import Result
from penstock.schema import Choice, Plan, Request, Shelved, Tried
from penstock.store.base import Row, Transaction
from penstock.upstream import Failed, OutcomeUnknown, clean
from penstock.values import Nanos, nanos, new_id
from penstock.verdict import Miss

_LOST_JOB_SECONDS = 120.0
_INTERRUPTED = "The gateway was interrupted while sending; what became of it is unknown."


@dataclass(slots=True)
class Job:
    """A generation in the hands of its driver."""

    lease: Lease
    row: Row
    request: Request
    plan: Plan
    attempts: dict[tuple[int, int], Row]
    tried: list[Tried] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.lease.id

    @property
    def org_id(self) -> str:
        return str(self.row["org_id"])


@dataclass(frozen=True, slots=True)
class Share:
    """Which outputs an attempt is for: `count` of them, as part `part` of what choice `number` of the plan makes."""

    number: int
    part: int
    count: int
    option: Option
    choice: Choice


@dataclass(frozen=True, slots=True)
class Made:
    """Outputs of one attempt, kept."""

    share: Share
    attempt_id: str
    result: Result
    files: tuple[Shelved, ...]
    cost: Nanos


async def attempt(gateway: Gateway, job: Job, share: Share) -> Made | Miss:
    """Try once, or carry on with what an earlier process began."""
    before = job.attempts.get((share.number, share.part))
    if before is not None and before["state"] in ("failed", "unknown", "cancelled"):
        return Miss(before["kind"], before["message"] or "", share.count, unknown=before["state"] == "unknown")
    attempt_id = before["id"] if before else new_id("att", gateway.clock.now_ms())
    slug, upstream = share.option.provider.slug, share.option.model.upstream
    try:
        result = await _begun(gateway, job, share, attempt_id, before)
        result = await _followed(gateway, job, share, attempt_id, result)
        files = await _kept(gateway, job, share, attempt_id, result)
    except Failed as problem:
        _blame(gateway, slug, upstream, problem)
        await _note(gateway, job, attempt_id, "failed", kind=problem.kind, message=problem.message)
        return Miss.of(problem, share.count)
    except OutcomeUnknown as problem:
        gateway.health.failed(slug, upstream, "timeout")
        await _note(gateway, job, attempt_id, "unknown", kind="timeout", message=problem.message)
        return Miss.of(problem, share.count)
    gateway.health.answered(slug, upstream)
    return Made(share, attempt_id, result, files, _cost(job, share, result, files))


def _blame(gateway: Gateway, slug: str, upstream: str, problem: Failed) -> None:
    """Saying no to one request is no sign of illness."""
    if problem.kind in ("refused", "rejected"):
        gateway.health.answered(slug, upstream)
    else:
        gateway.health.failed(slug, upstream, problem.kind, problem.retry_after_seconds)


# ---------------------------------------------------------------------------------------------------------- submission


async def _begun(gateway: Gateway, job: Job, share: Share, attempt_id: str, before: Row | None) -> Result:
    """Intent is durable before anything is sent, the provider's name for the job right after it came back."""
    op = share.option.model.op
    if before is not None and before["ref"] is not None:
        return Result(status="in_progress", ref=msgspec.json.decode(before["ref"]), upstream_id=before["upstream_id"])
    if before is None:
        await _intend(gateway, job, share, attempt_id)
    elif not op.resubmits:
        raise OutcomeUnknown(share.option.provider.slug, _INTERRUPTED, timeout=False)
    failpoint("submit.intent_committed")
    return await _submitted(gateway, job, share, attempt_id)


async def _submitted(gateway: Gateway, job: Job, share: Share, attempt_id: str) -> Result:
    inputs = await gateway.gather.inputs(job.request)
    result = await gateway.upstream.submit(share.option, job.request, share.count, inputs)
    failpoint("submit.response_read")
    if not result.done:
        await _note(gateway, job, attempt_id, "submitted", result=result)
        failpoint("submit.id_committed")
    return result


async def _intend(gateway: Gateway, job: Job, share: Share, attempt_id: str) -> None:
    async def write(tx: Transaction) -> None:
        await held(tx, job)
        await add_intent(tx, job.id, job.org_id, attempt_id, share, gateway.clock.now_ms())

    await gateway.store.write(write)


async def add_intent(tx: Transaction, request_id: str, org_id: str, attempt_id: str, share: Share, at_ms: int) -> None:
    await tx.run(
        "add_attempt",
        id=attempt_id,
        request_id=request_id,
        org_id=org_id,
        part=share.part,
        choice=share.number,
        count=share.count,
        provider=share.option.provider.slug,
        at_ms=at_ms,
    )
    await tx.run("start_request", id=request_id, org_id=org_id)


# ------------------------------------------------------------------------------------------------------------- polling


async def _followed(gateway: Gateway, job: Job, share: Share, attempt_id: str, result: Result) -> Result:
    """Ask until it is done. Trouble with asking never fails a job; a verdict, a cancel or the deadline does."""
    op, slug = share.option.model.op, share.option.provider.slug
    pause = op.poll_seconds
    lost_since: float | None = None
    while not result.done:
        await _show(gateway, job, result)
        await _pause(gateway, job, result.poll_after_seconds or pause)
        await _heed_cancel(gateway, job, share, result)
        await _heed_deadline(gateway, job, share, result)
        try:
            found = await gateway.upstream.poll(share.option, result.ref)
        except Failed as problem:
            lost_since = (lost_since or gateway.clock.monotonic()) if problem.kind == "rejected" else None
            if lost_since and op.resubmits:
                result = await _submitted(gateway, job, share, attempt_id)
                lost_since = None
            elif lost_since and gateway.clock.monotonic() - lost_since > _LOST_JOB_SECONDS:
                raise Failed(slug, "broken", "The provider no longer knows the job.") from None
            pause = min(pause * 2, gateway.settings.poll_seconds_max)
            continue
        failpoint("poll.mid")
        lost_since, pause = None, min(pause, max(op.poll_seconds, gateway.settings.poll_seconds_max / 4))
        result = replace(found, ref={**result.ref, **found.ref}, upstream_id=found.upstream_id or result.upstream_id)
    if result.status == "failed":
        message = clean(result.message, share.option.key) or f"{share.option.provider.name} failed to make it."
        raise Failed(slug, result.kind, message)
    if result.status == "cancelled":
        raise Cancelled("The generation was cancelled.")
    return result


async def _pause(gateway: Gateway, job: Job, seconds: float) -> None:
    """A poll's wait with some jitter, cut short by a nudge."""
    job.lease.nudged.clear()
    await gateway.clock.wait(job.lease.nudged, seconds * random.uniform(0.9, 1.1))  # noqa: S311 - spreads load


async def _heed_cancel(gateway: Gateway, job: Job, share: Share, result: Result) -> None:
    """Ask the provider; whatever it then reports is what happened, unless it took the cancel."""
    row = await gateway.store.one("is_cancel_asked", id=job.id)
    if row and row["cancel_asked"] and await gateway.upstream.cancel(share.option, result.ref):
        try:
            last = await gateway.upstream.poll(share.option, result.ref)
        except Failed:
            last = None  # a job that can no longer be asked about is gone
        if last is None or last.status != "completed":
            raise Cancelled("The generation was cancelled.")


async def _heed_deadline(gateway: Gateway, job: Job, share: Share, result: Result) -> None:
    if gateway.clock.now_ms() < job.row["deadline_ms"]:
        return
    try:
        last = await gateway.upstream.poll(share.option, result.ref)
    except Failed:
        last = None
    if last is None or not last.done:
        await gateway.upstream.cancel(share.option, result.ref)
        raise UpstreamTimeout(f"{share.option.provider.name} did not finish in time.", should_retry=False)


async def _show(gateway: Gateway, job: Job, result: Result) -> None:
    """`in_progress` once the provider works on it, or says nothing of the kind; steps of progress as they come."""
    percent = min(99, round((result.progress or 0) * 100))
    started = result.status == "in_progress"
    if not started or (job.row["status"] == "in_progress" and percent < job.row["progress"] + 5):
        return
    job.row["status"], job.row["progress"] = "in_progress", percent

    async def write(tx: Transaction) -> None:
        if not await tx.run("show_progress", id=job.id, lease_token=job.lease.token, progress=percent):
            raise LeaseLost(job.id)

    await gateway.store.write(write)


# ------------------------------------------------------------------------------------------------------------- keeping


async def _kept(gateway: Gateway, job: Job, share: Share, attempt_id: str, result: Result) -> tuple[Shelved, ...]:
    """Names are made from the attempt's, so that keeping again after a crash replaces and never adds."""
    failpoint("fetch.start")
    files = []
    for index, file in enumerate(result.files[: share.count]):
        source = None if file.data is not None else gateway.upstream.source(share.option, file)
        media_id = f"med_{attempt_id.removeprefix('att_')}{index:02}"
        try:
            files.append(await gateway.gather.keep(media_id, file, source, job.request))
        except Unusable as problem:
            words = f"{share.option.provider.name} delivered something unusable: {problem}."
            raise Failed(share.option.provider.slug, "unreadable", words) from problem
        failpoint("media.after_fsync")
    return tuple(files)


def _cost(job: Job, share: Share, result: Result, files: tuple[Shelved, ...]) -> Nanos:
    """What the provider says it charged, else our table on what was delivered."""
    if result.cost_usd is not None:
        return nanos(result.cost_usd)
    return billing.charge(
        billing.thaw(share.choice.prices),
        job.request,
        len(files),
        seconds=Decimal(str(result.usage["second"])) if "second" in result.usage else None,
        pixels=sum((one.kept.width or 0) * (one.kept.height or 0) for one in files),
        usage=result.usage,
    )


# -------------------------------------------------------------------------------------------------------------- notes


async def held(tx: Transaction, job: Job) -> None:
    """Every write of a driver begins here: whoever lost its lease changes nothing."""
    if not await tx.run("hold_lease", id=job.id, lease_token=job.lease.token):
        raise LeaseLost(job.id)


async def _note(
    gateway: Gateway,
    job: Job,
    attempt_id: str,
    state: str,
    *,
    result: Result | None = None,
    kind: str | None = None,
    message: str | None = None,
) -> None:
    async def write(tx: Transaction) -> None:
        await held(tx, job)
        await set_attempt(tx, attempt_id, state, gateway.clock.now_ms(), result=result, kind=kind, message=message)

    await gateway.store.write(write)


async def set_attempt(
    tx: Transaction,
    attempt_id: str,
    state: str,
    at_ms: int,
    *,
    result: Result | None = None,
    kind: str | None = None,
    message: str | None = None,
    cost: Nanos | None = None,
) -> None:
    await tx.run(
        "set_attempt",
        id=attempt_id,
        state=state,
        upstream_id=result.upstream_id if result else None,
        ref=msgspec.json.encode(dict(result.ref)) if result else None,
        kind=kind,
        message=message,
        cost=cost,
        at_ms=at_ms,
    )
