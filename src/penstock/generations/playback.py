"""Serve a generation from a recording or a mock instead of a provider."""

import hashlib

import msgspec

from penstock.errors import Cancelled, RecordingNotFound, UpstreamError
from penstock.gateway import Gateway
from penstock.generations.job import Job, check_lease
from penstock.media.storage import FileMissing
from penstock.media.transfer import UnusableFile
from penstock.recordings import recordings
from penstock.schema import GenerationResult, StoredOutput
from penstock.store.base import Row, Transaction
from penstock.upstream.client import AttemptFailed, OutcomeUnknown
from penstock.values import ZERO

_FOLLOW_SECONDS = 0.5


async def stand_in(gateway: Gateway, job: Job) -> tuple[GenerationResult, list[StoredOutput]]:
    """What a stand-in delivers, at its time and for nothing."""
    found = await _found(gateway, job) if job.plan.replays else None
    settled, files = await _replayed(gateway, job, found) if found else await _mocked(gateway, job)
    if job.row["task"] == "video" or job.row["webhook_url"]:
        await wait_until(gateway, job, job.plan.due_ms)
    return settled, files


async def wait_until(gateway: Gateway, job: Job, due_ms: int) -> None:
    """A cancel is heeded while waiting."""
    with job.lease.bell() as bell:
        while True:
            bell.clear()
            row = await gateway.store.one("is_cancel_requested", id=job.id)
            if row and row["cancel_requested"]:
                raise Cancelled("The generation was cancelled.")
            left = (due_ms - gateway.clock.now_ms()) / 1000
            if left <= 0:
                return
            await gateway.clock.wait(bell, left)


async def follow(gateway: Gateway, job: Job) -> bool:
    """Wait for whoever makes the recording. True when it is there to be served, False when it is ours to make."""
    like, leader = job.plan.likeness, job.plan.follows
    assert like is not None, "whoever follows knows what"
    while leader:
        row = await gateway.store.one("get_generation", id=leader, org_id=job.org_id)
        if row is None or row["status"] in ("completed", "failed"):
            found = await gateway.store.one(
                f"find_{like.by}_recording", org_id=job.org_id, kind=like.kind, digest=like.digest
            )
            if found:
                job.plan = msgspec.structs.replace(job.plan, replays=found["id"])
                return True
            leader = await _take_over(gateway, job)
            continue
        await gateway.clock.sleep(_FOLLOW_SECONDS)
    return False


async def _take_over(gateway: Gateway, job: Job) -> str | None:
    """Become the one who records, or learn who is."""
    like = job.plan.likeness
    assert like is not None, "whoever follows knows what"

    async def write(tx: Transaction) -> str | None:
        await check_lease(tx, job)
        claim = {"org_id": job.org_id, "kind": like.kind, "digest": like.digest}
        if await tx.run("claim_recording", **claim, request_id=job.id):
            return None
        row = await tx.one("get_recording_claim", **claim)
        return str(row["request_id"]) if row and row["request_id"] != job.id else None

    return await gateway.store.write(write)


async def _found(gateway: Gateway, job: Job) -> Row:
    row = await gateway.store.one("get_recording", id=job.plan.replays, org_id=job.org_id)
    if row is None:
        raise RecordingNotFound("The recording was deleted before it could be served.", should_retry=False)
    return row


async def _replayed(gateway: Gateway, job: Job, found: Row) -> tuple[GenerationResult, list[StoredOutput]]:
    """Copies under new names: this request's media has its own life."""
    known = msgspec.json.decode(found["result"], type=recordings.Recorded)
    files = []
    for position, row in enumerate(await gateway.recordings.files(found["id"])):
        try:
            data = await gateway.recordings.read(row)
        except FileMissing:
            raise RecordingNotFound("A file of the recording is gone.", should_retry=False) from None
        kept = msgspec.structs.replace(known.files[position], media_id=_media_id(job, position))
        await gateway.transfer.store_file(kept, data)
        files.append(StoredOutput(output=kept, sha256=row["sha256"], data=data))
    settled = GenerationResult(
        provider=known.provider,
        provider_name=known.provider_name,
        executed_model=known.executed_model,
        cost=ZERO,
        files=tuple(file.output for file in files),
        upstream_id=known.upstream_id,
        seconds=known.seconds,
        stand="replayed",
        recording=found["id"],
    )
    return settled, files


async def _mocked(gateway: Gateway, job: Job) -> tuple[GenerationResult, list[StoredOutput]]:
    """Real media of the asked kind, size and number from the built-in provider."""
    option = gateway.catalog.mock(job.request.task, has_images=bool(job.request.inputs))
    files: list[StoredOutput] = []
    inputs = await gateway.transfer.read_inputs(job.request)
    try:
        while len(files) < job.request.n:
            count = min(option.model.op.native_n, job.request.n - len(files))
            result = await gateway.upstream.submit(option, job.request, count, inputs)
            while not result.done:
                await gateway.clock.sleep(0.05)
                result = await gateway.upstream.poll(option, result.ref)
            for file in result.files:
                files.append(await gateway.transfer.store_output(_media_id(job, len(files)), file, None, job.request))
    except (AttemptFailed, OutcomeUnknown, UnusableFile) as problem:
        raise UpstreamError(f"The mock failed: {problem}", should_retry=False) from problem
    settled = GenerationResult(
        provider=option.provider.slug,
        provider_name=option.provider.name,
        executed_model=f"{option.provider.slug}/{option.model.upstream}",
        cost=ZERO,
        files=tuple(file.output for file in files),
        upstream_id=f"mock_{hashlib.sha256(job.id.encode()).hexdigest()[:24]}",
        stand="mocked",
    )
    return settled, files


def _media_id(job: Job, position: int) -> str:
    return f"med_{job.id.removeprefix('req_')}{position:02}"
