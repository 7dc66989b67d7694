"""Copy what was made into the bucket that its caller names, before anybody is told that it is there."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import msgspec
import structlog

from penstock.destinations.bucket import BucketFailed, File
from penstock.destinations.destinations import Destination
from penstock.destinations.places import file_path
from penstock.errors import DeliveryFailed, NotFound, StorageUnavailable
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generation_jobs.finish import NewResult
from penstock.generation_jobs.job import Job, confirm_survival
from penstock.schema import JOB_TASKS, Delivered, Delivery, Output, StoredOutput
from penstock.telemetry.tracing import span

log = structlog.get_logger()
_WAITING_CALLER_SECONDS = 30.0  # how long a copy is tried while a caller waits for the outputs
_PAUSE_SECONDS = 1.0
_PAUSE_SECONDS_MAX = 60.0
_DELETED = "the destination was deleted"
_GIVEN_UP = "the gateway failed repeatedly while copying it"


async def deliver(gateway: Gateway, job: Job, delivery: Delivery, new: NewResult, made_ms: int) -> NewResult:
    """Copy all outputs, and return the result with where the copies are. It is tried until the time is over; then the
    result says why, unless the caller requires the copies.

    Each file has a path that follows from its request and a content that is kept, so a copy that is made again after a
    crash is the same file. Raises DeliveryFailed for copies that are required.
    """
    copies: list[Delivered | None] = [None] * len(new.outputs)
    failures = [_GIVEN_UP] * len(new.outputs)
    until_ms = min(made_ms + _seconds(gateway, job) * 1000, job.row.deadline_ms)
    pause = _PAUSE_SECONDS
    while not job.running.lease.is_hopeless:
        may_pass = await _try_all(gateway, job, delivery, new.outputs, copies, failures)
        if all(copies) or not may_pass or gateway.clock.steady_ms() + pause * 1000 >= until_ms:
            break
        await confirm_survival(gateway, job)
        await gateway.clock.sleep(pause)
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)
    if not all(copies):
        reason = failures[copies.index(None)]
        log.warning("output not delivered", request_id=job.id, destination=delivery.destination, reason=reason)
        if delivery.required:
            raise DeliveryFailed(f"The output was made, and is charged, but not copied: {reason}.")
    outputs = [
        replace(stored, output=_with_copy(stored.output, copy, failure))
        for stored, copy, failure in zip(new.outputs, copies, failures, strict=True)
    ]
    result = msgspec.structs.replace(new.result, outputs=tuple(stored.output for stored in outputs))
    return msgspec.structs.replace(new, result=result, outputs=outputs)


def _seconds(gateway: Gateway, job: Job) -> float:
    """How long copies are tried."""
    seconds = gateway.settings.delivery_seconds
    is_job = job.request.task in JOB_TASKS or job.request.is_job
    return seconds if is_job else min(seconds, _WAITING_CALLER_SECONDS)


async def _try_all(
    gateway: Gateway,
    job: Job,
    delivery: Delivery,
    outputs: Sequence[StoredOutput],
    copies: list[Delivered | None],
    failures: list[str],
) -> bool:
    """Try to copy what is not copied yet; return whether it may help to try again."""
    may_pass = True
    for position, stored in enumerate(outputs):
        if copies[position] is not None:
            continue
        try:
            destination = await _destination(gateway, job, delivery)
        except NotFound:
            failures[position], may_pass = _DELETED, False
            continue
        try:
            copies[position] = await _copy(gateway, job, destination, delivery.path, position, stored)
        except BucketFailed as problem:
            failures[position], may_pass = str(problem), may_pass and problem.may_pass
            await _note(gateway, destination, str(problem))
        else:
            failpoint("deliver.after_copy")
            await _note(gateway, destination, None)
    return may_pass


async def _destination(gateway: Gateway, job: Job, delivery: Delivery) -> Destination:
    """The destination with its present keys. Raises NotFound."""
    try:
        return gateway.destinations.get(job.org_id, delivery.destination)
    except NotFound:
        await gateway.destinations.refresh()  # another process may have just added it
    return gateway.destinations.get(job.org_id, delivery.destination)


async def _copy(
    gateway: Gateway, job: Job, destination: Destination, template: str, position: int, stored: StoredOutput
) -> Delivered:
    """Copy one output. Raises BucketFailed, or StorageUnavailable if it cannot be read."""
    output, request = stored.output, job.request
    path = file_path(
        template,
        request_id=job.id,
        position=position,
        content_type=output.content_type,
        created_at_ms=job.row.created_at_ms,
        model=request.model,
        task=request.task,
        labels=request.labels,
    )

    async def read() -> AsyncGenerator[bytes]:
        async for chunk in gateway.media.read_chunks(output.media_id, 0, output.size_bytes):
            yield chunk

    file = File(read, output.size_bytes, stored.sha256, output.content_type)
    with span("deliver", "client"):
        etag = await gateway.destinations.buckets.put(destination.place, path, file, destination.keys, job.org_id)
    return Delivered(destination.place.shown_url(path), stored.sha256.hex(), etag)


async def _note(gateway: Gateway, destination: Destination, failure: str | None) -> None:
    """Note on the destination how a copy ended. That is not worth to wait for."""
    try:
        await gateway.destinations.note_result(destination, failure)
    except StorageUnavailable:
        log.warning("result of a destination not stored", destination=destination.id)


def _with_copy(output: Output, copy: Delivered | None, failure: str) -> Output:
    if copy is not None:
        return msgspec.structs.replace(output, delivered=copy)
    return msgspec.structs.replace(output, delivery_error=failure)
