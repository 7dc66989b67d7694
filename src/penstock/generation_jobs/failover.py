"""Have providers make the outputs of a generation: in rounds, candidate after candidate, each part by an attempt."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import structlog

from penstock.errors import Cancelled, StorageUnavailable, UpstreamTimeout
from penstock.gateway import Gateway
from penstock.generation_jobs.attempt import run_attempt
from penstock.generation_jobs.finish import NewResult
from penstock.generation_jobs.job import Job, confirm_survival, is_cancel_requested
from penstock.generation_jobs.parts import AttemptResult, Part
from penstock.generation_jobs.rows import Live, Recording
from penstock.jobs.running import LeaseLost
from penstock.schema import (
    JOB_TASKS,
    LISTEN_TASKS,
    SOUND_TASKS,
    AttemptSummary,
    GenerationResult,
    PlannedCandidate,
    Request,
)
from penstock.telemetry.call_report import provider_wait
from penstock.upstream.account_limits import Wait
from penstock.upstream.caller_error import caller_error
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import Failure, limit_of_operator, over_limit, unknown_outcome
from penstock.values import Nanos, nanos

log = structlog.get_logger()
# Pauses before all candidates are tried again; each is twice as long as the one before.
_JOB_PAUSE_SECONDS = 1.0
_IMAGE_PAUSE_SECONDS = 0.25
_PAUSE_SECONDS_MAX = 60.0
_OWN_LIMIT_SECONDS = 5.0  # the same, where only limits of our own are in the way: asking costs nothing
_DOUBLINGS_MAX = 16
_PAUSE_FACTOR_MAX = 1.25  # a random factor, so that the jobs of an outage do not all come back at once
_IMAGE_RETRY_MS = 5000  # how long images are tried again, because their callers wait


async def make(gateway: Gateway, job: Job, source: Live | Recording) -> NewResult:
    """Try all candidates, and after a pause all of them again, while nothing is made and waiting may help.

    What nobody waits for is tried until its deadline. The caller of an image waits for it: it is tried for a few
    seconds, and only while no provider can be reached. Raises the caller's error if nothing was made.
    """
    clock = gateway.clock
    is_job = _is_patient(job.request)
    until_ms = job.row.deadline_ms
    if not is_job:
        until_ms = min(until_ms, clock.steady_ms() + _IMAGE_RETRY_MS)
    while True:
        tried = await _try_candidates(gateway, job)
        if tried.made:
            return _new_result(job, tried, source)
        pause = _pause_seconds(job.history.round, tried.failures, is_job)
        if pause is None or clock.steady_ms() + pause * 1000 >= until_ms:
            is_only = len(job.plan.candidates) == 1
            raise caller_error(tried.failures, forced=job.plan.forced, is_only=is_only, is_job=is_job)
        log.info("no provider available, trying again", request_id=job.id, seconds=round(pause, 1))
        await _wait(gateway, job, pause)
        job.history.round += 1


def _is_patient(request: Request) -> bool:
    """Whether busy and unreachable providers are waited for until the deadline: nobody waits for the outputs."""
    return request.task in JOB_TASKS or (request.is_job and request.task in (*SOUND_TASKS, *LISTEN_TASKS))


# --------------------------------------------------------------------------------------------------------------- pauses


def _pause_seconds(rounds: int, failures: Sequence[Failure], is_job: bool) -> float | None:
    """How long to wait after so many rounds; not less than the shortest time that a provider asked for.

    None if waiting does not help: no provider may serve the request later, or one says that the request itself is at
    fault, or may have made something for it.
    """
    if not all(failure.allows_failover and failure.kind != "rejected" for failure in failures):
        return None
    passing = [failure for failure in failures if failure.may_pass]
    if not any(is_job or failure.kind == "unsent" for failure in passing):
        return None
    first = _JOB_PAUSE_SECONDS if is_job else _IMAGE_PAUSE_SECONDS
    most = (
        _OWN_LIMIT_SECONDS
        if all(failure.kind == "busy" and not failure.sent for failure in passing)
        else _PAUSE_SECONDS_MAX
    )
    growing: float = min(first * 2 ** min(rounds - 1, _DOUBLINGS_MAX), most)
    asked = min(failure.retry_after_seconds or 0.0 for failure in passing)
    return max(growing, asked) * random.uniform(1.0, _PAUSE_FACTOR_MAX)  # noqa: S311 - guards nothing


async def _wait(gateway: Gateway, job: Job, seconds: float) -> None:
    """Wait between two rounds; raise Cancelled at once when a cancel is requested."""
    await confirm_survival(gateway, job)
    with job.running.wakeups.waiting() as wakeup, provider_wait():
        await gateway.clock.wait(wakeup, seconds)
    if await is_cancel_requested(gateway, job):
        raise Cancelled()


# ------------------------------------------------------------------------------------------------------------ one round


@dataclass(slots=True)
class _Round:
    """How the attempts ended when all candidates were tried once."""

    made: list[AttemptResult] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    failed_attempts: list[AttemptSummary] = field(default_factory=list)  # the failures, as the caller sees them
    output_count: int = 0

    @property
    def allows_failover(self) -> bool:
        return all(failure.allows_failover for failure in self.failures)

    def add(self, planned: PlannedCandidate, outcomes: Sequence[AttemptResult | Failure]) -> None:
        """Add how the attempts at one candidate ended."""
        for outcome in outcomes:
            if isinstance(outcome, AttemptResult):
                self.made.append(outcome)
                self.output_count += len(outcome.outputs)
                continue
            executed_model = f"{planned.provider}/{planned.upstream}"
            self.failures.append(outcome)
            self.failed_attempts.append(AttemptSummary(planned.provider, executed_model, outcome.kind, outcome.message))


async def _try_candidates(gateway: Gateway, job: Job) -> _Round:
    """Have the first candidate make the outputs; what it does not make is asked of the next one, and so on."""
    tried = _Round()
    for index, planned in enumerate(job.plan.candidates):
        missing = job.request.n - tried.output_count
        tried.add(planned, await _ask_candidate(gateway, job, missing, index))
        if tried.output_count >= job.request.n or not tried.allows_failover:
            break
    return tried


async def _ask_candidate(gateway: Gateway, job: Job, count: int, candidate_index: int) -> list[AttemptResult | Failure]:
    """Ask one candidate for `count` outputs. Servers that ignore the number deliver fewer: such a server is asked once
    more for the rest, for as many in each call as it delivers.
    """
    candidate = job.candidates[candidate_index]
    if candidate is None:
        return [_not_configured(job, candidate_index)]
    if wait := _wait_for_account(job, candidate, candidate_index):
        return [over_limit(candidate, wait)]
    whole = Part(candidate, candidate_index, 0, count, first=job.request.n - count)
    parts = whole.divided(candidate.model.op.native_n)
    outcomes = await _run_attempts(gateway, job, parts)
    delivered = [len(outcome.outputs) for outcome in outcomes if isinstance(outcome, AttemptResult)]
    missing = count - sum(delivered)
    if missing <= 0 or len(delivered) < len(outcomes):
        return outcomes
    rest = Part(candidate, candidate_index, len(parts), missing, first=job.request.n - missing)
    return outcomes + await _run_attempts(gateway, job, rest.divided(max(1, min(delivered))))


def _wait_for_account(job: Job, candidate: Candidate, candidate_index: int) -> Wait | None:
    """Why nothing new is sent to the account of a candidate now. What was learned of an account is a guess, for which
    only jobs wait: of another call the vendor decides.
    """
    if candidate.account is None or job.history.has_begun_at(candidate_index):
        return None
    return candidate.account.wait if _is_patient(job.request) else limit_of_operator(candidate)


def _not_configured(job: Job, candidate_index: int) -> Failure:
    """The failure of a candidate that was removed from the configuration. If something was sent to it before, its
    outcome is unknown.
    """
    is_sent = job.history.has_open_attempt_at(candidate_index)
    message = f"{job.plan.candidates[candidate_index].provider} is no longer configured."
    return Failure("broken", message, sent=is_sent, unknown=is_sent)


async def _run_attempts(gateway: Gateway, job: Job, parts: Sequence[Part]) -> list[AttemptResult | Failure]:
    """Run one attempt for each part at the same time and wait for all of them; then raise the first exception.
    Exceptions that decide nothing (the lease or the store is gone) come before a cancel or a timeout. A timeout is not
    raised if other outputs were made in time: they are delivered.
    """
    made = job.history.made
    if len(parts) == 1 and not made:
        return [await run_attempt(gateway, job, parts[0])]  # the usual case, without tasks: thousands run at a time
    attempts = (run_attempt(gateway, job, part) for part in parts)
    outcomes: list[AttemptResult | Failure] = []
    problems: list[BaseException] = []
    for part, outcome in zip(parts, await asyncio.gather(*attempts, return_exceptions=True), strict=True):
        if isinstance(outcome, UpstreamTimeout) and made:
            outcomes.append(_too_late(job, part, outcome))
        elif isinstance(outcome, BaseException):
            problems.append(outcome)
        else:
            outcomes.append(outcome)
    if problems:
        problems.sort(key=lambda problem: not isinstance(problem, LeaseLost | StorageUnavailable))
        raise problems.pop(0)  # taken out: a variable of ours that refers to it would keep the job in memory
    return outcomes


def _too_late(job: Job, part: Part, problem: UpstreamTimeout) -> Failure:
    """The failure of a part whose job still ran at the deadline; the provider is asked about it later."""
    failure = unknown_outcome(problem.message, timed_out=True)
    job.history.add_outcome(part, failure)
    return failure


# --------------------------------------------------------------------------------------------------------------- result


def _new_result(job: Job, tried: _Round, source: Live | Recording) -> NewResult:
    outputs = [stored for attempt in tried.made for stored in attempt.outputs][: job.request.n]
    cost = Nanos(nanos(sum((attempt.cost_usd for attempt in tried.made), Decimal(0))) + job.history.charged)
    first = tried.made[0]
    candidate = first.part.candidate
    recording = source if isinstance(source, Recording) else None
    result = GenerationResult(
        provider=candidate.provider.slug,
        provider_name=candidate.provider.name,
        executed_model=candidate.executed_model,
        cost=min(cost, job.row.hold),
        outputs=tuple(stored.output for stored in outputs),
        upstream_id=first.result.upstream_id or first.attempt_id,
        attempts=(*tried.failed_attempts, *(_summary(attempt) for attempt in tried.made)),
        missing=max(0, job.request.n - len(outputs)),
        origin="recorded" if recording else "live",
        recording_id=recording.recording_id if recording else None,
    )
    return NewResult(result, outputs, tried.made, cost, recording)


def _summary(attempt: AttemptResult) -> AttemptSummary:
    candidate = attempt.part.candidate
    return AttemptSummary(
        candidate.provider.slug,
        candidate.executed_model,
        "made",
        count=len(attempt.outputs),
        upstream_id=attempt.result.upstream_id or attempt.attempt_id,
    )
