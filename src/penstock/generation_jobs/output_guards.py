"""Ask the operator's guards about what was made, before it is delivered or announced."""

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from functools import partial

import structlog

from penstock.errors import OutputRefused, Unavailable
from penstock.gateway import Gateway
from penstock.generation_jobs.finish import NewResult
from penstock.generation_jobs.job import Job, confirm_survival
from penstock.guards.configured import Guard
from penstock.guards.verdicts import MAX_IMAGE_BYTES, GuardFailed, Verdict, describe
from penstock.imaging.workers import WorkFailed
from penstock.schema import JOB_TASKS, Output

log = structlog.get_logger()
_WAITING_CALLER_SECONDS = 30.0  # how long guards are asked again while a caller waits for the outputs
_PAUSE_SECONDS = 1.0
_PAUSE_SECONDS_MAX = 60.0
_VIDEO_BYTES_MAX = 256 * 1024**2  # of one that is decoded
_NOT_SEEN = Verdict("refuse", "it could not be shown to the guard")


def output_guards(gateway: Gateway, job: Job) -> list[Guard]:
    """The guards that are asked about what the job makes."""
    task = job.request.task
    return gateway.guards.watching("edit" if task == "upscale" else task, job.org_id, "output")


async def check_outputs(gateway: Gateway, job: Job, guards: Sequence[Guard], new: NewResult, made_ms: int) -> None:
    """Return if the outputs may be announced. A guard that must answer and does not is asked again: jobs wait for it
    until their deadline, and callers for a little.

    Raises OutputRefused, and Unavailable when the time is over.
    """
    until_ms: float = job.row.deadline_ms
    if job.request.task not in JOB_TASKS and not job.request.is_job:
        until_ms = min(until_ms, made_ms + _WAITING_CALLER_SECONDS * 1000)
    passed: set[tuple[int, str]] = set()
    pause = _PAUSE_SECONDS
    while True:
        try:
            for position, stored in enumerate(new.outputs):
                await _check_output(gateway, job, guards, position, stored.output, passed)
        except GuardFailed as problem:
            if gateway.clock.steady_ms() + pause * 1000 >= until_ms:
                message = f"The output was made, but {problem}; nothing is charged."
                raise Unavailable(message, should_retry=False) from None
            await confirm_survival(gateway, job)
            await gateway.clock.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)
        else:
            return


async def _check_output(
    gateway: Gateway, job: Job, guards: Sequence[Guard], position: int, output: Output, passed: set[tuple[int, str]]
) -> None:
    """Ask all guards that have not let this output pass. Raises OutputRefused, and GuardFailed if one must be asked
    again.
    """
    left = [guard for guard in guards if (position, guard.name) not in passed]
    image = await _picture(gateway, job, output) if left else None
    answers = await asyncio.gather(
        *(_verdict(gateway, job, guard, position, output, image) for guard in left), return_exceptions=True
    )
    failures: list[BaseException] = []
    for guard, answer in zip(left, answers, strict=True):
        if isinstance(answer, BaseException):
            failures.append(answer)
        elif answer.verdict == "refuse":
            reason = f": {answer.reason}" if guard.show_reason and answer.reason else ""
            charge = "it was made, and is charged" if guard.charge_refused else "nothing is charged"
            message = f"The guard `{guard.name}` of this gateway refused the output{reason}; {charge}."
            raise OutputRefused(message, is_charged=guard.charge_refused)
        else:
            passed.add((position, guard.name))
    if failures:
        raise failures[0]


async def _verdict(
    gateway: Gateway, job: Job, guard: Guard, position: int, output: Output, image: tuple[str, bytes] | None
) -> Verdict:
    if image is None:
        return _NOT_SEEN if guard.on_error == "closed" else Verdict("pass")
    request = job.request
    kind = "edit" if request.task == "upscale" else request.task
    question = describe(kind, request.model, str(request.values.get("prompt") or ""), request.labels, None)
    content_type, data = image
    shown = {
        **question,
        "when": "output",
        "position": position,
        "revised_prompt": output.revised_prompt,
        "images": [{"content_type": content_type, "data": b64encode(data).decode()}],
    }
    return await gateway.guards.judge_output(guard, job.id, shown)


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
