"""Accept a planned call: record, hold, idempotency key, generation and inputs in one transaction.

Calls of one moment share a transaction, unless they must be counted or compared with others one by one.
"""

from collections.abc import Sequence
from functools import partial
from itertools import compress

import msgspec

from penstock.accounts.acceptances import Acceptance
from penstock.accounts.labels import label_rows
from penstock.accounts.limits import check_budgets, check_limits
from penstock.accounts.requests import new_request_row
from penstock.accounts.transfers import NewHold
from penstock.errors import InsufficientBalance, RateLimited, nothing_sent
from penstock.event_loop import run_aside
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generation_jobs.job import NewGeneration
from penstock.generation_jobs.rows import (
    NEW_GENERATION,
    Follow,
    GenerationRow,
    Live,
    Plan,
    Recording,
    Replay,
    get_generation_by_key,
)
from penstock.generations.plan import PlannedCall
from penstock.generations.reused_outputs import reused_output_rows
from penstock.generations.validate import canonical_digest
from penstock.guards.configured import guarded_kind
from penstock.guards.texts import joined
from penstock.guards.verdicts import Asked
from penstock.jobs.running import Lease
from penstock.recordings.rows import find_recording
from penstock.schema import JOB_TASKS, Call, Input, PlannedCandidate, Request
from penstock.store.base import Change, ConstraintViolated, Row, Transaction
from penstock.telemetry.tracing import span, stored_context
from penstock.upstream.failures import limit_of_operator
from penstock.values import Nanos, OrgId, new_id

_FIRST_TOKEN = 1
_TEXTS = ("prompt", "negative_prompt", "input", "instructions", "lyrics", "keywords")  # that guards read
_INPUTS_OUTLIVE_MS = 3_600_000


class Accepted(msgspec.Struct, frozen=True):
    """A call that was accepted, now or before."""

    row: GenerationRow
    lease: Lease | None = None  # set when this process is to run the generation
    new: NewGeneration | None = None  # None if only its row is known: the store did not confirm at once
    is_repeated: bool = False  # its idempotency key was used before: `row` is the generation of the earlier call


async def accept(gateway: Gateway, call: Call, planned: PlannedCall, *, is_awaited: bool = False) -> Accepted:
    """Accept a call. After this it is charged once or not at all, and its generation ends, also after a crash.

    If the caller waits (`is_awaited`) and nothing has to be prepared, the first attempt is stored in the same
    transaction and sent right after it. After a crash in between, its outcome is unknown and it is not sent again: the
    caller is gone, and would pay for an image that it does not get.

    Raises InsufficientBalance, RateLimited when a limit of the key is reached, or StorageQuotaExceeded; of a call that
    is refused no input files are kept. Where the balance does not cover the dearest candidates, the call is accepted
    without them.
    """
    await _ask_guards(gateway, call, planned)
    if planned.request.task not in JOB_TASKS:  # those wait at their provider until they can be stored
        await gateway.storage_writes.check()
    await gateway.quota.check(call.caller.org_id, _size_bytes(planned))
    failpoint("accept.before_tx")
    stored_inputs = await gateway.media_transfer.store_inputs(planned.inputs, call.at_ms)
    new_call = await _new_call(gateway, call, planned, stored_inputs, is_awaited)
    store = partial(_store_affordable, gateway, new_call, planned)
    try:
        accepted = await gateway.unsettled_money.accept(call.caller.org_id, store)
    except (InsufficientBalance, RateLimited):
        await _delete_inputs(gateway, call.caller.org_id, planned, stored_inputs)
        raise
    failpoint("accept.after_commit")
    if accepted.is_repeated:
        await _delete_inputs(gateway, call.caller.org_id, planned, stored_inputs)
    call.release_body()
    return accepted


async def _ask_guards(gateway: Gateway, call: Call, planned: PlannedCall) -> None:
    request = planned.request
    texts = (request.values.get(name) for name in _TEXTS)
    await gateway.guards.check(
        Asked(call.id, call.caller.org_id, call.caller.key_id),
        guarded_kind(request.task),
        request.model,
        joined(*texts, request.extras),
        inputs=[file for file in planned.inputs if file.role != "sound"],
        labels=request.labels,
        user=request.values.get("user"),
    )


def _size_bytes(planned: PlannedCall) -> int:
    """The bytes of all input files."""
    return sum(len(file.data) for file in planned.inputs)


async def _delete_inputs(
    gateway: Gateway, org_id: OrgId, planned: PlannedCall, stored_inputs: Sequence[tuple[Input, bytes]]
) -> None:
    """Delete the input files of a call for which nothing was stored."""
    await gateway.media_transfer.delete_inputs([stored for stored, _ in stored_inputs])
    gateway.quota.count(org_id, -_size_bytes(planned))


# -------------------------------------------------------------------------------------------------------------- storing


