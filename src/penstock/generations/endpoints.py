"""The story of a request, in the order it happens; start reading here."""

import msgspec

from penstock.errors import Cancelled, Conflict, NotFound
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generations import respond, validate
from penstock.generations.accept import accept
from penstock.generations.plan import PlannedCall, digest, estimate, make_plan
from penstock.generations.retrieve import created, image_result, paced, recorded, unfinished, video_row
from penstock.generations.run import settle_failure
from penstock.metrics import NO_PROVIDER
from penstock.schema import Call, GenerationResult, Response
from penstock.store.base import Row, Transaction
from penstock.webhooks import events

# -------------------------------------------------------------------------------------------------------------- images


async def make_images(gateway: Gateway, call: Call) -> Response:
    """Images are made while the caller waits."""
    wish = validate.image(call, gateway.settings)
    return await _images(gateway, call, await make_plan(gateway, call, wish, "image", ("image",)))


async def edit_images(gateway: Gateway, call: Call) -> Response:
    """The model decides whether this is an edit, which needs a prompt, or an upscale, which does not."""
    wish = validate.edit(call, gateway.settings)
    return await _images(gateway, call, await make_plan(gateway, call, wish, "edit", ("edit", "upscale")))


async def _images(gateway: Gateway, call: Call, intent: PlannedCall) -> Response:
    if call.dry_run:
        return estimate(gateway, intent)
    row, lease = await accept(gateway, call, intent)
    assert lease is not None, "images carry no idempotency key"
    gateway.jobs.start(lease)
    if "respond-async" in call.headers.get("prefer", ""):
        return Response(status=202, json=respond.image_status(row), headers=respond.poll_headers(row))
    if not await gateway.jobs.wait(call.id, gateway.settings.image_wait_seconds):
        raise unfinished(call.id)
    if lease.problem:
        raise recorded(lease.problem)
    answer = await image_result(gateway, call, lease.files)
    return paced(gateway.clock, answer, intent.due_ms)


# -------------------------------------------------------------------------------------------------------------- videos


async def start_video(gateway: Gateway, call: Call) -> Response:
    """Videos are promised now and made later; see `drive`."""
    wish = validate.video(call, gateway.settings)
    if wish.idempotency_key and not call.dry_run:
        names = {"org_id": call.caller.org_id, "idempotency_key": wish.idempotency_key}
        if earlier := await gateway.store.one("get_generation_by_key", **names):
            return _promised_before(gateway, call, earlier)
    intent = await make_plan(gateway, call, wish, "video", ("video",))
    if call.dry_run:
        return estimate(gateway, intent)
    row, lease = await accept(gateway, call, intent)
    if lease is None:
        return _promised_before(gateway, call, row)
    if gateway.jobs.begin_here("video"):
        gateway.jobs.start(lease)
    return created(gateway, row)


def _promised_before(gateway: Gateway, call: Call, row: Row) -> Response:
    headers = {"idempotent-replayed": "true"}
    if row["body_digest"] != digest(call):
        headers["idempotency-mismatch"] = "true"
    return created(gateway, row, headers)


async def cancel_video(gateway: Gateway, call: Call) -> Response:
    """Best effort: at once while nobody was asked to make it, by asking the provider afterwards."""
    row = await video_row(gateway, call)
    problem = Cancelled("The generation was cancelled.")
    now = gateway.clock.now_ms()

    async def write(tx: Transaction) -> bool:
        asked = await tx.one("request_cancel", id=row["id"], org_id=call.caller.org_id)
        sent = await tx.one("count_sent_attempts", request_id=row["id"])
        if asked is None or sent is None or sent["count"]:
            await gateway.jobs.tell(tx, row["id"])
            return False
        taken = await tx.one("take_for_cancel", id=row["id"])
        if taken is None:
            return False
        await tx.run(
            "fail_generation",
            id=row["id"],
            lease_token=taken["lease_token"],
            error_code=problem.code,
            error_message=problem.message,
        )
        await settle_failure(gateway, tx, asked, problem, "cancelled", now)
        return True

    if await gateway.store.write(write):
        gateway.metrics.count_generation(NO_PROVIDER, row["task"], "cancelled")
    gateway.jobs.nudge(row["id"])
    gateway.deliveries.wake()
    return Response(status=204)


# --------------------------------------------------------------------------------------------------------------- purge


async def purge(gateway: Gateway, call: Call) -> Response:
    """Forget what a request said and made; keep that it was made, when and for how much."""
    request_id, org_id = call.path["request_id"], call.caller.org_id
    record = await gateway.requests.get(org_id, request_id)
    if record is None:
        raise NotFound(f"No such request: {request_id}.")
    if record.is_open:
        raise Conflict("This request is still under way; purge it when it has ended.", should_retry=False)
    if record.purged_at_ms is not None:
        return Response(json={"id": request_id, "purged": True, "already_purged": True, "media_deleted": 0})
    files = await gateway.store.all("list_media", request_id=request_id, org_id=org_id)
    deleted = await gateway.media.delete(files)
    for one in await gateway.store.all("list_recordings_of_request", request_id=request_id, org_id=org_id):
        deleted += await gateway.recordings.delete(org_id, one["id"])
    failpoint("purge.files_gone")
    row = await gateway.store.one("get_generation", id=request_id, org_id=org_id)

    async def write(tx: Transaction) -> None:
        await tx.run("purge_attempts", request_id=request_id, org_id=org_id)
        if row:
            await tx.run("purge_generation", id=request_id, org_id=org_id, result=_bare(row["result"]))
        if row and row["status"] == "failed":
            await tx.run("purge_message", request_id=request_id, org_id=org_id, body=_wordless(row))
        await tx.run("mark_purged", id=request_id, org_id=org_id, at_ms=gateway.clock.now_ms())

    await gateway.store.write(write)
    await gateway.store.purge_traces()
    return Response(json={"id": request_id, "purged": True, "already_purged": False, "media_deleted": deleted})


def _wordless(row: Row) -> bytes:
    """The news of a failure without the provider's words."""
    subject = "video" if row["task"] == "video" else "image"
    kind = f"{subject}.{'cancelled' if row['error_code'] == Cancelled.code else 'failed'}"
    return events.event_body(kind, row["id"], row["model"], error={"code": row["error_code"], "message": "Purged."})


def _bare(settled: bytes | None) -> bytes | None:
    """Who made it and for how much, without files and words."""
    if settled is None:
        return None
    known = msgspec.json.decode(settled, type=GenerationResult)
    return msgspec.json.encode(msgspec.structs.replace(known, files=(), tried=()))
