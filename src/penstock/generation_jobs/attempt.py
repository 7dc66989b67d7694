"""One attempt: part of a generation's outputs from one provider, from the request that is sent to its recorded end."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

import msgspec

from penstock.accounts.prices import Line, actual_lines, failed_cost, is_callers_risk, reported_line
from penstock.errors import Cancelled, UpstreamTimeout
from penstock.failpoints import failpoint
from penstock.gateway import Gateway, OutputMaker
from penstock.generation_jobs.job import Job, billed_cost, is_cancel_requested, record_attempt, store_progress
from penstock.generation_jobs.orphans import keep_late_job
from penstock.generation_jobs.outputs import store_outputs
from penstock.generation_jobs.parts import AttemptResult, Part
from penstock.generation_jobs.polling import Polling
from penstock.imaging.workers import WorkFailed
from penstock.jobs.running import LeaseLost
from penstock.jobs.steps import Step
from penstock.media.provider_files import UnusableFile
from penstock.media.storage import FileMissing
from penstock.media.transfer import OutputNotStored
from penstock.providers.row_names import input_row
from penstock.providers.spec import Model, Result
from penstock.schema import StoredOutput
from penstock.store.base import Change, ConstraintViolated, Row
from penstock.telemetry.tracing import span
from penstock.upstream.candidate import counted
from penstock.upstream.failure_log import log_failure
from penstock.upstream.failures import AttemptFailed, Failure, job_failure, unknown_outcome
from penstock.upstream.translate import with_seed_of_part
from penstock.upstream.watch import AttemptWatch
from penstock.values import ZERO, InputFile, Nanos, nanos, new_id

_FIND_PAUSES_SECONDS = (1.0, 4.0, 15.0)  # before each time that a provider is asked for a job
_INTERRUPTED = "The gateway was interrupted while it sent the request; the outcome is unknown."
_NOT_STORED = "The output was made, but could not be stored."


async def run_attempt(gateway: Gateway, job: Job, part: Part) -> AttemptResult | Failure:
    """Make a part of the outputs, or go on with the attempt that an earlier run began. A part that failed in this
    round, or for good, is not tried again.
    """
    if failure := job.history.final_failure(part):
        return failure
    with AttemptWatch(gateway.metrics, gateway.clock, part.candidate, job.request.task) as watch:
        watch.span.set("penstock.request.id", job.id)
        attempt = _Attempt(gateway, job, part)
        with counted(part.candidate, is_new=attempt.earlier is None):
            outcome = await attempt.run()
        if isinstance(outcome, Failure):
            watch.fail(outcome.kind)
            log_failure(gateway.settings, part.candidate, outcome, job.id, (job.request.values, job.request.extras))
        elif outcome.result.usage:
            watch.note_tokens(outcome.result.usage)
    job.history.add_outcome(part, outcome)
    return outcome


class _Attempt:
    """What the steps of one attempt share."""

    def __init__(self, gateway: Gateway, job: Job, part: Part) -> None:
        earlier = job.history.open_attempt(part)
        self.gateway = gateway
        self.job = job
        self.part = part
        self.candidate = part.candidate
        self.provider = part.candidate.provider
        self.op = part.candidate.model.op
        self.health_key = part.candidate.health_key
        self.earlier = earlier
        self.stored_intent = job.history.take_unsent(part)
        self.id = earlier.id if earlier else self.stored_intent or new_id("att", gateway.clock.now_ms())
        self.is_accepted = earlier is not None and earlier.ref is not None
        make = gateway.output_makers.get(job.request.task)
        media_id = f"med_{self.id.removeprefix('att_')}00"
        self.maker = make and make(gateway, part.candidate, job.request, media_id, job.org_id)
        self._record = partial(record_attempt, gateway, job, self.id)

    async def run(self) -> AttemptResult | Failure:
        made: Result | None = None
        polling = Polling(self.gateway, self.job, self.candidate, self._submit_again)
        outputs: tuple[StoredOutput, ...]
        try:
            if self.maker:
                outputs = await self._make(self.maker)
                made = Result()
            else:
                result = await self._submit_or_resume()
                made = await polling.wait_until_done(result)
                outputs = await store_outputs(self.gateway, self.job, self.part, self.id, made)
        except OutputNotStored:
            await self._record_failure(Failure("unfetched", _NOT_STORED), made, is_ours=True)
            raise
        except (Cancelled, UpstreamTimeout):
            if self.maker:
                await self._record("cancelled", cost=self._spent, loss=self._spent)
            elif polling.ended:
                await self._record_bill(polling.ended)
            raise
        except UnusableFile as problem:  # too large for this gateway: the provider is not to blame
            message = f"{self.provider.name} made the output, but this gateway cannot take it: {problem}."
            return await self._record_failure(Failure("unfetched", message), made)
        except AttemptFailed as problem:
            failure = problem.failure
            if self.candidate.drill is None:
                self.gateway.health.record_failure(*self.health_key, failure.kind, failure.retry_after_seconds)
                self.gateway.vendor_accounts.note_failure(self.candidate, failure)
            return await self._record_failure(failure, made)
        if self.candidate.drill is None:
            self.gateway.health.record_success(*self.health_key)
            self.gateway.vendor_accounts.note_success(self.candidate)
        listed = self.candidate.listed
        return AttemptResult(
            self.part,
            self.id,
            made,
            outputs,
            self._price_lines(self.candidate.charged(made), outputs, self.candidate.model),
            None if listed is None else self._price_lines(made, outputs, listed),
        )

    async def _record_failure(self, failure: Failure, made: Result | None, *, is_ours: bool = False) -> Failure:
        """Store the failure, with its cost if the provider bills for it or has `made` outputs that nobody gets. That is
        a loss, unless the price is for the caller's own work; if the failure `is_ours`, it always is.
        """
        model, request = self.candidate.model, self.job.request
        if self.maker:
            cost = self._spent
        elif made:
            cost = billed_cost(self.candidate, request, self.part.count, made)
        else:
            cost = failed_cost(model, request, failure.cost_usd, failure.usage)
        if self.candidate.fee_percent is not None:
            cost = ZERO  # the vendor bills the organization, whatever has failed
        charged = cost if is_callers_risk(model, request) and not is_ours else ZERO
        state = "unknown" if failure.unknown else "failed"
        await self._record(state, failure=failure, cost=cost, loss=Nanos(cost - charged))
        return replace(failure, accepted=self.is_accepted, charged=charged)

    async def _record_bill(self, ended: Result) -> None:
        """Store what the provider bills for a cancelled upstream job; without a bill it is asked again later."""
        model, request = self.candidate.model, self.job.request
        cost = failed_cost(model, request, self.candidate.charged(ended).cost_usd, ended.usage)
        if not cost or ended.status == "completed" or self.candidate.fee_percent is not None:
            return
        charged = cost if is_callers_risk(model, request) else ZERO
        await self._record("cancelled", cost=cost, loss=Nanos(cost - charged))
        failure = replace(job_failure(self.candidate, ended), accepted=True, charged=charged)
        self.job.history.add_outcome(self.part, failure)

    def _price_lines(self, result: Result, outputs: Sequence[StoredOutput], model: Model) -> tuple[Line, ...]:
        """The cost that the provider reports, else the price of what was delivered."""
        if self.maker:
            return self.maker.lines
        if result.cost_usd is not None:
            return (reported_line(result.cost_usd),)
        pixels = sum((stored.output.width or 0) * (stored.output.height or 0) for stored in outputs)  # 0: not known
        usage = {**_measured_seconds(outputs), **result.usage}
        return actual_lines(model, self.job.request, len(outputs), pixels=pixels or None, usage=usage)

    # --------------------------------------------------------------------------------------------------------- making

    async def _make(self, maker: OutputMaker) -> tuple[StoredOutput]:
        """Have the output made while this waits. What a crash interrupted is made again for a job, which nobody waits
        for; another caller has left, and would pay for what it does not get.
        """
        is_job = self.job.request.is_job
        if self.earlier is not None and not is_job:
            raise AttemptFailed(unknown_outcome(_INTERRUPTED))
        with nullcontext() if is_job else self.job.running.send_guard.sending():
            if self.earlier is None and self.stored_intent is None:
                await self._store_intent()
            failpoint("submit.intent_committed")
            self.job.running.send_guard.unsent_attempts.discard(self.id)
            with span("submit"):
                return (await self._unless_cancelled(maker),)

    async def _unless_cancelled(self, maker: OutputMaker) -> StoredOutput:
        """The output, or Cancelled as soon as a cancel is requested."""
        making = asyncio.ensure_future(maker.make(self._note_progress))
        try:
            with self.job.running.wakeups.waiting() as wakeup:
                while not making.done():
                    woken = asyncio.ensure_future(wakeup.wait())
                    try:
                        await asyncio.wait({making, woken}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        woken.cancel()
                    if wakeup.is_set() and await is_cancel_requested(self.gateway, self.job):
                        raise Cancelled()
                    wakeup.clear()
            return await making
        finally:
            making.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await making

    async def _note_progress(self, progress: float) -> None:
        await store_progress(self.gateway, self.job, Result(status="in_progress", progress=progress))

    @property
    def _spent(self) -> Nanos:
        """What the provider bills for what was made so far."""
        lines = self.maker.lines if self.maker else ()
        return Nanos(sum(nanos(line.cost_usd) for line in lines))

    # ----------------------------------------------------------------------------------------------------- submission

    async def _submit_or_resume(self) -> Result:
        """Store the intent, send the request, and store the id of the upstream job.

        An attempt whose upstream id is stored is not sent again. One with only its intent stored may or may not have
        been sent: it is sent again only where that does no harm, or where nobody waits and would send it again
        (`is_job`): then the caller pays once and the provider is perhaps paid twice. Some providers can be asked for
        its job.
        """
        earlier = self.earlier
        if earlier is not None and earlier.ref is not None:
            return Result(status="in_progress", ref=msgspec.json.decode(earlier.ref), upstream_id=earlier.upstream_id)
        if earlier is not None and not self.op.safe_to_resubmit:
            found = await self._find_upstream_job()
            if found is not None:
                return found
            if not self.job.request.is_job:
                raise AttemptFailed(unknown_outcome(_INTERRUPTED))
        inputs = await self._load_inputs()  # before the intent, while an unavailable storage can still be waited for
        try:
            with self.job.running.send_guard.sending():
                if earlier is None and self.stored_intent is None:
                    await self._store_intent()
                failpoint("submit.intent_committed")
                self.job.running.send_guard.unsent_attempts.discard(self.id)
                return await self._submit(inputs)
        except AttemptFailed as problem:
            found = await self._find_upstream_job() if problem.failure.unknown else None
            if found is None:
                raise
            return found

    async def _load_inputs(self) -> Mapping[str, Sequence[InputFile]]:
        if not self.job.request.inputs:
            return {}
        try:
            polarity = self.op.settings.get("mask", "alpha")
            images = self.op.param("images") or self.op.param("input_reference")
            max_bytes = images.max_bytes if images else None
            in_memory, self.job.inputs = self.job.inputs, ()  # not kept, because a job may last for minutes
            return await self.gateway.media_transfer.read_inputs(
                self.job.request,
                polarity,
                max_bytes,
                for_org=self.job.org_id,
                in_memory=in_memory,
                urls=await self._input_urls(),
            )
        except WorkFailed as problem:
            raise AttemptFailed(Failure("rejected", f"An input image could not be prepared: {problem}")) from problem
        except FileMissing as problem:
            raise AttemptFailed(Failure("rejected", "The input files of the request are gone.")) from problem

    async def _input_urls(self) -> dict[str, str]:
        """Where the provider can fetch the inputs that it takes only as URLs, by media id, until the job's deadline."""
        gateway = self.gateway
        left_ms = self.job.row.deadline_ms - gateway.clock.steady_ms()
        until_ms = gateway.clock.now_ms() + left_ms
        base_url = gateway.settings.url_for_providers
        return {
            stored.media_id: await gateway.media.signed_url(stored.media_id, until_ms, base_url)
            for stored in self.job.request.inputs
            if (row := self.op.param(input_row(stored.role))) and row.by_url
        }

    async def _store_intent(self) -> None:
        """Store the attempt before it is sent. Raises UpstreamTimeout after the generation's deadline, Cancelled when
        its cancellation was requested.
        """
        gateway, job = self.gateway, self.job
        if gateway.clock.steady_ms() >= job.row.deadline_ms:
            raise UpstreamTimeout("The generation could not be started in time.", should_retry=False)

        sent_to = {
            "provider": self.provider.slug,
            "upstream_model": self.candidate.model.upstream,
            "account_id": self.candidate.account_id or None,
        }
        attempt: Row = {
            "id": self.id,
            "request_id": job.id,
            "org_id": job.org_id,
            "round": job.history.round,
            "part": self.part.index,
            "candidate": self.part.candidate_index,
            "count": self.part.count,
            **sent_to,
            "created_at_ms": gateway.clock.now_ms(),
        }
        started_request = {"id": job.id, "org_id": job.org_id, **sent_to}
        changes: list[Change] = [("add_attempt", attempt), ("start_request", started_request)]
        job.running.send_guard.unsent_attempts.add(self.id)  # also if this raises: it may be stored all the same
        step = Step(job.running.lease, changes, is_progress=True, unless_cancelled=True)
        if await gateway.steps.add(step, job.org_id):
            raise Cancelled()

    async def _submit_again(self) -> Result:
        return await self._submit(await self._load_inputs())

    async def _submit(self, inputs: Mapping[str, Sequence[InputFile]]) -> Result:
        job = self.job
        callback = self.gateway.callbacks.url(self.candidate, self.id)
        with span("submit"):
            result = await self.gateway.upstream.submit(
                self.candidate,
                with_seed_of_part(job.request, self.candidate.model, self.part.first),
                self.part.count,
                inputs,
                callback,
                own_id=self.id,
                for_org=job.org_id,
                show=job.show_image,
            )
        failpoint("submit.response_read")
        if result.done:
            job.running.send_guard.run_to_the_end()
        return await self._record_upstream_job(result)

    async def _find_upstream_job(self) -> Result | None:
        """Find the job of a submission that may have arrived, where the provider knows it by the id of the attempt.
        None if it is not found: the attempt is not sent again.
        """
        if not self.op.finds_own_ids:
            return None
        for pause in _FIND_PAUSES_SECONDS:
            await self.gateway.clock.sleep(pause)
            try:
                found = await self.gateway.upstream.find(self.candidate, self.id)
            except AttemptFailed:
                continue
            return await self._record_upstream_job(found)
        return None

    async def _record_upstream_job(self, result: Result) -> Result:
        """Store the id of an upstream job that has not ended yet."""
        if not result.done:
            self.is_accepted = True
            try:
                await self._record("submitted", result=result)
            except ConstraintViolated:
                message = f"{self.provider.name} returned the id of another job."
                raise AttemptFailed(unknown_outcome(message)) from None
            except LeaseLost:
                await keep_late_job(self.gateway, self.job.org_id, self.id, result)
                raise
            failpoint("submit.id_committed")
        return result


def _measured_seconds(outputs: Sequence[StoredOutput]) -> dict[str, float]:
    """How long each output is on average, if all are sounds that were measured."""
    seconds = [stored.output.seconds for stored in outputs]
    known = [each for each in seconds if each is not None]
    return {"second": sum(known) / len(known)} if known and len(known) == len(seconds) else {}
