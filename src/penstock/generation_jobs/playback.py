"""Serve a generation from a recording or a mock instead of a provider."""

import hashlib

import msgspec

from penstock.errors import Cancelled, NotFound, RecordingNotFound, UpstreamError
from penstock.gateway import Gateway
from penstock.generation_jobs.finish import NewResult
from penstock.generation_jobs.job import Job, check_lease, is_cancel_requested
from penstock.generation_jobs.rows import Follow, Mock, Recording, Replay
from penstock.media.provider_files import UnusableFile
from penstock.media.storage import FileMissing, storage_key
from penstock.recordings.rows import RecordingRow, find_recording, get_recording
from penstock.schema import JOB_TASKS, Fingerprint, GenerationResult, StoredOutput
from penstock.store.base import Transaction
from penstock.upstream.failures import AttemptFailed
from penstock.values import ZERO

_MOCK_POLL_SECONDS = 0.05


async def replay(gateway: Gateway, job: Job, source: Replay) -> NewResult:
    """Copy a recording's outputs under new media ids, so that they expire with this request; costs nothing."""
    found = await get_recording(gateway.store, source.recording_id, job.org_id)
    if found is None:
        raise _deleted()
    await _wait_until_due(gateway, job, source.due_ms)  # before images are read into memory
    recorded = found.decode_result()
    try:
        outputs = await _copy_outputs(gateway, job, found)
    except (NotFound, FileMissing):
        raise _deleted() from None
    result = GenerationResult(
        provider=recorded.provider,
        provider_name=recorded.provider_name,
        executed_model=recorded.executed_model,
        cost=ZERO,
        outputs=tuple(stored.output for stored in outputs),
        upstream_id=recorded.upstream_id,
        seconds=recorded.seconds,
        origin="replayed",
        recording_id=found.id,
    )
    return NewResult(result, outputs)


async def _copy_outputs(gateway: Gateway, job: Job, recording: RecordingRow) -> list[StoredOutput]:
    """Copy the files of a recording to the job's outputs. Raises NotFound or FileMissing if it is deleted meanwhile."""
    outputs = []
    for position, (recorded, file) in enumerate(await gateway.recordings.list_files(recording)):
        output = msgspec.structs.replace(recorded, media_id=_media_id(job, position))
        data: bytes | None = None
        if job.row.task in JOB_TASKS:
            await gateway.media_transfer.copy_file(storage_key(file.media_id), output)
        else:
            data = await gateway.recordings.read_file(file)
            await gateway.media_transfer.store_file(output, data)
        outputs.append(StoredOutput(output=output, sha256=file.sha256, data=data))
    return outputs


def _deleted() -> RecordingNotFound:
    return RecordingNotFound("The recording or a file of it was deleted before it could be served.", should_retry=False)


async def mock(gateway: Gateway, job: Job, source: Mock) -> NewResult:
    """Have the built-in provider make outputs of the requested kind, size and number; costs nothing."""
    candidate = gateway.catalog.mock(job.request.task, has_images=bool(job.request.inputs))
    outputs: list[StoredOutput] = []
    await _wait_until_due(gateway, job, source.due_ms)  # before images are read into memory
    inputs = await gateway.media_transfer.read_inputs(job.request, for_org=job.org_id)
    origin = job.origin(candidate, is_mock=True)
    try:
        while len(outputs) < job.request.n:
            count = min(candidate.model.op.native_n, job.request.n - len(outputs))
            made = await gateway.upstream.submit(candidate, job.request, count, inputs, for_org=job.org_id)
            while not made.done:
                await gateway.clock.sleep(_MOCK_POLL_SECONDS)
                made = await gateway.upstream.poll(candidate, made.ref)
            for file in made.files:
                media_id = _media_id(job, len(outputs))
                stored = await gateway.media_transfer.store_output(
                    media_id, file, None, job.request, origin, for_org=job.org_id
                )
                outputs.append(stored)
    except (AttemptFailed, UnusableFile) as problem:
        raise UpstreamError(f"The mock failed: {problem}", should_retry=False) from problem
    result = GenerationResult(
        provider=candidate.provider.slug,
        provider_name=candidate.provider.name,
        executed_model=candidate.executed_model,
        cost=ZERO,
        outputs=tuple(stored.output for stored in outputs),
        upstream_id=f"mock_{hashlib.sha256(job.id.encode()).hexdigest()[:24]}",
        origin="mocked",
    )
    return NewResult(result, outputs)


def _media_id(job: Job, position: int) -> str:
    return f"med_{job.id.removeprefix('req_')}{position:02}"


async def _wait_until_due(gateway: Gateway, job: Job, due_ms: int) -> None:
    """Wait until a video, a sound, or an image with a webhook, is to be finished. Raises Cancelled when a cancel is
    requested. The response to a waiting caller is delayed when it is sent.
    """
    if job.row.task not in JOB_TASKS and not job.row.webhook_url:
        return
    with job.running.wakeups.waiting() as wakeup:
        while True:
            wakeup.clear()
            if await is_cancel_requested(gateway, job):
                raise Cancelled()
            seconds = (due_ms - gateway.clock.steady_ms()) / 1000
            if seconds <= 0:
                return
            await gateway.clock.wait(wakeup, seconds)


# ------------------------------------------------------------------------------------------------------------ following


async def follow(gateway: Gateway, job: Job, source: Follow) -> Replay | Recording:
    """Wait for the request that makes the recording. Returns a Replay of it, or the Recording that this job is to make
    because the other request failed.
    """
    leader: str | None = source.request_id
    fingerprint = source.otherwise.fingerprint
    while leader:
        await gateway.endings.wait(leader)
        if found := await find_recording(gateway.store, job.org_id, fingerprint):
            return Replay(found.id)
        leader = await _take_over(gateway, job, fingerprint)
    return source.otherwise


async def _take_over(gateway: Gateway, job: Job, fingerprint: Fingerprint) -> str | None:
    """Claim the recording for this request; return the id of the request that has claimed it, if that is another."""
    claim = {"org_id": job.org_id, "kind": fingerprint.kind, "digest": fingerprint.digest}

    async def write(tx: Transaction) -> str | None:
        await check_lease(tx, job)
        if await tx.run("claim_recording", **claim, request_id=job.id):
            return None
        row = await tx.one("get_recording_claim", **claim)
        return str(row["request_id"]) if row and row["request_id"] != job.id else None

    return await gateway.store.write(write)
