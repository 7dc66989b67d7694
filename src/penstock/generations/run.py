"""Run an accepted generation to its end; may be interrupted at any line and run again."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import nullcontext
from decimal import Decimal
from functools import partial

import msgspec
import structlog

from penstock.errors import Cancelled, InternalError, Problem, StorageUnavailable, UpstreamTimeout
from penstock.gateway import Gateway
from penstock.generations import playback
from penstock.generations.accept import Accepted, NewGeneration
from penstock.generations.attempt import run_attempt
from penstock.generations.finish import complete, fail
from penstock.generations.job import (
    AttemptResult,
    Job,
    Part,
    PastFailure,
    confirm_survival,
    is_cancel_requested,
    new_job,
    part_sizes,
    read_job,
)
from penstock.generations.mailbox import Mailbox
from penstock.generations.rows import Follow, Mock, Recording, Replay
from penstock.jobs.running import LeaseLost, RunningJob
from penstock.media.transfer import OutputNotStored
from penstock.schema import AttemptSummary, GenerationResult, StoredOutput
from penstock.store.waiting import retry_while_unavailable
from penstock.telemetry.call_report import provider_wait
from penstock.upstream.caller_error import caller_error
from penstock.upstream.failures import Failure, unknown_outcome
from penstock.values import nanos

log = structlog.get_logger()
_RETRY_STORE_SECONDS = 5.0
# Pauses before all candidates are tried again; each is twice as long as the one before.
_VIDEO_PAUSE_SECONDS = 1.0
_IMAGE_PAUSE_SECONDS = 0.25
_PAUSE_SECONDS_MAX = 60.0
_DOUBLINGS_MAX = 16
_PAUSE_FACTOR_MAX = 1.25  # a random factor, so that the jobs of an outage do not all come back at once
_IMAGE_RETRY_SECONDS = 5.0  # how long images are tried again, because their callers wait


def start_generation(gateway: Gateway, accepted: Accepted, mailbox: Mailbox | None = None) -> RunningJob:
    """Run a generation that this process has just accepted; the mailbox is that of a caller who waits for it."""
    assert accepted.lease is not None, "another process runs it"
    new = [accepted.new] if accepted.new else []
    run = partial(run_generation, gateway, new=new, mailbox=mailbox)
    return gateway.jobs.start(accepted.lease, run)


async def run_generation(
    gateway: Gateway,
    running: RunningJob,
    *,
    new: list[NewGeneration] | None = None,
    mailbox: Mailbox | None = None,
) -> None:
    """Bring a generation from whatever state it is in to `completed` or `failed`, waiting for an unavailable store.

    A new generation is taken out of its list: the first run need not read it, and then nothing keeps it, because there
    are thousands of jobs. Raises LeaseLost when another worker runs the generation now.
    """

    async def run() -> None:
        job = new_job(running, new.pop()) if new else await read_job(gateway, running)
        job.mailbox = mailbox
        with gateway.tracing.continue_trace(job.row.trace_context) if gateway.tracing else nullcontext():
            await _run_loaded(gateway, job)

    await retry_while_unavailable(gateway.clock, run, pause_seconds=_RETRY_STORE_SECONDS, request_id=running.id)


async def _run_loaded(gateway: Gateway, job: Job) -> None:
    try:
        if job.running.lease.is_hopeless:
            raise InternalError("The gateway failed repeatedly while working on this request.")
        await _make_and_complete(gateway, job)
    except StorageUnavailable:
        raise  # nothing was decided
    except OutputNotStored:
        await _fail(gateway, job, StorageUnavailable("The result could not be stored.", should_retry=False))
    except Problem as problem:
        await _fail(gateway, job, problem)


async def _fail(gateway: Gateway, job: Job, problem: Problem) -> None:
    await fail(gateway, job.row, job.lease_token, problem, job.made)
    problem.recorded = True
    if job.mailbox:
        job.mailbox.end = problem


async def _make_and_complete(gateway: Gateway, job: Job) -> None:
    source = job.plan.source
    if isinstance(source, Follow):
        source = await playback.follow(gateway, job, source)
    if isinstance(source, Replay):
        await complete(gateway, job, *await playback.replay(gateway, job, source))
    elif isinstance(source, Mock):
        await complete(gateway, job, *await playback.mock(gateway, job, source))
    else:
        made, failures = await _make_in_rounds(gateway, job)
        if not made:
            is_only = len(job.plan.candidates) == 1
            is_video = job.request.task == "video"
            raise caller_error(failures, forced=job.plan.forced, is_only=is_only, is_video=is_video)
        await _complete_made(gateway, job, made, source if isinstance(source, Recording) else None)


async def _make_in_rounds(gateway: Gateway, job: Job) -> tuple[list[AttemptResult], list[Failure]]:
    """Try all candidates, and after a pause all of them again, while nothing is made and waiting may help.

    A video is tried until its deadline. The caller of an image waits for it: it is tried for a few seconds, and only
    while no provider can be reached.
    """
    clock = gateway.clock
    is_video = job.request.task == "video"
    until = None if is_video else clock.monotonic() + _IMAGE_RETRY_SECONDS
    while True:
        job.failed_attempts.clear()
        made, failures = await _make_outputs(gateway, job)
        if made or not _may_help_to_wait(failures, is_video):
            return made, failures
        pause = _pause_seconds(job.round, failures, is_video)
        is_late = clock.steady_ms() + pause * 1000 >= job.row.deadline_ms
        if is_late or (until is not None and clock.monotonic() + pause >= until):
            return made, failures
        log.info("no provider available, trying again", request_id=job.id, seconds=round(pause, 1))
        await _wait(gateway, job, pause)
        job.round += 1


def _may_help_to_wait(failures: Sequence[Failure], is_video: bool) -> bool:
    """Whether a provider may serve the request later, and none says that the request itself is at fault, or may have
    made something for it.
    """
    if not all(failure.allows_failover and failure.kind != "rejected" for failure in failures):
        return False
    return any(failure.may_pass and (is_video or failure.kind == "unsent") for failure in failures)


def _pause_seconds(rounds: int, failures: Sequence[Failure], is_video: bool) -> float:
    """How long to wait after so many rounds; not less than the shortest time that a provider asked for."""
    first = _VIDEO_PAUSE_SECONDS if is_video else _IMAGE_PAUSE_SECONDS
    growing: float = min(first * 2 ** min(rounds - 1, _DOUBLINGS_MAX), _PAUSE_SECONDS_MAX)
    asked = min(failure.retry_after_seconds or 0.0 for failure in failures if failure.may_pass)
    return max(growing, asked) * random.uniform(1.0, _PAUSE_FACTOR_MAX)  # noqa: S311 - guards nothing


async def _wait(gateway: Gateway, job: Job, seconds: float) -> None:
    """Wait between two rounds; raise Cancelled at once when a cancel is requested."""
    await confirm_survival(gateway, job)
    with job.running.wakeups.waiting() as wakeup, provider_wait():
        await gateway.clock.wait(wakeup, seconds)
    if await is_cancel_requested(gateway, job):
        raise Cancelled()


async def _make_outputs(gateway: Gateway, job: Job) -> tuple[list[AttemptResult], list[Failure]]:
    """Have the first candidate make the outputs; what it does not make is asked of the next one, and so on."""
    made: list[AttemptResult] = []
    failures: list[Failure] = []
    missing = job.request.n
    for index, planned in enumerate(job.plan.candidates):
        made_here, failures_here = await _ask_candidate(gateway, job, missing, index)
        executed_model = f"{planned.provider}/{planned.upstream}"
        job.failed_attempts += [
            AttemptSummary(planned.provider, executed_model, failure.kind, failure.message) for failure in failures_here
        ]
        made += made_here
        failures += failures_here
        missing -= sum(len(attempt.outputs) for attempt in made_here)
        if missing <= 0 or not all(failure.allows_failover for failure in failures_here):
            break
    return made, failures


async def _ask_candidate(
    gateway: Gateway, job: Job, count: int, candidate_index: int
) -> tuple[list[AttemptResult], list[Failure]]:
    """Ask one candidate for `count` outputs. Servers that ignore the number deliver fewer: such a server is asked once
    more for the rest, for as many in each call as it delivers.
    """
    candidate = job.candidates[candidate_index]
    if candidate is None:
        return [], [_not_configured(job, candidate_index)]
    part = Part(candidate, candidate_index, 0, count, first=job.request.n - count)
    parts = _divided(part, candidate.model.op.native_n)
    made, failures = await _run_attempts(gateway, job, parts)
    missing = sum(attempt.part.count - len(attempt.outputs) for attempt in made)
    if missing <= 0 or failures:
        return made, failures
    delivered = min(len(attempt.outputs) for attempt in made)
    rest = Part(candidate, candidate_index, len(parts), missing, first=job.request.n - missing)
    more, failures = await _run_attempts(gateway, job, _divided(rest, max(1, delivered)))
    return made + more, failures


def _divided(part: Part, count_max: int) -> list[Part]:
    """The part as several parts of so many outputs at most."""
    parts: list[Part] = []
    for count in part_sizes(part.count, count_max):
        parts.append(msgspec.structs.replace(part, count=count))
        part = msgspec.structs.replace(part, index=part.index + 1, first=part.first + count)
    return parts


def _not_configured(job: Job, candidate_index: int) -> Failure:
    """The failure of a candidate that was removed from the configuration. If something was sent to it before, its
    outcome is unknown.
    """
    is_sent = any(row.is_open for (index, _), row in job.attempts.items() if index == candidate_index)
    message = f"{job.plan.candidates[candidate_index].provider} is no longer configured."
    return Failure("broken", message, sent=is_sent, unknown=is_sent)


async def _run_attempts(gateway: Gateway, job: Job, parts: Sequence[Part]) -> tuple[list[AttemptResult], list[Failure]]:
    """Run one attempt for each part at the same time and wait for all of them; then raise the first exception.
    Exceptions that decide nothing (the lease or the store is gone) come before a cancel or a timeout. A timeout is not
    raised if other outputs were made in time: they are delivered.
    """
    if len(parts) == 1 and not job.made:
        outcome = await run_attempt(gateway, job, parts[0])  # the usual case, without tasks: thousands run at a time
        return ([], [outcome]) if isinstance(outcome, Failure) else ([outcome], [])
    attempts = (run_attempt(gateway, job, part) for part in parts)
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    if job.made:
        outcomes = [
            _too_late(job, part, outcome) if isinstance(outcome, UpstreamTimeout) else outcome
            for part, outcome in zip(parts, outcomes, strict=True)
        ]
    problems = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if problems:
        undecided = (problem for problem in problems if isinstance(problem, LeaseLost | StorageUnavailable))
        raise next(undecided, problems[0])
    return (
        [outcome for outcome in outcomes if isinstance(outcome, AttemptResult)],
        [outcome for outcome in outcomes if isinstance(outcome, Failure)],
    )


def _too_late(job: Job, part: Part, problem: UpstreamTimeout) -> Failure:
    """The failure of a part whose job still ran at the deadline; the provider is asked about it later."""
    failure = unknown_outcome(problem.message, timed_out=True)
    job.failures[part.candidate_index, part.index] = PastFailure(job.round, failure)
    return failure


async def _complete_made(
    gateway: Gateway, job: Job, made: Sequence[AttemptResult], recording: Recording | None
) -> None:
    outputs: list[StoredOutput] = [stored for attempt in made for stored in attempt.outputs][: job.request.n]
    cost = nanos(sum((attempt.cost_usd for attempt in made), Decimal(0)))
    first = made[0]
    candidate = first.part.candidate
    result = GenerationResult(
        provider=candidate.provider.slug,
        provider_name=candidate.provider.name,
        executed_model=candidate.executed_model,
        cost=min(cost, job.row.hold),
        outputs=tuple(stored.output for stored in outputs),
        upstream_id=first.result.upstream_id or first.attempt_id,
        attempts=(*job.failed_attempts, *(_summary(attempt) for attempt in made)),
        missing=max(0, job.request.n - len(outputs)),
        origin="recorded" if recording else "live",
        recording_id=recording.recording_id if recording else None,
    )
    await complete(gateway, job, result, outputs, attempts=made, cost=cost, recording=recording)


def _summary(attempt: AttemptResult) -> AttemptSummary:
    candidate = attempt.part.candidate
    return AttemptSummary(
        candidate.provider.slug,
        candidate.executed_model,
        "made",
        count=len(attempt.outputs),
        upstream_id=attempt.result.upstream_id or attempt.attempt_id,
    )
