"""One share of a generation's outputs from one provider: intent, submission, polling, keeping."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import msgspec
import structlog

from penstock.accounts.prices import actual_cost, restore_prices
from penstock.errors import Cancelled, UpstreamTimeout
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generations.job import AttemptResult, Job, Part, cancel_asked, check_lease, record_attempt, survived
from penstock.imaging.workers import WorkFailed
from penstock.jobs.leases import LeaseLost
from penstock.media.storage import FileMissing
from penstock.media.transfer import DownloadFailed, OutputNotStored, UnusableFile
from penstock.providers.spec import Result
from penstock.schema import StoredOutput
from penstock.store.base import ConstraintViolated, Row, Transaction
from penstock.upstream.client import AttemptFailed, OutcomeUnknown
from penstock.upstream.outcome import Failure
from penstock.values import InputImage, new_id

log = structlog.get_logger()
_LOST_JOB_SECONDS = 120.0
_FETCH_SECONDS = {"video": 900.0}  # how long a file that was made is asked for; a caller waits for images
_FETCH_IMAGE_SECONDS = 15.0
_LONGEST_FETCH_PAUSE_SECONDS = 30.0
_LEAST_PAUSE_SECONDS = 0.05
_LEAST_OF_A_PAUSE, _MOST_OF_A_PAUSE = 0.9, 1.1
_FIRST_POLLS_A_SECOND = 500
_SLOWER = 1.15  # each pause between polls that brought no end, as a multiple of the one before
_INTERRUPTED = "The gateway was interrupted while sending; what became of it is unknown."
_CANCELLED = "The generation was cancelled."


async def attempt(gateway: Gateway, job: Job, share: Part) -> AttemptResult | Failure:
    """Try once, or carry on with what an earlier process began."""
    before = job.attempts.get((share.number, share.part))
    if before is not None and before["state"] in ("failed", "unknown", "cancelled"):
        return Failure(
            before["failure_kind"], before["failure_message"] or "", share.count, unknown=before["state"] == "unknown"
        )
    attempt_id = before["id"] if before else new_id("att", gateway.clock.now_ms())
    slug, upstream = share.option.provider.slug, share.option.model.upstream
    try:
        result = await _begun(gateway, job, share, attempt_id, before)
        result = await _followed(gateway, job, share, attempt_id, result)
        result, files = await _kept(gateway, job, share, attempt_id, result)
    except AttemptFailed as problem:
        _blame(gateway, slug, upstream, problem)
        await record_attempt(gateway, job, attempt_id, "failed", kind=problem.kind, message=problem.message)
        return Failure.from_error(problem, share.count)
    except OutcomeUnknown as problem:
        gateway.health.record_failure(slug, upstream, "timeout")
        await record_attempt(gateway, job, attempt_id, "unknown", kind="timeout", message=problem.message)
        return Failure.from_error(problem, share.count)
    gateway.health.record_success(slug, upstream)
    return AttemptResult(share, attempt_id, result, files, _cost_usd(job, share, result, files))


def _blame(gateway: Gateway, slug: str, upstream: str, problem: AttemptFailed) -> None:
    """Saying no to one request is no sign of illness."""
    if problem.kind in ("refused", "rejected"):
        gateway.health.record_success(slug, upstream)
    else:
        gateway.health.record_failure(slug, upstream, problem.kind, problem.retry_after_seconds)


# ---------------------------------------------------------------------------------------------------------- submission


async def _begun(gateway: Gateway, job: Job, share: Part, attempt_id: str, before: Row | None) -> Result:
    """Intent is durable before anything is sent, the provider's name for the job right after it came back."""
    op = share.option.model.op
    if before is not None and before["ref"] is not None:
        return Result(status="in_progress", ref=msgspec.json.decode(before["ref"]), upstream_id=before["upstream_id"])
    if before is not None and not op.safe_to_resubmit:
        raise OutcomeUnknown(share.option.provider.slug, _INTERRUPTED, timeout=False)
    inputs = await _inputs(gateway, job, share)  # while a store that is away can still be waited for
    with job.lease.sending():
        if before is None:
            await _intend(gateway, job, share, attempt_id)
        failpoint("submit.intent_committed")
        return await _submitted(gateway, job, share, attempt_id, inputs)


async def _inputs(gateway: Gateway, job: Job, share: Part) -> Mapping[str, Sequence[InputImage]]:
    slug = share.option.provider.slug
    try:
        return await gateway.transfer.read_inputs(job.request, share.option.model.op.settings.get("mask", "alpha"))
    except WorkFailed as problem:
        raise AttemptFailed(slug, "rejected", f"The mask could not be prepared: {problem}") from problem
    except FileMissing as problem:
        raise AttemptFailed(slug, "rejected", "The pictures that came with the request are gone.") from problem