async def _store_affordable(gateway: Gateway, new_call: "_NewCall", planned: PlannedCall) -> Accepted:
    """Store the generation with those candidates that the balance covers; raise InsufficientBalance if it is none."""
    while True:
        try:
            return await _store(gateway, new_call, planned)
        except InsufficientBalance:
            cheaper = _without_dearest(planned)
            if cheaper is None:
                raise
            planned = cheaper


def _without_dearest(planned: PlannedCall) -> PlannedCall | None:
    """The call without its dearest candidates; None if all cost the same."""
    holds = [candidate.hold for candidate in planned.plan.candidates]
    is_cheaper = [hold < max(holds) for hold in holds]
    if not any(is_cheaper):
        return None
    plan = msgspec.structs.replace(planned.plan, candidates=tuple(compress(planned.plan.candidates, is_cheaper)))
    return msgspec.structs.replace(planned, plan=plan, candidates=tuple(compress(planned.candidates, is_cheaper)))


async def _store(gateway: Gateway, new_call: "_NewCall", planned: PlannedCall) -> Accepted:
    """Store a generation together with others of the moment, or alone if it must be counted or compared with them.

    Returns the generation that used the same idempotency key before, if there is one.
    """
    caller = new_call.call.caller
    key = planned.validated.idempotency_key
    with gateway.chat_reservations.holding(caller.org_id, planned.plan.hold), nothing_sent(), span("accept"):
        if not (key or caller.is_counted(new_call.request.labels) or planned.claims_recording):
            accepted, acceptance = _rows(gateway, new_call, planned)
            await gateway.acceptances.add(acceptance)
            return accepted
        store_alone = partial(_store_alone, gateway, new_call, planned)
        try:
            return await gateway.store.write(store_alone, org_id=caller.org_id)
        except ConstraintViolated:  # another process has just used the same idempotency key
            if not key:
                raise
            return await gateway.store.write(store_alone, org_id=caller.org_id)


async def _store_alone(gateway: Gateway, new_call: "_NewCall", planned: PlannedCall, tx: Transaction) -> Accepted:
    """As `_store`, in a transaction of its own."""
    call = new_call.call
    caller = call.caller
    key = planned.validated.idempotency_key
    if key and (earlier := await get_generation_by_key(tx, caller.org_id, key)):
        if earlier.id == call.id:  # the commit of this call was not confirmed
            return Accepted(earlier, lease=new_call.lease)
        if not await _may_run_again(tx, earlier, new_call.body_digest):
            return Accepted(earlier, is_repeated=True)
    if caller.is_limited:
        await check_limits(tx, caller, planned.plan.hold, new_call.at_ms)
    plan = await _claim_recording(tx, caller.org_id, call.id, planned)
    accepted, acceptance = _rows(gateway, new_call, msgspec.structs.replace(planned, plan=plan))
    await gateway.acceptances.write(tx, [acceptance])
    await check_budgets(tx, caller, new_call.request.labels, new_call.at_ms)
    return accepted


async def _may_run_again(tx: Transaction, earlier: GenerationRow, digest: bytes | None) -> bool:
    """Whether a call takes over the key of an equal one for images, which failed: nothing was made or charged, and
    nothing may still come.
    """
    if earlier.task in JOB_TASKS or earlier.status != "failed" or earlier.body_digest != digest:
        return False
    return bool(await tx.run("release_idempotency_key", id=earlier.id, org_id=earlier.org_id))


async def _claim_recording(tx: Transaction, org_id: OrgId, request_id: str, planned: PlannedCall) -> Plan:
    """The plan with its final source: of several alike calls that would record, the first records, others follow it."""
    plan = planned.plan
    source = plan.source
    if not planned.claims_recording or not isinstance(source, Recording):
        return plan
    fingerprint = source.fingerprint
    claim = {"org_id": org_id, "kind": fingerprint.kind, "digest": fingerprint.digest}
    if not await tx.run("claim_recording", **claim, request_id=request_id):
        leader = await tx.one("get_recording_claim", **claim)
        return msgspec.structs.replace(plan, source=Follow(leader["request_id"], source)) if leader else plan
    # The previous holder of the claim may have stored its recording after `make_plan` looked for one.
    found = await find_recording(tx, org_id, fingerprint)
    if found is None:
        return plan
    await tx.run("release_recording_claim", request_id=request_id)
    return msgspec.structs.replace(plan, source=Replay(found.id))


# ------------------------------------------------------------------------------------------------------ what is stored


class _NewCall(msgspec.Struct, frozen=True):
    """What is stored of a call besides its plan, which may change until it is stored."""

    call: Call
    request: Request  # with its stored inputs
    stored_inputs: Sequence[tuple[Input, bytes]]
    reused_outputs: Sequence[Row]
    body_digest: bytes | None  # with an idempotency key
    at_ms: int
    lease: Lease | None  # if this process is to run the generation
    attempt_id: str | None  # for the first attempt, if it can be stored with the generation and sent at once
    trace_context: str | None  # of the call itself: spans of its job belong directly under it


