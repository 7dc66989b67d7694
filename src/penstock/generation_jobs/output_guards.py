"""Ask the operator's guards about what was made, before it is delivered or announced."""

from base64 import b64encode
from collections.abc import Sequence
from functools import partial

import structlog

from penstock.gateway import Gateway
from penstock.generation_jobs.finish import NewResult
from penstock.generation_jobs.job import Job, confirm_survival
from penstock.guards.configured import Guard, guarded_kind
from penstock.guards.guards import WAITING_CALLER_SECONDS, refused_output
from penstock.guards.texts import joined, text_of_transcript
from penstock.guards.verdicts import MAX_IMAGE_BYTES, Asked, Verdict, describe, describe_text
from penstock.imaging.workers import WorkFailed
from penstock.schema import JOB_TASKS, LISTEN_TASKS, Output

log = structlog.get_logger()
_VIDEO_BYTES_MAX = 256 * 1024**2  # of one that is decoded
_NOT_SEEN = Verdict("refuse", "it could not be shown to the guard")


def output_guards(gateway: Gateway, job: Job) -> list[Guard]:
    """The guards that are asked about what the job makes."""
    return gateway.guards.watching(guarded_kind(job.request.task), job.org_id, "output", job.id)


async def check_outputs(gateway: Gateway, job: Job, guards: Sequence[Guard], new: NewResult, made_ms: int) -> None:
    """Return if the outputs may be announced. A guard that must answer and does not is asked again: jobs wait for it
    until their deadline, and callers for a little.

    Raises OutputRefused, and Unavailable when the time is over.
    """
    until_ms: float = job.row.deadline_ms
    if job.request.task not in JOB_TASKS and not job.request.is_job:
        until_ms = min(until_ms, made_ms + WAITING_CALLER_SECONDS * 1000)
    passed: list[set[str]] = [set() for _ in new.outputs]

    async def ask() -> None:
        for position, stored in enumerate(new.outputs):
            await _check_output(gateway, job, guards, position, stored.output, passed[position])

    await gateway.guards.insist(ask, until_ms, partial(confirm_survival, gateway, job))


async def _check_output(
    gateway: Gateway, job: Job, guards: Sequence[Guard], position: int, output: Output, passed: set[str]
) -> None:
    """Ask all guards that have not let this output pass. Raises OutputRefused, and GuardFailed if one must be asked
    again.
    """
    if len(passed) == len(guards):
        return
    if job.request.task in LISTEN_TASKS:
        await _check_text(gateway, job, guards, output, passed)
        return
    image = await _picture(gateway, job, output)
    if image is None:
        if strict := next((guard for guard in guards if guard.on_error == "closed"), None):
            raise refused_output(strict, _NOT_SEEN)
        return
    request = job.request
    kind = guarded_kind(request.task)
    content_type, data = image
    question = {
        **describe(kind, request.model, str(request.values.get("prompt") or ""), request.labels, None),
        "when": "output",
        "position": position,
        "revised_prompt": output.revised_prompt,
        "images": [{"content_type": content_type, "data": b64encode(data).decode()}],
    }
    await gateway.guards.judge_output(guards, Asked(job.id, job.org_id, job.key_id), question, passed)


async def _check_text(gateway: Gateway, job: Job, guards: Sequence[Guard], output: Output, passed: set[str]) -> None:
    """As `_check_output`, about a transcript."""
    request = job.request
    data = bytes(await gateway.media.read(output.media_id, output.size_bytes))
    text = text_of_transcript(data.decode(), output.content_type)
    written = joined(request.values.get("prompt"), request.values.get("keywords"), request.extras)
    question = describe(guarded_kind(request.task), request.model, written, request.labels, None)
    asked = Asked(job.id, job.org_id, job.key_id)
    await gateway.guards.judge_output(guards, asked, {**question, **describe_text(text)}, passed, text=text)


async def _picture(gateway: Gateway, job: Job, output: Output) -> tuple[str, bytes] | None:
    """An image that shows an output, of a mebibyte at most: frames of a video are on one sheet. None if it cannot be
    shown.
    """
    load = partial(gateway.media.read, output.media_id, output.size_bytes)
    is_video = output.content_type.startswith("video/")
    try:
        if is_video:
            if output.size_bytes > _VIDEO_BYTES_MAX:
                return None
            sheet = await gateway.worker_pool.run("video.preview", for_org=job.org_id, load=load, variant="spritesheet")
            content_type, data = sheet["content_type"], sheet["data"]
        else:
            content_type, data = output.content_type, await load()
        if len(data) > MAX_IMAGE_BYTES:
            small = await gateway.worker_pool.run(
                "image.limit_bytes", for_org=job.org_id, data=data, max_bytes=MAX_IMAGE_BYTES
            )
            content_type, data = small["content_type"], small["data"]
    except WorkFailed as problem:
        log.warning("output not shown to guards", request_id=job.id, reason=problem.message)
        return None
    return content_type, bytes(data)
