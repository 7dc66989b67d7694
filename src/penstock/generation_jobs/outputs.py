"""Download the outputs of an attempt and store them."""

import structlog
from msgspec.structs import replace

from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generation_jobs.job import Job
from penstock.generation_jobs.parts import Part
from penstock.generation_jobs.polling import poll_or_none
from penstock.media.provider_files import DownloadFailed, UnusableFile
from penstock.media.transfer import OutputNotSealed, OutputNotStored
from penstock.providers.spec import Result
from penstock.schema import JOB_TASKS, StoredOutput
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure

log = structlog.get_logger()
# How long downloading a finished output is tried; callers wait for images.
_FETCH_JOB_SECONDS = 900.0
_FETCH_IMAGE_SECONDS = 15.0
_FETCH_PAUSE_SECONDS_MAX = 30.0


async def store_outputs(
    gateway: Gateway, job: Job, part: Part, attempt_id: str, result: Result
) -> tuple[StoredOutput, ...]:
    """Download and store what was made. It is billed already, so a failure here is tried again for some time, and
    the outputs are never ordered a second time. Raises UnusableFile for one that is too large.
    """
    failpoint("fetch.start")
    clock = gateway.clock
    provider = part.candidate.provider
    is_job = job.request.task in JOB_TASKS
    until = clock.monotonic() + (_FETCH_JOB_SECONDS if is_job else _FETCH_IMAGE_SECONDS)
    pause = 1.0
    while True:
        reason = ""
        try:
            return await _store_files(gateway, job, part, attempt_id, result)
        except OutputNotStored as problem:
            if not problem.may_change or _is_last_try(gateway, job, problem, until):
                raise
        except DownloadFailed as problem:
            reason = str(problem)
            if clock.monotonic() >= until:
                message = f"{provider.name} made the output, but it could not be downloaded: {problem}."
                raise AttemptFailed(Failure("unfetched", message)) from problem
        except UnusableFile as problem:
            reason = str(problem)
            if problem.too_large:
                raise
            if not problem.may_change or clock.monotonic() >= until:
                message = f"{provider.name} delivered an unusable file: {problem}."
                raise AttemptFailed(Failure("unreadable", message)) from problem
        if reason:  # otherwise the storage is the cause, which has its own line
            log.warning("output not usable yet, trying again", request_id=job.id, provider=provider.slug, reason=reason)
        await clock.sleep(pause)
        pause = min(2 * pause, _FETCH_PAUSE_SECONDS_MAX)
        result = await _refresh_files(gateway, part.candidate, result)


def _is_last_try(gateway: Gateway, job: Job, problem: OutputNotStored, until: float) -> bool:
    """Whether an output that could not be stored or sealed is given up. Videos and sounds wait until their deadline;
    callers wait for images, and a little for a signer.
    """
    if job.request.task in JOB_TASKS:
        return gateway.clock.steady_ms() >= job.row.deadline_ms
    return not isinstance(problem, OutputNotSealed) or gateway.clock.monotonic() >= until


async def _refresh_files(gateway: Gateway, candidate: Candidate, result: Result) -> Result:
    """Poll a finished job once more: it may have fresh URLs for its files."""
    if candidate.model.op.poll and result.ref:
        polled = await poll_or_none(gateway, candidate, result)
        if polled is not None and polled.status == "completed":
            return replace(result, files=polled.files)
    return result


async def _store_files(
    gateway: Gateway, job: Job, part: Part, attempt_id: str, result: Result
) -> tuple[StoredOutput, ...]:
    """Store each file under a media id made from the attempt's id: storing again after a crash replaces it."""
    outputs = []
    origin = job.origin(part.candidate)
    for index, file in enumerate(result.files[: part.count]):
        source = None if file.data is not None else gateway.upstream.download_source(part.candidate, file)
        media_id = f"med_{attempt_id.removeprefix('att_')}{index:02}"
        stored = await gateway.media_transfer.store_output(
            media_id, file, source, job.request, origin, for_org=job.org_id
        )
        outputs.append(stored)
        failpoint("media.after_fsync")
    return tuple(outputs)