async def _submitted(
    gateway: Gateway, job: Job, share: Part, attempt_id: str, inputs: Mapping[str, Sequence[InputImage]]
) -> Result:
    callback = gateway.callbacks.address(share.option, attempt_id)
    result = await gateway.upstream.submit(share.option, job.request, share.count, inputs, callback)
    failpoint("submit.response_read")
    if not result.done:
        try:
            await record_attempt(gateway, job, attempt_id, "submitted", result=result)
        except ConstraintViolated:
            provider = share.option.provider
            words = f"{provider.name} named the job like another one."
            raise OutcomeUnknown(provider.slug, words, timeout=False) from None
        failpoint("submit.id_committed")
    return result


async def _intend(gateway: Gateway, job: Job, share: Part, attempt_id: str) -> None:
    """Nothing is begun for a caller who has left word to stop, nor after its time."""
    if gateway.clock.now_ms() >= job.row["deadline_ms"]:
        raise UpstreamTimeout("The generation could not be begun in time.", should_retry=False)

    async def write(tx: Transaction) -> None:
        await check_lease(tx, job, moves=True)
        if await cancel_asked(tx, job):
            raise Cancelled(_CANCELLED)
        await tx.run(
            "add_attempt",
            id=attempt_id,
            request_id=job.id,
            org_id=job.org_id,
            part=share.part,
            candidate=share.number,
            count=share.count,
            provider=share.option.provider.slug,
            at_ms=gateway.clock.now_ms(),
        )
        await tx.run("start_request", id=job.id, org_id=job.org_id)

    await gateway.store.write(write)


# ------------------------------------------------------------------------------------------------------------- polling


async def _followed(gateway: Gateway, job: Job, share: Part, attempt_id: str, result: Result) -> Result:
    """Ask until it is done. Trouble with asking never fails a job; a verdict, a cancel or the deadline does."""
    slug, name = share.option.provider.slug, share.option.provider.name
    if not result.done:
        with job.lease.bell() as bell:
            result = await _polled(gateway, job, share, attempt_id, result, bell)
    if result.status == "failed":
        raise gateway.upstream.job_failure(share.option, result)
    if result.status == "cancelled":
        if await cancel_asked(gateway.store, job):
            raise Cancelled(_CANCELLED)
        raise AttemptFailed(slug, "broken", f"{name} gave the job up.")
    return result


async def _polled(
    gateway: Gateway, job: Job, share: Part, attempt_id: str, result: Result, bell: asyncio.Event
) -> Result:
    """Wait and ask, as the provider hints or ever more slowly, more slowly still while asking fails."""
    op, clock, longest = share.option.model.op, gateway.clock, gateway.settings.poll_seconds_max
    pause, backoff, lost_since = min(op.poll_seconds, longest), 0.0, None
    rounds = 0
    while not result.done:
        await _show(gateway, job, result)
        if rounds and not op.safe_to_resubmit:  # which would begin from nothing again, and has shown nothing yet
            await survived(gateway, job)
        rounds += 1
        seconds = max(result.poll_after_seconds or pause, backoff, _LEAST_PAUSE_SECONDS)
        await clock.wait(bell, _pause_seconds(gateway, job, rounds, seconds))
        bell.clear()
        await _heed_cancel(gateway, job, share, result)
        await _heed_deadline(gateway, job, share, result)
        try:
            found = await gateway.upstream.poll(share.option, result.ref)
        except AttemptFailed as problem:
            lost_since = (lost_since or clock.monotonic()) if problem.kind == "rejected" else None
            if lost_since and op.safe_to_resubmit:
                inputs = await _inputs(gateway, job, share)
                result = await _submitted(gateway, job, share, attempt_id, inputs)
                lost_since = None
            elif lost_since and clock.monotonic() - lost_since > _LOST_JOB_SECONDS:
                words = f"{share.option.provider.name} no longer knows the job."
                raise OutcomeUnknown(share.option.provider.slug, words, timeout=False) from None
            backoff = min(2 * max(backoff, pause), longest)
            continue
        failpoint("poll.mid")
        backoff, lost_since = 0.0, None
        pause = max(pause, min(pause * _SLOWER, longest / 4))
        result = replace(found, ref={**result.ref, **found.ref}, upstream_id=found.upstream_id or result.upstream_id)
    return result


