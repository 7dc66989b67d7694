"""Run an accepted generation to its end; may be interrupted at any line and run again."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

from penstock.errors import InternalError, Problem, StorageUnavailable
from penstock.gateway import Gateway
from penstock.generations import playback
from penstock.generations.attempt import run_attempt
from penstock.generations.finish import complete, fail
from penstock.generations.job import AttemptResult, Job, Part, load_job, part_sizes
from penstock.generations.rows import Follow, Mock, Recording, Replay
from penstock.jobs.running import LeaseLost, RunningJob
from penstock.media.transfer import OutputNotStored
from penstock.schema import AttemptSummary, GenerationResult, StoredOutput
from penstock.store.waiting import retry_while_unavailable
from penstock.upstream.outcome import Failure, error_for
from penstock.values import nanos

_RETRY_STORE_SECONDS = 5.0


async def run_generation(gateway: Gateway, running: RunningJob) -> None:
    """Bring a generation from whatever state it is in to `completed` or `failed`, waiting for an unavailable store.

    Raises LeaseLost when another worker runs it now.
    """
    run = partial(_run, gateway, running)
    await retry_while_unavailable(gateway.clock, run, pause_seconds=_RETRY_STORE_SECONDS, request_id=running.id)


async def _run(gateway: Gateway, running: RunningJob) -> None:
    job = await load_job(gateway, running)
    try:
        if running.lease.is_hopeless:
            raise InternalError("The gateway failed repeatedly while working on this request.")
        await _make_and_complete(gateway, job)
    except StorageUnavailable:
        raise  # nothing was decided
    except OutputNotStored:
        await _fail(gateway, job, StorageUnavailable("The result could not be stored.", should_retry=False))
    except Problem as problem:
        await _fail(gateway, job, problem)


async def _fail(gateway: Gateway, job: Job, problem: Problem) -> None:
    await fail(gateway, job.row, job.lease_token, problem)
    job.running.problem = problem


async def _make_and_complete(gateway: Gateway, job: Job) -> None:
    source = job.plan.source
    if isinstance(source, Follow):
        source = await playback.follow(gateway, job, source)
    if isinstance(source, Replay):
        await complete(gateway, job, *await playback.replay(gateway, job, source))
    elif isinstance(source, Mock):
        await complete(gateway, job, *await playback.mock(gateway, job, source))
    else:
        made, failures = await _make_outputs(gateway, job, job.request.n, 0)
        if not made:
            raise error_for(failures, forced=job.plan.forced, is_video=job.request.task == "video")
        await _complete_made(gateway, job, made, source if isinstance(source, Recording) else None)


async def _make_outputs(
    gateway: Gateway, job: Job, count: int, candidate_index: int
) -> tuple[list[AttemptResult], list[Failure]]:
    """Have a candidate make `count` outputs; what it fails to make is asked of the next one."""
    planned = job.plan.candidates[candidate_index]
    candidate = job.candidates[candidate_index]
    outcomes: Sequence[AttemptResult | Failure]
    if candidate is None:
        outcomes = [_not_configured(job, count, candidate_index)]
    else:
        sizes = part_sizes(count, candidate.model.op.native_n)
        parts = [Part(candidate, candidate_index, index, size) for index, size in enumerate(sizes)]
        outcomes = await _run_attempts(gateway, job, parts)
    made = [outcome for outcome in outcomes if isinstance(outcome, AttemptResult)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    name = f"{planned.provider}/{planned.upstream}"
    job.failed_attempts += [
        AttemptSummary(planned.provider, name, failure.kind, failure.message) for failure in failures
    ]
    missing = sum(failure.count for failure in failures)
    has_next = candidate_index + 1 < len(job.plan.candidates)
    if missing and has_next and all(failure.allows_failover for failure in failures):
        more, more_failures = await _make_outputs(gateway, job, missing, candidate_index + 1)
        return made + more, failures + more_failures
    return made, failures


def _not_configured(job: Job, count: int, candidate_index: int) -> Failure:
    """The failure of a candidate that was removed from the configuration. If something was sent to it before, its
    outcome is unknown.
    """
    is_sent = any(row.is_open for (index, _), row in job.attempts.items() if index == candidate_index)
    message = f"{job.plan.candidates[candidate_index].provider} is no longer configured."
    return Failure("broken", message, count, sent=is_sent, unknown=is_sent)


async def _run_attempts(gateway: Gateway, job: Job, parts: Sequence[Part]) -> list[AttemptResult | Failure]:
    """Run one attempt for each part at the same time and wait for all of them; then raise the first exception.
    Exceptions that decide nothing (the lease or the store is gone) come before a cancel or a timeout.
    """
    if len(parts) == 1:
        return [await run_attempt(gateway, job, parts[0])]  # the usual case, without tasks: thousands run at a time
    attempts = (run_attempt(gateway, job, part) for part in parts)
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    problems = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if problems:
        undecided = (problem for problem in problems if isinstance(problem, LeaseLost | StorageUnavailable))
        raise next(undecided, problems[0])
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


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
        attempts=(*job.failed_attempts, AttemptSummary(candidate.provider.slug, candidate.executed_model, "made")),
        origin="recorded" if recording else "live",
        recording_id=recording.recording_id if recording else None,
    )
    await complete(gateway, job, result, outputs, attempts=made, cost=cost, recording=recording)
