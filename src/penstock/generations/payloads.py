"""Remove the texts of ended generations when they expire, and show what is stored of a request."""

import codecs
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from penstock.accounts.idempotency import delete_expired_keys
from penstock.accounts.payloads import MESSAGE_NOT_STORED, get_payload
from penstock.accounts.response_items import delete_old_items
from penstock.audit_log import Act, note_act
from penstock.errors import NotFound
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.generation_jobs.finish import failure_event_body
from penstock.generation_jobs.rows import Follow, GenerationRow, Plan, Recording, get_generation
from penstock.long_bodies.json_outline import outline
from penstock.long_bodies.long_body import LongBody
from penstock.long_bodies.long_texts import STEP_BYTES, TooComplex
from penstock.schema import Call, GenerationResult, Request, Response
from penstock.store.base import Row, Transaction
from penstock.values import OrgId

_BATCH = 200
# Fields of a request that hold no text of the caller's; the object of an image or a video still needs them.
_KEPT_VALUES = frozenset(
    "n size aspect_ratio resolution seconds quality style response_format output_format output_compression "
    "scale_factor thinking prompt_enhancement".split()
)


async def delete_expired(gateway: Gateway) -> int:
    """Remove all payloads that have expired; return their number. Run again and again by the application."""
    now = gateway.clock.now_ms()
    deleted = await gateway.store.write(lambda tx: tx.run("delete_expired_payloads", now_ms=now))
    deleted += await delete_old_items(gateway.store, now)
    await delete_expired_keys(gateway.store, now)
    while True:
        rows = await gateway.store.all("list_expired_payloads", now_ms=now, limit=_BATCH)
        expired = sorted((GenerationRow(**row) for row in rows), key=lambda row: row.id)
        if expired:
            await gateway.store.write(partial(_strip, expired))
            deleted += len(expired)
        if len(expired) < _BATCH:
            break
    if deleted:
        await gateway.store.purge_traces()
    return deleted


async def _strip(rows: Sequence[GenerationRow], tx: Transaction) -> None:
    """Strip ended generations, one table after the other; see docs/decisions/lock-order.md."""
    for row in rows:
        await tx.run("strip_generation", **_stripped_columns(row))
    for row in rows:
        await tx.run("strip_attempts", request_id=row.id)
    for row in rows:
        await tx.run("strip_media", request_id=row.id)
    for row in rows:
        await tx.run("strip_request", id=row.id, org_id=row.org_id, error_message=MESSAGE_NOT_STORED)
    for row in rows:
        if row.status == "failed":
            body = failure_event_body(row, MESSAGE_NOT_STORED)
            await tx.run("purge_message", request_id=row.id, org_id=row.org_id, body=body)


def _stripped_columns(row: GenerationRow) -> Row:
    request = row.decode_request()
    result = row.decode_result()
    return {
        "id": row.id,
        "request": None if request is None else msgspec.json.encode(_without_texts(request)),
        "plan": msgspec.json.encode(plan_without_texts(row)),
        "result": None if result is None else msgspec.json.encode(_result_without_texts(result)),
        "error_message": MESSAGE_NOT_STORED if row.error_message else None,
    }


def _without_texts(request: Request) -> Request:
    values = {name: value for name, value in request.values.items() if name in _KEPT_VALUES}
    return msgspec.structs.replace(request, values=values, extras={}, inputs=())


def _result_without_texts(result: GenerationResult) -> GenerationResult:
    outputs = tuple(msgspec.structs.replace(output, revised_prompt=None) for output in result.outputs)
    attempts = tuple(msgspec.structs.replace(attempt, message=None) for attempt in result.attempts)
    return msgspec.structs.replace(result, outputs=outputs, attempts=attempts)


def plan_without_texts(row: GenerationRow) -> Plan:
    """The plan without the parameters that a recording is matched by."""
    plan = row.decode_plan()
    source = plan.source
    if isinstance(source, Recording):
        plan = _with_source(plan, _without_values(source))
    elif isinstance(source, Follow):
        plan = _with_source(plan, msgspec.structs.replace(source, otherwise=_without_values(source.otherwise)))
    return plan


def _with_source(plan: Plan, source: Recording | Follow) -> Plan:
    return msgspec.structs.replace(plan, source=source)


def _without_values(source: Recording) -> Recording:
    return msgspec.structs.replace(source, fingerprint=msgspec.structs.replace(source.fingerprint, values={}))


# ------------------------------------------------------------------------------------------------------------- reading


async def retrieve_payloads(gateway: Gateway, call: Call) -> Response:
    """What is stored of a request and its response; both are null when nothing is."""
    request_id = call.path["request_id"]
    org_id = call.caller.org_id
    record = await gateway.requests.get(org_id, request_id)
    if record is None:
        raise NotFound(f"No such request: {request_id}.")
    if record.key_id != call.caller.key_id:
        await note_act(gateway.store, call.at_ms, Act("payloads.read", request_id, org_id))
    if payload := await get_payload(gateway.store, org_id, request_id):
        request = await run_aside(len(payload.request), _json_parts, payload.request)
        response = await run_aside(len(payload.response), _json_parts, payload.response)
        head = f'{{"id":"{request_id}","object":"request.payloads","request":'.encode()
        return Response(body=LongBody([head, *request, b',"response":', *response, b"}"]))
    shown = {"id": request_id, "object": "request.payloads"}
    stored_request, stored_response = await _read_stored(gateway, org_id, request_id)
    return Response(json={**shown, "request": stored_request, "response": stored_response})


async def _read_stored(gateway: Gateway, org_id: OrgId, request_id: str) -> tuple[Any, Any]:
    row = await get_generation(gateway.store, request_id, org_id)
    request = row.decode_request() if row else None
    result = row.decode_result() if row else None
    return (
        request and _shown_request(request),
        result and {"outputs": result.outputs, "attempts": result.attempts},
    )


def _shown_request(request: Request) -> dict[str, Any]:
    """What the caller sent; of input files only what they were, because they are not kept."""
    inputs = [{"role": file.role, "content_type": file.content_type} for file in request.inputs]
    shown = {"model": request.model, **request.values, **request.extras, "metadata": request.metadata}
    return {**shown, "inputs": inputs} if inputs else shown


def _json_parts(body: bytes | bytearray) -> list[bytes | bytearray]:
    """A JSON body as it is; the bytes of a stream as one string in JSON. Both may have many megabytes."""
    try:
        msgspec.json.decode(outline(body).json, type=msgspec.Raw)
        return [body]
    except (msgspec.DecodeError, UnicodeDecodeError, TooComplex):
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        pieces = [decoder.decode(body[at : at + STEP_BYTES]) for at in range(0, len(body), STEP_BYTES)]
        return [b'"', *[msgspec.json.encode(piece)[1:-1] for piece in [*pieces, decoder.decode(b"", final=True)]], b'"']
