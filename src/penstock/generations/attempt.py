"""One attempt: part of a generation's outputs from one provider, submitted, polled and stored."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from penstock.accounts.prices import Line, actual_lines, reported_line
from penstock.errors import Cancelled, UpstreamTimeout
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generations.job import (
    AttemptResult,
    Job,
    Part,
    PastFailure,
    billed_cost,
    check_lease,
    confirm_survival,
    is_cancel_requested,
    record_attempt,
)
from penstock.generations.rows import AttemptRow
from penstock.imaging.workers import WorkFailed
from penstock.jobs.running import LeaseLost
from penstock.media.storage import FileMissing
from penstock.media.transfer import DownloadFailed, OutputNotStored, UnusableFile
from penstock.providers.spec import Result
from penstock.schema import StoredOutput
from penstock.store.base import ConstraintViolated, Transaction
from penstock.telemetry.call_report import provider_wait
from penstock.telemetry.tracing import span
from penstock.upstream.errors import AttemptFailed, OutcomeUnknown
from penstock.upstream.failure_log import log_failure
from penstock.upstream.outcome import Failure
from penstock.upstream.watch import AttemptWatch
from penstock.values import ZERO, InputImage, Nanos, nanos, new_id

_LOST_JOB_SECONDS = 120.0
_FETCH_SECONDS = {"video": 900.0}  # how long downloading a finished output is tried; callers wait for images
_FETCH_IMAGE_SECONDS = 15.0
_FETCH_PAUSE_SECONDS_MAX = 30.0
_PAUSE_SECONDS_MIN = 0.05
_PAUSE_FACTOR_MIN = 0.9
_PAUSE_FACTOR_MAX = 1.1
_FIRST_POLLS_PER_SECOND = 500
_PAUSE_GROWTH = 1.15  # each pause between polls as a multiple of the one before
_INTERRUPTED = "The gateway was interrupted while it sent the request; the outcome is unknown."
_NOT_STORED = "The output was made, but could not be stored."
_CANCELLED = "The generation was cancelled."


async def run_attempt(gateway: Gateway, job: Job, part: Part) -> AttemptResult | Failure:
    """Make a part of the outputs, or go on with the attempt that an earlier run began."""
    key = (part.candidate_index, part.index)
    past = job.failures.get(key)
    if past is not None and (past.round == job.round or not past.failure.may_pass):
        return past.failure
    with AttemptWatch(gateway.metrics, gateway.clock, part.candidate, job.request.task) as watch:
        watch.span.set("penstock.request.id", job.id)
        outcome = await _Attempt(gateway, job, part, job.attempts.get(key)).run()
        if isinstance(outcome, Failure):
            watch.fail(outcome.kind)
            log_failure(gateway.settings, part.candidate, outcome, job.id, (job.request.values, job.request.extras))
        elif outcome.result.usage:
            watch.note_tokens(outcome.result.usage)
    if isinstance(outcome, Failure):
        job.failures[key] = PastFailure(job.round, outcome)
        job.attempts.pop(key, None)
    else:
        job.made.append(outcome)
    return outcome


class _Attempt:
    """What the steps of one attempt share."""

    def __init__(self, gateway: Gateway, job: Job, part: Part, earlier: AttemptRow | None) -> None:
        self.gateway = gateway
        self.job = job
        self.part = part
        self.candidate = part.candidate
        self.provider = part.candidate.provider
        self.op = part.candidate.model.op
        self.health_key = (self.provider.slug, part.candidate.model.upstream)
        self.earlier = earlier
        self.stored_intent = job.stored_intents.pop((part.candidate_index, part.index), None)
        self.id = earlier.id if earlier else self.stored_intent or new_id("att", gateway.clock.now_ms())
        self.is_accepted = earlier is not None and earlier.ref is not None

    async def run(self) -> AttemptResult | Failure:
        made: Result | None = None
        try:
            result = await self._submit_or_resume()
            result = await self._wait_until_done(result)
            made = result
            result, outputs = await self._store_outputs(result)
        except OutputNotStored:
            await self._record("failed", kind="unfetched", message=_NOT_STORED, loss=self._loss(made))
            raise
        except AttemptFailed as problem:
            self._report_failure(problem)
            await self._record(
                "failed",
                kind=problem.kind,
                message=problem.message,
                http_status=problem.status,
                loss=self._loss(made) if made else nanos(problem.cost_usd or "0"),
            )
            return replace(Failure.from_error(problem), accepted=self.is_accepted)
        except UnusableFile as problem:  # too large for this gateway: the provider is not to blame
            message = f"{self.provider.name} made the output, but this gateway cannot take it: {problem}."
            await self._record("failed", kind="unfetched", message=message, loss=self._loss(made))
            return Failure("unfetched", message, accepted=self.is_accepted)
        except OutcomeUnknown as problem:
            self.gateway.health.record_failure(*self.health_key, "timeout")
            await self._record("unknown", kind="timeout", message=problem.message)
            return Failure.from_error(problem)
        self.gateway.health.record_success(*self.health_key)
        return AttemptResult(self.part, self.id, result, outputs, self._price_lines(result, outputs))

    def _loss(self, made: Result | None) -> Nanos:
        """What the provider bills for outputs that it made and nobody gets."""
        return ZERO if made is None else billed_cost(self.candidate, self.job.request, self.part.count, made)

    def _report_failure(self, problem: AttemptFailed) -> None:
        """Refusing one request says nothing about the provider's health."""
        if problem.kind in ("refused", "rejected"):
            self.gateway.health.record_success(*self.health_key)
        else:
            self.gateway.health.record_failure(*self.health_key, problem.kind, problem.retry_after_seconds)

    async def _record(self, state: str, **facts: Any) -> None:
        await record_attempt(self.gateway, self.job, self.id, state, **facts)

    # ----------------------------------------------------------------------------------------------------- submission

    async def _submit_or_resume(self) -> Result:
        """Store the intent, send the request, and store the provider's id for the job.

        An attempt whose upstream id is stored is not sent again. One with only its intent stored may or may not have
        been sent: it is sent again only where that does no harm.
        """
        earlier = self.earlier
        if earlier is not None and earlier.ref is not None:
            return Result(status="in_progress", ref=msgspec.json.decode(earlier.ref), upstream_id=earlier.upstream_id)
        if earlier is not None and not self.op.safe_to_resubmit:
            raise OutcomeUnknown(self.provider.slug, _INTERRUPTED, timeout=False)
        inputs = await self._load_inputs()  # before the intent, while an unavailable storage can still be waited for
        with self.job.running.sending():
            if earlier is None and self.stored_intent is None:
                await self._store_intent()
            failpoint("submit.intent_committed")
            self.job.running.unsent_attempts.discard(self.id)
            return await self._submit(inputs)

    async def _load_inputs(self) -> Mapping[str, Sequence[InputImage]]:
        slug = self.provider.slug
        try:
            polarity = self.op.settings.get("mask", "alpha")
            images = self.op.param("images") or self.op.param("input_reference")
            max_bytes = images.max_bytes if images else None
            return await self.gateway.transfer.read_inputs(
                self.job.request, polarity, max_bytes, for_org=self.job.org_id
            )
        except WorkFailed as problem:
            raise AttemptFailed(slug, "rejected", f"An input image could not be prepared: {problem}") from problem
        except FileMissing as problem:
            raise AttemptFailed(slug, "rejected", "The input images of the request are gone.") from problem

    async def _store_intent(self) -> None:
        """Store the attempt before it is sent. Raises UpstreamTimeout after the generation's deadline, Cancelled when
        its cancellation was requested.
        """
        gateway, job = self.gateway, self.job
        if gateway.clock.steady_ms() >= job.row.deadline_ms:
            raise UpstreamTimeout("The generation could not be started in time.", should_retry=False)

        async def write(tx: Transaction) -> None:
            await check_lease(tx, job, is_progress=True)
            if await is_cancel_requested(tx, job):
                raise Cancelled(_CANCELLED)
            await tx.put(
                "add_attempt",
                id=self.id,
                request_id=job.id,
                org_id=job.org_id,
                round=job.round,
                part=self.part.index,
                candidate=self.part.candidate_index,
                count=self.part.count,
                provider=self.provider.slug,
                upstream_model=self.candidate.model.upstream,
                at_ms=gateway.clock.now_ms(),
            )
            await tx.put(
                "start_request",
                id=job.id,
                org_id=job.org_id,
                provider=self.provider.slug,
                upstream_model=self.candidate.model.upstream,
            )

        job.running.unsent_attempts.add(self.id)  # also if this raises: it may be stored all the same
        await gateway.store.write(write)

    async def _submit(self, inputs: Mapping[str, Sequence[InputImage]]) -> Result:
        job = self.job
        callback = self.gateway.callbacks.url(self.candidate, self.id)
        with span("submit"):
            result = await self.gateway.upstream.submit(
                self.candidate, job.request, self.part.count, inputs, callback, for_org=job.org_id, show=job.show_image
            )
        failpoint("submit.response_read")
        if not result.done:
            self.is_accepted = True
            try:
                await self._record("submitted", result=result)
            except ConstraintViolated:
                message = f"{self.provider.name} returned the id of another job."
                raise OutcomeUnknown(self.provider.slug, message, timeout=False) from None
            failpoint("submit.id_committed")
        return result

    # -------------------------------------------------------------------------------------------------------- polling

    async def _wait_until_done(self, result: Result) -> Result:
        """Poll a job to its end and return its completed result. Raises AttemptFailed when the provider failed it,
        Cancelled or UpstreamTimeout when it was cancelled or took too long; failed polls are repeated.
        """
        if not result.done:
            with self.job.running.wakeup() as wakeup:
                result = await self._poll_until_done(result, wakeup)
        if result.status == "failed":
            raise self.gateway.upstream.job_failure(self.candidate, result)
        if result.status == "cancelled":
            if await is_cancel_requested(self.gateway.store, self.job):
                raise Cancelled(_CANCELLED)
            raise AttemptFailed(self.provider.slug, "broken", f"{self.provider.name} cancelled the job.")
        return result

    async def _poll_until_done(self, result: Result, wakeup: asyncio.Event) -> Result:
        """Poll after pauses that the provider hints at or that grow, and that grow faster while polls fail."""
        clock = self.gateway.clock
        pause_max = self.gateway.settings.poll_seconds_max
        pause = min(self.op.poll_seconds, pause_max)
        backoff = 0.0
        lost_since: float | None = None
        rounds = 0
        while not result.done:
            await self._store_progress(result)
            if rounds and not self.op.safe_to_resubmit:  # one that is sent again starts from nothing
                await confirm_survival(self.gateway, self.job)
            rounds += 1
            seconds = max(result.poll_after_seconds or pause, backoff, _PAUSE_SECONDS_MIN)
            with provider_wait():
                await clock.wait(wakeup, self._pause_seconds(rounds, seconds))
            wakeup.clear()
            await self._cancel_if_requested(result)
            await self._stop_at_deadline(result)
            try:
                polled = await self.gateway.upstream.poll(self.candidate, result.ref)
            except AttemptFailed as problem:
                lost_since = (lost_since or clock.monotonic()) if problem.kind == "rejected" else None
                if lost_since and self.op.safe_to_resubmit:
                    result = await self._submit(await self._load_inputs())
                    lost_since = None
                elif lost_since and clock.monotonic() - lost_since > _LOST_JOB_SECONDS:
                    message = f"{self.provider.name} no longer knows the job."
                    raise OutcomeUnknown(self.provider.slug, message, timeout=False) from None
                backoff = min(2 * max(backoff, pause), pause_max)
                continue
            failpoint("poll.mid")
            backoff = 0.0
            lost_since = None
            pause = max(pause, min(pause * _PAUSE_GROWTH, pause_max / 4))
            upstream_id = polled.upstream_id or result.upstream_id
            result = replace(polled, ref={**result.ref, **polled.ref}, upstream_id=upstream_id)
        return result

    def _pause_seconds(self, rounds: int, seconds: float) -> float:
        """A pause of about `seconds`. The first pause of a resumed job is random, so that a restart with thousands of
        jobs does not poll them all at once; a suspect does not wait, because its trial must be short.
        """
        if not self.job.attempts or rounds > 1:
            return seconds * random.uniform(_PAUSE_FACTOR_MIN, _PAUSE_FACTOR_MAX)  # noqa: S311 - guards nothing
        if self.job.running.lease.is_suspect:
            return 0.0
        longest = max(seconds * _PAUSE_FACTOR_MAX, self.gateway.jobs.running / _FIRST_POLLS_PER_SECOND)
        return random.uniform(0.0, longest)  # noqa: S311 - guards nothing

    async def _cancel_if_requested(self, result: Result) -> None:
        """Ask the provider to cancel if a cancel was requested; raise Cancelled if it did.

        A job that has just ended is not cancelled: some providers would delete outputs that are made and paid for.
        """
        if not await is_cancel_requested(self.gateway.store, self.job):
            return
        with suppress(AttemptFailed):
            if (await self.gateway.upstream.poll(self.candidate, result.ref)).done:
                return
        if await self.gateway.upstream.cancel(self.candidate, result.ref):
            last = await self._poll_once(result)  # None: a cancelled job can often no longer be asked about
            if last is None or last.status != "completed":
                raise Cancelled(_CANCELLED)

    async def _stop_at_deadline(self, result: Result) -> None:
        """After the deadline, ask the provider to cancel and raise UpstreamTimeout, unless the job has just ended."""
        if self.gateway.clock.steady_ms() < self.job.row.deadline_ms:
            return
        last = await self._poll_once(result)
        if last is None or not last.done:
            await self.gateway.upstream.cancel(self.candidate, result.ref)
            raise UpstreamTimeout(f"{self.provider.name} did not finish in time.", should_retry=False)

    async def _poll_once(self, result: Result) -> Result | None:
        try:
            return await self.gateway.upstream.poll(self.candidate, result.ref)
        except AttemptFailed:
            return None

    async def _store_progress(self, result: Result) -> None:
        """Store `in_progress` when the provider has begun, and then each five percent of progress."""
        job = self.job
        percent = min(99, round((result.progress or 0) * 100))
        if result.status != "in_progress":
            return
        if job.stored_percent is not None and percent < job.stored_percent + 5:
            return
        job.stored_percent = percent

        async def write(tx: Transaction) -> None:
            if not await tx.run("set_progress", id=job.id, lease_token=job.lease_token, progress=percent):
                raise LeaseLost(job.id)

        await self.gateway.store.write(write)

    # -------------------------------------------------------------------------------------------------------- storing

    async def _store_outputs(self, result: Result) -> tuple[Result, tuple[StoredOutput, ...]]:
        """Download and store what was made. It is billed already, so a failure here is tried again for some time, and
        the outputs are never ordered a second time. Raises UnusableFile for one that is too large.
        """
        failpoint("fetch.start")
        clock, provider = self.gateway.clock, self.provider
        is_video = self.job.request.task == "video"
        until = clock.monotonic() + _FETCH_SECONDS.get(self.job.request.task, _FETCH_IMAGE_SECONDS)
        pause = 1.0
        while True:
            try:
                return result, await self._store_files(result)
            except OutputNotStored:
                if not is_video or clock.steady_ms() >= self.job.row.deadline_ms:
                    raise
            except DownloadFailed as problem:
                if clock.monotonic() >= until:
                    message = f"{provider.name} made the output, but it could not be downloaded: {problem}."
                    raise AttemptFailed(provider.slug, "unfetched", message) from problem
            except UnusableFile as problem:
                if problem.too_large:
                    raise
                if not problem.may_change or clock.monotonic() >= until:
                    message = f"{provider.name} delivered an unusable file: {problem}."
                    raise AttemptFailed(provider.slug, "unreadable", message) from problem
            await clock.sleep(pause)
            pause = min(2 * pause, _FETCH_PAUSE_SECONDS_MAX)
            result = await self._refresh_files(result)

    async def _refresh_files(self, result: Result) -> Result:
        """Poll a finished job once more: it may have fresh URLs for its files."""
        if self.op.poll and result.ref:
            polled = await self._poll_once(result)
            if polled is not None and polled.status == "completed":
                return replace(result, files=polled.files)
        return result

    async def _store_files(self, result: Result) -> tuple[StoredOutput, ...]:
        """Store each file under a media id made from the attempt's id: storing again after a crash replaces it."""
        outputs = []
        for index, file in enumerate(result.files[: self.part.count]):
            source = None if file.data is not None else self.gateway.upstream.download_source(self.candidate, file)
            media_id = f"med_{self.id.removeprefix('att_')}{index:02}"
            stored = await self.gateway.transfer.store_output(
                media_id, file, source, self.job.request, for_org=self.job.org_id
            )
            outputs.append(stored)
            failpoint("media.after_fsync")
        return tuple(outputs)

    def _price_lines(self, result: Result, outputs: Sequence[StoredOutput]) -> tuple[Line, ...]:
        """The cost that the provider reports, else the price of what was delivered."""
        if result.cost_usd is not None:
            return (reported_line(result.cost_usd),)
        pixels = sum((stored.output.width or 0) * (stored.output.height or 0) for stored in outputs)
        return actual_lines(self.candidate.model, self.job.request, len(outputs), pixels=pixels, usage=result.usage)
