"""What was made for a generation, kept in the store until it is announced: after a crash it is not made again."""

from decimal import Decimal

import msgspec
import structlog

from penstock.accounts.prices import Line
from penstock.gateway import Gateway
from penstock.generation_jobs.finish import NewResult
from penstock.generation_jobs.job import Job
from penstock.generation_jobs.parts import AttemptResult, Part
from penstock.generation_jobs.rows import Recording
from penstock.jobs.steps import Step
from penstock.providers.spec import Result
from penstock.schema import GenerationResult, Output, StoredOutput
from penstock.store.waiting import retry_while_unavailable
from penstock.values import Nanos

log = structlog.get_logger()
_Line = tuple[str, str, Decimal, bool]


class _MadeOutput(msgspec.Struct, frozen=True):
    output: Output
    sha256: bytes


class _MadeAttempt(msgspec.Struct, frozen=True):
    id: str
    candidate: int
    part: int
    count: int
    first: int
    ref: dict[str, str]
    upstream_id: str | None
    usage: dict[str, int | float]
    price_lines: tuple[_Line, ...]
    listed_lines: tuple[_Line, ...] | None


class Made(msgspec.Struct, frozen=True):
    """A result as it is kept."""

    at_ms: int  # in steady time
    result: GenerationResult
    outputs: tuple[_MadeOutput, ...]
    attempts: tuple[_MadeAttempt, ...]
    cost: int
    recording: Recording | None


async def store_made(gateway: Gateway, job: Job, new: NewResult) -> int:
    """Keep what was made, and return since when. Raises LeaseLost."""
    made = Made(
        gateway.clock.steady_ms(),
        new.result,
        tuple(_MadeOutput(stored.output, stored.sha256) for stored in new.outputs),
        tuple(_kept(attempt) for attempt in new.attempts),
        new.cost,
        new.recording,
    )
    changes = [("set_made", {"id": job.id, "made": msgspec.json.encode(made)})]
    step = Step(job.running.lease, changes, is_progress=True)
    await retry_while_unavailable(gateway.clock, lambda: gateway.steps.add(step, job.org_id), request_id=job.id)
    job.running.forget_crashes()
    job.running.send_guard.may_run_again()
    return made.at_ms


async def read_made(gateway: Gateway, job: Job) -> tuple[NewResult, int] | None:
    """What an earlier run has made, and since when; None if it has made nothing yet."""
    row = await gateway.store.one("get_made", id=job.id)
    if row is None or row["made"] is None:
        return None
    made = msgspec.json.decode(row["made"], type=Made)
    attempts = [found for kept in made.attempts if (found := _restored(job, kept)) is not None]
    job.history.made.extend(attempts)
    outputs = [StoredOutput(output=kept.output, sha256=kept.sha256) for kept in made.outputs]
    return NewResult(made.result, outputs, attempts, Nanos(made.cost), made.recording), made.at_ms


def _kept(attempt: AttemptResult) -> _MadeAttempt:
    part = attempt.part
    listed = None if attempt.listed_lines is None else tuple(map(_plain, attempt.listed_lines))
    lines = tuple(map(_plain, attempt.price_lines))
    return _MadeAttempt(
        attempt.attempt_id,
        part.candidate_index,
        part.index,
        part.count,
        part.first,
        dict(attempt.result.ref),
        attempt.result.upstream_id,
        dict(attempt.result.usage),
        lines,
        listed,
    )


def _plain(line: Line) -> _Line:
    return (line.usd, line.metric, line.quantity, line.is_input)


def _restored(job: Job, kept: _MadeAttempt) -> AttemptResult | None:
    candidate = job.candidates[kept.candidate]
    if candidate is None:
        log.warning("the provider of a finished attempt is no longer configured", request_id=job.id)
        return None
    part = Part(candidate, kept.candidate, kept.part, kept.count, kept.first)
    listed = None if kept.listed_lines is None else tuple(Line(*line) for line in kept.listed_lines)
    lines = tuple(Line(*line) for line in kept.price_lines)
    result = Result(ref=kept.ref, upstream_id=kept.upstream_id, usage=kept.usage)
    return AttemptResult(part, kept.id, result, (), lines, listed)
