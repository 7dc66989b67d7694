"""Run an accepted generation to its end; may be interrupted at any line and run again."""

import errno
from contextlib import nullcontext
from functools import partial

import structlog

from penstock.errors import InternalError, Problem, ProvenanceUnavailable, StorageUnavailable, without_frames
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generation_jobs import failover, playback
from penstock.generation_jobs.delivery import deliver
from penstock.generation_jobs.finish import NewResult, complete, fail
from penstock.generation_jobs.job import Job, NewGeneration, new_job, read_job
from penstock.generation_jobs.made import read_made, store_made
from penstock.generation_jobs.mailbox import Mailbox
from penstock.generation_jobs.output_guards import check_outputs, output_guards
from penstock.generation_jobs.rows import Follow, Mock, Replay
from penstock.jobs.running import Lease, RunningJob
from penstock.media.transfer import OutputNotSealed, OutputNotStored
from penstock.store.waiting import retry_while_unavailable

log = structlog.get_logger()
_RETRY_STORE_SECONDS = 5.0
_SHORTAGES = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT})
_NO_THREAD = "can't start new thread"


def start_generation(
    gateway: Gateway, lease: Lease, new: NewGeneration | None, mailbox: Mailbox | None = None
) -> RunningJob:
    """Run a generation that this process has just accepted; the mailbox is that of a caller who waits for it."""
    run = partial(run_generation, gateway, new=[new] if new else [], mailbox=mailbox)
    return gateway.jobs.start(lease, run)


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
        job = new_job(running, new.pop(), mailbox) if new else await read_job(gateway, running, mailbox)
        with gateway.tracing.continue_trace(job.row.trace_context) if gateway.tracing else nullcontext():
            try:
                await complete(gateway, job, await _make_and_deliver(gateway, job))
            except StorageUnavailable:
                raise  # nothing was decided
            except OutputNotSealed as error:
                message = f"The output was made, but {error}."
                await _fail(gateway, job, ProvenanceUnavailable(message, should_retry=False))
            except OutputNotStored:
                await _fail(gateway, job, StorageUnavailable("The result could not be stored.", should_retry=False))
            except Problem as problem:
                await _fail(gateway, job, problem)
            except (MemoryError, OSError, RuntimeError) as problem:
                if not _is_shortage(problem):
                    raise
                # The generation is not the cause, so it waits as for a full disk and no crash is counted.
                log.error("out of resources, trying again", request_id=job.id, reason=_reason(problem))
                if gateway.clock.steady_ms() >= job.row.deadline_ms:
                    message = "The gateway had too little memory, or too few threads or descriptors, for this request."
                    await _fail(gateway, job, StorageUnavailable(message, should_retry=False))
                else:
                    raise StorageUnavailable("The gateway is out of resources.") from problem

    await retry_while_unavailable(gateway.clock, run, pause_seconds=_RETRY_STORE_SECONDS, request_id=running.id)


def _is_shortage(problem: Exception) -> bool:
    """Whether this process, or its machine, has no memory, threads or descriptors left."""
    if isinstance(problem, OSError):
        return problem.errno in _SHORTAGES
    return isinstance(problem, MemoryError) or _NO_THREAD in str(problem)


def _reason(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


async def _make_and_deliver(gateway: Gateway, job: Job) -> NewResult:
    """Have the outputs made, seen by guards and, if the caller wants that, copied into a bucket."""
    wanted = job.request.delivery
    guards = output_guards(gateway, job)
    if wanted is None and not guards:
        return await _make(gateway, job)
    kept = await read_made(gateway, job)
    if kept is None:
        new = await _make(gateway, job)
        kept = new, await store_made(gateway, job, new)
        failpoint("deliver.after_made")
    if guards:
        await check_outputs(gateway, job, guards, *kept)
    return kept[0] if wanted is None else await deliver(gateway, job, wanted, *kept)


async def _make(gateway: Gateway, job: Job) -> NewResult:
    """Have the outputs made as the plan says: by providers, from a recording, or by a mock."""
    if job.running.lease.is_hopeless:
        raise InternalError("The gateway failed repeatedly while working on this request.")
    source = job.plan.source
    if isinstance(source, Follow):
        source = await playback.follow(gateway, job, source)
    if isinstance(source, Replay):
        return await playback.replay(gateway, job, source)
    if isinstance(source, Mock):
        return await playback.mock(gateway, job, source)
    return await failover.make(gateway, job, source)


async def _fail(gateway: Gateway, job: Job, problem: Problem) -> None:
    await fail(gateway, job, problem)
    problem.recorded = True
    if job.mailbox:
        job.mailbox.end = without_frames(problem)
