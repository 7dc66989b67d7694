"""The endpoints for images, videos and sounds, step by step; start reading here."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from penstock.errors import InvalidRequest, Problem
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.generation_jobs.mailbox import Mailbox, PartialImages
from penstock.generation_jobs.rows import GenerationRow, get_generation_by_key
from penstock.generation_jobs.run import start_generation
from penstock.generations import respond, sounds, validate
from penstock.generations.accept import accept
from penstock.generations.idempotency_keys import first_look
from penstock.generations.plan import PlannedCall, estimate, make_plan, watching_outputs
from penstock.generations.repeats import repeated_images
from penstock.generations.retrieve import delayed_image_result, job_result, unfinished_problem, video_created
from penstock.generations.stream import image_stream
from penstock.interrupts import ProcessStopped
from penstock.schema import Call, Response
from penstock.settings import Settings
from penstock.telemetry.tracing import span

_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,6})\b")
_WAIT_SECONDS_MAX = 60

# -------------------------------------------------------------------------------------------------------------- images


async def make_images(gateway: Gateway, call: Call) -> Response:
    """Make images while the caller waits."""
    with span("validate"):
        validated = await run_aside(call.size_bytes, validate.image, call, gateway.settings)
        planned = await make_plan(gateway, call, validated, ("image",))
    return await _images(gateway, call, planned)


async def edit_images(gateway: Gateway, call: Call) -> Response:
    """Edit or upscale images while the caller waits. The model decides which: an edit needs a prompt."""
    with span("validate"):
        validated = await run_aside(call.size_bytes, validate.edit, call, gateway.settings)
        planned = await make_plan(gateway, call, validated, ("edit", "upscale"))
    return await _images(gateway, call, planned)


async def _images(gateway: Gateway, call: Call, planned: PlannedCall) -> Response:
    if call.dry_run:
        return estimate(gateway, call, planned)
    is_async = "respond-async" in call.headers.get("prefer", "") and not planned.validated.stream
    accepted = await accept(gateway, call, planned, is_awaited=not is_async)
    if accepted.is_repeated:
        digest = await run_aside(call.size_bytes, validate.canonical_digest, planned.validated)
        return await repeated_images(gateway, call, accepted.row, digest, is_async=is_async)
    # What a guard has not seen is not shown.
    partial_images = 0 if watching_outputs(gateway, call, planned.request) else planned.request.partial_images
    mailbox = Mailbox(PartialImages(partial_images) if partial_images else None)
    assert accepted.lease is not None, "the process that accepts an image makes it"
    running = start_generation(gateway, accepted.lease, accepted.new, mailbox)
    if planned.validated.stream:
        return image_stream(gateway, call, planned, running, mailbox)
    if is_async:
        return Response(status=202, json=respond.image_status(accepted.row), headers=respond.poll_headers(accepted.row))
    try:
        with gateway.interrupts.allowed(call.line):  # of the wait only: the generation goes on
            is_finished = await running.wait(gateway.settings.image_wait_seconds)
    except ProcessStopped:
        is_finished = False
    if not is_finished:
        raise unfinished_problem(call.id)
    if isinstance(mailbox.end, Problem):
        raise mailbox.take_problem()
    if planned.due_ms[1] > gateway.clock.steady_ms():
        return await delayed_image_result(gateway, call, planned.due_ms)
    return await job_result(gateway, call, mailbox)


# ---------------------------------------------------------------------------------------------------- videos and sounds


class _Job(NamedTuple):
    """A kind of generation whose caller comes back for it."""

    task: str
    validate: Callable[[Call, Settings], validate.ValidatedCall]
    created: Callable[[Gateway, GenerationRow, Mapping[str, str] | None], Response]


_VIDEO = _Job("video", validate.video, video_created)
_SOUND = _Job("sound", validate.sound, sounds.created)


async def start_video(gateway: Gateway, call: Call) -> Response:
    """Accept a video, which is made after the response; see `run`."""
    return await _start_job(gateway, call, _VIDEO)


async def start_sound(gateway: Gateway, call: Call) -> Response:
    """Accept a sound or music as `start_video` does a video, and wait for it as long as the caller prefers."""
    response = await _start_job(gateway, call, _SOUND)
    seconds = 0 if call.dry_run else _preferred_wait(call)
    return await sounds.waited(gateway, call, response, seconds) if seconds else response


async def _start_job(gateway: Gateway, call: Call, job: _Job) -> Response:
    org_id = call.caller.org_id
    key = None if call.dry_run else first_look(call, job.task)
    if key and (earlier := await get_generation_by_key(gateway.store, org_id, key)):
        return await _repeated_response(gateway, call, earlier, job)
    with span("validate"):
        validated = await run_aside(call.size_bytes, job.validate, call, gateway.settings)
        planned = await make_plan(gateway, call, validated, (job.task,))
    if call.dry_run:
        return estimate(gateway, call, planned)
    accepted = await accept(gateway, call, planned)
    if accepted.is_repeated:
        return await _repeated_response(gateway, call, accepted.row, job)
    if accepted.lease:
        start_generation(gateway, accepted.lease, accepted.new)
    return job.created(gateway, accepted.row, None)


async def _repeated_response(gateway: Gateway, call: Call, earlier: GenerationRow, job: _Job) -> Response:
    """The response to a call whose idempotency key was used before."""
    headers = {"idempotent-replayed": "true", "x-request-id": earlier.id, "x-service-request-id": earlier.id}
    if earlier.body_digest != await run_aside(call.size_bytes, _canonical_digest, gateway, call, job):
        headers["idempotency-mismatch"] = "true"
    return job.created(gateway, earlier, headers)


def _canonical_digest(gateway: Gateway, call: Call, job: _Job) -> bytes | None:
    """The digest of a body that may be invalid: then it differs from every accepted one."""
    try:
        return validate.canonical_digest(job.validate(call, gateway.settings))
    except InvalidRequest:
        return None


def _preferred_wait(call: Call) -> int:
    """For how many seconds a caller wants to wait for the end, as in RFC 7240; 0 without such a preference."""
    found = _WAIT.search(call.headers.get("prefer", ""))
    return min(int(found[1]), _WAIT_SECONDS_MAX) if found else 0
