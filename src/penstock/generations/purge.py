"""Purge a request: delete its files, its fields and the provider's messages; keep its times and its cost."""

from contextlib import suppress

import msgspec

from penstock.accounts.key_records import ADMIN
from penstock.accounts.request_records import attempts_without_messages
from penstock.audit_log import Act, Note, write_audited
from penstock.errors import Conflict, NotFound, PermissionDenied
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generation_jobs.finish import failure_event_body
from penstock.generation_jobs.rows import GenerationRow, get_generation, purged_key
from penstock.generations import respond
from penstock.generations.payloads import plan_without_texts
from penstock.media.rows import list_media
from penstock.schema import Call, Measures, Response
from penstock.store.base import Transaction
from penstock.values import OrgId


async def purge(gateway: Gateway, call: Call) -> Response:
    """Purge an ended request. Raises NotFound for an unknown request, Conflict for one that has not ended, and
    PermissionDenied for one of another key, unless the caller has the scope `admin`.
    """
    request_id = call.path["request_id"]
    org_id = call.caller.org_id
    record = await gateway.requests.get(org_id, request_id)
    if record is None:
        raise NotFound(f"No such request: {request_id}.")
    if record.key_id != call.caller.key_id and ADMIN not in call.caller.scopes:
        raise PermissionDenied("Only a key with the `admin` scope may purge requests of other keys.")
    if record.is_open:
        raise Conflict("This request is still under way; purge it when it has ended.", should_retry=False)
    if record.purged_at_ms is not None:
        return _response(request_id, already_purged=True, media_deleted=0)
    deleted = await _delete_files(gateway, org_id, request_id)
    failpoint("purge.files_gone")
    row = await get_generation(gateway.store, request_id, org_id)

    at_ms = gateway.clock.now_ms()

    async def write(tx: Transaction, note: Note) -> None:
        note(Act("request.purged", request_id, org_id, after={"files": deleted}))
        if row:
            measures = respond.measures(row) if row.task == "video" else Measures()
            plan = msgspec.structs.replace(plan_without_texts(row), measures=measures)
            result = _result_without_files(row, measures)
            await tx.run(
                "purge_generation",
                id=request_id,
                org_id=org_id,
                plan=msgspec.json.encode(plan),
                result=result,
                purged_key=purged_key(org_id, row.idempotency_key) if row.idempotency_key else None,
            )
        await tx.run("purge_attempts", request_id=request_id, org_id=org_id)
        await tx.run("delete_seals", request_id=request_id, org_id=org_id)
        attempts = attempts_without_messages(record)
        await tx.run("mark_purged", id=request_id, org_id=org_id, at_ms=at_ms, attempts=attempts)
        await tx.run("delete_reused_outputs", request_id=request_id, org_id=org_id)
        await tx.run("delete_uses_of_outputs", request_id=request_id, org_id=org_id)
        await tx.run("delete_payload", request_id=request_id, org_id=org_id)
        await tx.run("delete_response_items", request_id=request_id, org_id=org_id)
        await tx.run("purge_message_url", request_id=request_id, org_id=org_id)
        if row and row.status == "failed":
            await tx.run("purge_message", request_id=request_id, org_id=org_id, body=failure_event_body(row, "Purged."))

    await write_audited(gateway.store, at_ms, write)
    await gateway.store.purge_traces()
    return _response(request_id, already_purged=False, media_deleted=deleted)


def _response(request_id: str, *, already_purged: bool, media_deleted: int) -> Response:
    return Response(
        json={
            "id": request_id,
            "purged": True,
            "already_purged": already_purged,
            "media_deleted": media_deleted,
        }
    )


async def _delete_files(gateway: Gateway, org_id: OrgId, request_id: str) -> int:
    """Delete the request's media and recordings; return the number of files."""
    files = await list_media(gateway.store, request_id, org_id)
    deleted = await gateway.media.delete([file.id for file in files])
    for recording in await gateway.store.all("list_recordings_of_request", request_id=request_id, org_id=org_id):
        with suppress(NotFound):  # another call has just deleted it
            deleted += await gateway.recordings.delete(org_id, recording["id"])
    return deleted


def _result_without_files(row: GenerationRow, measures: Measures) -> bytes | None:
    """Provider, cost and measures only, as JSON."""
    result = row.decode_result()
    if result is None:
        return None
    return msgspec.json.encode(msgspec.structs.replace(result, outputs=(), attempts=(), measures=measures))
