"""Answer a call once: one that is sent again with its idempotency key is not made, and not charged, again."""

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from penstock.accounts.idempotency import Claim, claim_key, key_digest, other_call, release_key, take_over_key
from penstock.accounts.payloads import get_payload
from penstock.accounts.request_records import RequestRow
from penstock.chat import endpoint, responses
from penstock.errors import (
    IdempotencyCompleted,
    IdempotencyInProgress,
    Problem,
    StorageUnavailable,
    UpstreamOutcomeUnknown,
)
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.generations.idempotency_keys import read_key
from penstock.interrupts import CallerGone
from penstock.recordings.replay_headers import has_replay_header, replay_options
from penstock.schema import Call, Response
from penstock.values import Nanos, Retention, dollars

_FIELD = "idempotency_key"
_FREE_MODES = ("mock", "replay-or-mock", "replay-or-error")
_EVENTS = (b"data:", b"event:")
_GRACE_MS = 60_000  # for a call to be recorded after its longest time

Handler = Callable[[Gateway, Call], Awaitable[Response]]


async def complete_chat(gateway: Gateway, call: Call) -> Response:
    return await answer_once(gateway, call, endpoint.complete_chat, "chat")


async def create_response(gateway: Gateway, call: Call) -> Response:
    return await answer_once(gateway, call, responses.create_response, "response")


async def answer_once(
    gateway: Gateway,
    call: Call,
    make: Handler,
    operation: str,
    *,
    fields: Any = None,
    media_type: str = "application/json",
) -> Response:
    """Make the call, unless an equal one has the same idempotency key. `fields` are those of a form.

    Then its stored response is returned. Raises IdempotencyInProgress while the first call runs, IdempotencyCompleted
    if its response is not stored, UnprocessableRequest if it asked for something else, and UpstreamOutcomeUnknown if it
    never ended.
    """
    body = call.json if fields is None else fields
    if "idempotency-key" not in call.headers and not (isinstance(body, dict) and _FIELD in body):
        return await make(gateway, call)
    key = read_key(call, body.get(_FIELD) if isinstance(body, dict) else None)
    if isinstance(body, dict) and _FIELD in body:
        body = {name: value for name, value in body.items() if name != _FIELD}
        if fields is None:
            call = msgspec.structs.replace(call, json=body)
    if key is None or call.dry_run or _costs_nothing(call):
        return await make(gateway, call)
    digest = await run_aside(call.size_bytes, _digest, body)
    claim = Claim(call.caller.org_id, key_digest(operation, key), call.id, digest, gateway.clock.now_ms())
    retention = Retention.parse(gateway.settings.idempotency_retention)
    earlier = await claim_key(gateway.store, claim, retention)
    while earlier is not None:
        if (response := await _repeated(gateway, call, claim, earlier, media_type)) is not None:
            return response
        if await take_over_key(gateway.store, claim, earlier, retention):
            break
        earlier = await claim_key(gateway.store, claim, retention)
    return await _make(gateway, call, make, claim)


def _costs_nothing(call: Call) -> bool:
    """Whether no provider is called: then the key is ignored."""
    if call.caller.replay_mode is None and not has_replay_header(call.headers):
        return False
    options = replay_options(call.headers, call.caller.replay_mode)
    return options is not None and options.mode in _FREE_MODES


def _digest(body: object) -> bytes:
    return hashlib.sha256(msgspec.json.encode(body, order="deterministic", enc_hook=str)).digest()


async def _make(gateway: Gateway, call: Call, make: Handler, claim: Claim) -> Response:
    """Make the first call. If it is refused, or fails before its response begins, it does not use up its key, unless
    it is charged: a guard has refused its answer.
    """
    try:
        return await make(gateway, call)
    except CallerGone:  # it is charged for what it asked
        raise
    except Problem as problem:
        if problem.charges_outputs:
            raise
        with suppress(StorageUnavailable):  # the record of the call says that it may be made again
            await release_key(gateway.store, claim)
        raise


async def _repeated(gateway: Gateway, call: Call, claim: Claim, earlier: Claim, media_type: str) -> Response | None:
    """The response to a repeated call; None if the first one failed and cost nothing, so that this one is made."""
    if earlier.body_digest != claim.body_digest:
        raise other_call(earlier.request_id)
    record = await gateway.requests.get(earlier.org_id, earlier.request_id)
    if record is None or record.is_open:
        if call.is_batch_row and _died_with_its_process(gateway, earlier):
            return None
        raise _unended(gateway, claim, earlier)
    if record.error_code == UpstreamOutcomeUnknown.code:
        raise _outcome_unknown(earlier)
    if record.status != "completed" and not record.cost:
        return None
    payload = await get_payload(gateway.store, earlier.org_id, earlier.request_id)
    stored = bytes(payload.response) if payload and record.status == "completed" else b""
    if not stored or (record.endpoint.endswith("/responses") and not _is_response(stored)):
        raise _completed(record)
    headers = {"idempotent-replayed": "true", "x-request-id": record.id, "x-service-request-id": record.id}
    is_stream = stored.startswith(_EVENTS)
    return Response(body=stored, headers=headers, media_type="text/event-stream" if is_stream else media_type)


def _died_with_its_process(gateway: Gateway, earlier: Claim) -> bool:
    """Whether a call that has not ended never will, and is not charged: on SQLite its process was the only one."""
    return gateway.store.dialect == "sqlite" and earlier.created_at_ms < gateway.started_ms


def _unended(gateway: Gateway, claim: Claim, earlier: Claim) -> Problem:
    settings = gateway.settings
    longest_ms = int(max(settings.upstream_seconds, settings.stream_seconds) * 1000) + _GRACE_MS
    if claim.created_at_ms - earlier.created_at_ms > longest_ms:
        return _outcome_unknown(earlier)
    message = f"The first call with this idempotency key, {earlier.request_id}, is still running."
    return IdempotencyInProgress(message, param=_FIELD, headers={"retry-after": "2"}, should_retry=True)


def _outcome_unknown(earlier: Claim) -> Problem:
    message = (
        f"What became of the first call with this idempotency key, {earlier.request_id}, is unknown: the gateway "
        "stopped meanwhile. It is not made again."
    )
    return UpstreamOutcomeUnknown(message, param=_FIELD, should_retry=False)


def _completed(record: RequestRow) -> Problem:
    """What a caller is told of a call that was charged, and whose response is not stored."""
    message = (
        f"The first call with this idempotency key, {record.id}, has ended and cost {dollars(Nanos(record.cost))} USD. "
        'Its response is not stored; with `payloads = "all"` the responses of completed chats are.'
    )
    return IdempotencyCompleted(message, param=_FIELD, should_retry=False)


class _Stored(msgspec.Struct):
    object: str = ""


def _is_response(stored: bytes) -> bool:
    """Whether this is what the caller was sent, and not one of the chats that it took."""
    if stored.startswith(_EVENTS):
        return True
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(stored, type=_Stored).object == "response"
    return False