async def _new_call(
    gateway: Gateway,
    call: Call,
    planned: PlannedCall,
    stored_inputs: Sequence[tuple[Input, bytes]],
    is_awaited: bool,
) -> _NewCall:
    request = planned.request
    if request.labels:
        labels = await gateway.label_values.limited(call.caller.org_id, request.labels)
        request = msgspec.structs.replace(request, labels=labels)
    if stored_inputs:
        request = msgspec.structs.replace(request, inputs=tuple(item for item, _ in stored_inputs))
    body_digest = None
    if planned.validated.idempotency_key:
        body_digest = await run_aside(call.size_bytes, canonical_digest, planned.validated)
    now = gateway.clock.now_ms()
    return _NewCall(
        call=call,
        request=request,
        stored_inputs=stored_inputs,
        reused_outputs=await reused_output_rows(gateway.store, call.caller.org_id, call.id, planned.inputs),
        body_digest=body_digest,
        at_ms=now,
        lease=Lease(call.id, _FIRST_TOKEN) if gateway.jobs.runs_here(request.task) else None,
        attempt_id=new_id("att", now) if is_awaited else None,
        trace_context=stored_context(),
    )


def _rows(gateway: Gateway, new_call: _NewCall, planned: PlannedCall) -> tuple[Accepted, Acceptance]:
    """The accepted call, and what is to be written for it."""
    call = new_call.call
    request = new_call.request
    plan = planned.plan
    org_id = call.caller.org_id
    hold = plan.hold
    columns = _generation_columns(gateway, new_call, planned, hold)
    inputs_until_ms = new_call.at_ms + _job_ms(gateway) + _INPUTS_OUTLIVE_MS
    attempt_id = new_call.attempt_id if _is_sent_at_once(planned) else None
    first = plan.candidates[0] if attempt_id else None
    request_row = new_request_row(call, request, hold, sent_to=first)
    changes: list[Change] = [
        ("add_request", request_row),
        *(("add_request_label", row) for row in label_rows([request_row])),
        ("add_generation", columns),
        *(
            ("add_media", row)
            for row in gateway.media.input_rows(org_id, call.id, new_call.stored_inputs, inputs_until_ms)
        ),
        *(("add_reused_output", row) for row in new_call.reused_outputs),
        *gateway.jobs.queue_changes(call.id, org_id, request.task),
    ]
    if first:
        changes.append(("add_attempt", _first_attempt(new_call, first)))
    row = GenerationRow(**columns, **NEW_GENERATION)
    new = NewGeneration(row, call.caller.key_id, request, plan, planned.candidates, attempt_id, planned.inputs)
    acceptance = Acceptance(NewHold(org_id, call.id, hold, call.at_ms), changes)
    return Accepted(row, new_call.lease, new), acceptance


def _generation_columns(gateway: Gateway, new_call: _NewCall, planned: PlannedCall, hold: Nanos) -> Row:
    call = new_call.call
    validated = planned.validated
    lease = new_call.lease
    return {
        "id": call.id,
        "org_id": call.caller.org_id,
        "task": new_call.request.task,
        "model": new_call.request.model,
        "request": msgspec.json.encode(new_call.request),
        "plan": msgspec.json.encode(planned.plan),
        "hold": hold,
        "created_at_ms": call.at_ms,
        "deadline_ms": gateway.clock.steady_ms() + _job_ms(gateway),
        "retention_seconds": validated.retention_seconds,
        "webhook_url": validated.webhook_url,
        "idempotency_key": validated.idempotency_key,
        "body_digest": new_call.body_digest,
        "lease_token": lease.token if lease else 0,
        "lease_until_ms": gateway.jobs.lease_until_ms if lease else 0,
        "trace_context": new_call.trace_context,
    }


def _first_attempt(new_call: _NewCall, candidate: PlannedCandidate) -> Row:
    return {
        "id": new_call.attempt_id,
        "request_id": new_call.call.id,
        "org_id": new_call.call.caller.org_id,
        "round": 1,
        "part": 0,
        "candidate": 0,
        "count": new_call.request.n,
        "provider": candidate.provider,
        "upstream_model": candidate.upstream,
        "account_id": candidate.account or None,
        "created_at_ms": new_call.at_ms,
    }


def _job_ms(gateway: Gateway) -> int:
    """How long a job may take."""
    return int(gateway.settings.job_deadline_seconds * 1000)


def _is_sent_at_once(planned: PlannedCall) -> bool:
    """Whether the first candidate makes all outputs in one call, without inputs that must be read before, and the
    limits of its account allow it now.
    """
    if planned.inputs or not planned.candidates or not isinstance(planned.plan.source, Live | Recording):
        return False
    first = planned.candidates[0]
    return planned.request.n <= first.model.op.native_n and limit_of_operator(first) is None