def _pause_seconds(gateway: Gateway, job: Job, rounds: int, seconds: float) -> float:
    """Spreads polls. After a restart everything is taken up at once; that is no reason to ask about everything at once,
    nor to come back to it at once for ever after. Only who is on trial, and has others wait, does not wait itself.
    """
    if not job.attempts or rounds > 1:
        return seconds * random.uniform(_LEAST_OF_A_PAUSE, _MOST_OF_A_PAUSE)  # noqa: S311 - guards nothing
    longest = max(seconds * _MOST_OF_A_PAUSE, gateway.jobs.running / _FIRST_POLLS_A_SECOND)
    return 0.0 if job.lease.is_suspect else random.uniform(0.0, longest)  # noqa: S311 - guards nothing


async def _heed_cancel(gateway: Gateway, job: Job, share: Part, result: Result) -> None:
    """Ask the provider; whatever it then reports is what happened, unless it took the cancel. A job that has just ended
    is left alone: for some providers its end would be to throw away what was made and paid for.
    """
    if not await cancel_asked(gateway.store, job):
        return
    with suppress(AttemptFailed):
        if (await gateway.upstream.poll(share.option, result.ref)).done:
            return
    if await gateway.upstream.cancel(share.option, result.ref):
        try:
            last = await gateway.upstream.poll(share.option, result.ref)
        except AttemptFailed:
            last = None  # a job that can no longer be asked about is gone
        if last is None or last.status != "completed":
            raise Cancelled(_CANCELLED)


async def _heed_deadline(gateway: Gateway, job: Job, share: Part, result: Result) -> None:
    if gateway.clock.now_ms() < job.row["deadline_ms"]:
        return
    try:
        last = await gateway.upstream.poll(share.option, result.ref)
    except AttemptFailed:
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


async def _kept(
    gateway: Gateway, job: Job, share: Part, attempt_id: str, result: Result
) -> tuple[Result, tuple[StoredOutput, ...]]:
    """It is made and will be billed: trouble with fetching or keeping it is waited out, and never a reason to have it
    made again.
    """
    failpoint("fetch.start")
    is_video, clock, provider = job.request.task == "video", gateway.clock, share.option.provider
    until = clock.monotonic() + _FETCH_SECONDS.get(job.request.task, _FETCH_IMAGE_SECONDS)
    pause = 1.0
    while True:
        try:
            return result, await _files(gateway, job, share, attempt_id, result)
        except OutputNotStored:
            if not is_video or clock.now_ms() >= job.row["deadline_ms"]:
                raise
        except DownloadFailed as problem:
            if clock.monotonic() >= until:
                words = f"{provider.name} made it, and it could not be fetched: {problem}."
                raise AttemptFailed(provider.slug, "unfetched", words) from problem
        except UnusableFile as problem:
            words = f"{provider.name} delivered something unusable: {problem}."
            raise AttemptFailed(provider.slug, "unreadable", words) from problem
        await clock.sleep(pause)
        pause = min(2 * pause, _LONGEST_FETCH_PAUSE_SECONDS)
        result = await _asked_again(gateway, share, result)


async def _asked_again(gateway: Gateway, share: Part, result: Result) -> Result:
    """A finished job may have a fresh address for its file; that it was finished is not taken back."""
    if share.option.model.op.poll and result.ref:
        with suppress(AttemptFailed):
            found = await gateway.upstream.poll(share.option, result.ref)
            if found.status == "completed":
                return replace(result, files=found.files)
    return result


async def _files(gateway: Gateway, job: Job, share: Part, attempt_id: str, result: Result) -> tuple[StoredOutput, ...]:
    """Names are made from the attempt's, so that keeping again after a crash replaces and never adds."""
    files = []
    for index, file in enumerate(result.files[: share.count]):
        source = None if file.data is not None else gateway.upstream.download_source(share.option, file)
        media_id = f"med_{attempt_id.removeprefix('att_')}{index:02}"
        files.append(await gateway.transfer.store_output(media_id, file, source, job.request))
        failpoint("media.after_fsync")
    return tuple(files)


def _cost_usd(job: Job, share: Part, result: Result, files: tuple[StoredOutput, ...]) -> Decimal:
    """What the provider says it charged, else our table on what was delivered."""
    if result.cost_usd is not None:
        return Decimal(result.cost_usd)
    return actual_cost(
        share.option.model,
        restore_prices(share.choice.prices),
        job.request,
        len(files),
        pixels=sum((one.output.width or 0) * (one.output.height or 0) for one in files),
        usage=result.usage,
    )
