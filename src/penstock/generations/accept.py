"""Accept a planned call: record, hold, idempotency key, generation and inputs in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from penstock.accounts import transfers
from penstock.accounts.limits import check_limits, check_org_budget
from penstock.accounts.requests import opened_request
from penstock.errors import InsufficientBalance, nothing_sent
from penstock.event_loop import run_aside
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generations.plan import PlannedCall
from penstock.generations.rows import (
    NEW_GENERATION,
    FirstRun,
    Follow,
    GenerationRow,
    Live,
    Plan,
    Recording,
    Replay,
    get_generation_by_key,
)
from penstock.generations.validate import canonical_digest
from penstock.jobs.running import Lease
from penstock.schema import Call, Input
from penstock.store.base import ConstraintViolated, Row, Transaction
from penstock.telemetry.tracing import span, stored_context
from penstock.values import Nanos, new_id

_FIRST_TOKEN = 1
_INPUTS_OUTLIVE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call that was accepted, now or before."""

    row: GenerationRow
    lease: Lease | None = None  # set when this process is to run the generation
    first_run: FirstRun | None = None  # then also set
    is_repeated: bool = False  # its idempotency key was used before: `row` is the generation of the earlier call


async def accept(gateway: Gateway, call: Call, planned: PlannedCall, *, is_awaited: bool = False) -> Accepted:
    """Accept a call. After this it is charged once or not at all, and its generation ends, also after a crash.

    If the caller waits (`is_awaited`) and nothing has to be prepared, the first attempt is stored in the same
    transaction and sent right after it. After a crash in between, its outcome is unknown and it is not sent again: the
    caller is gone, and would pay for an image that it does not get.

    Raises InsufficientBalance, RateLimited when a limit of the key is reached, or StorageQuotaExceeded. Where the
    balance does not cover the dearest candidates, the call is accepted without them.
    """
    await gateway.quota.check(call.caller.org_id, sum(len(image.data) for image in planned.inputs))
    failpoint("accept.before_tx")
    stored_inputs = await gateway.transfer.store_inputs(planned.inputs, call.at_ms)
    while True:
        try:
            return await _accept(gateway, call, planned, stored_inputs, is_awaited)
        except InsufficientBalance:
            dearest = max(candidate.hold for candidate in planned.plan.candidates)
            cheaper = tuple(candidate for candidate in planned.plan.candidates if candidate.hold < dearest)
            if not cheaper:
                raise
            planned = replace(planned, plan=msgspec.structs.replace(planned.plan, candidates=cheaper))


async def _accept(
    gateway: Gateway,
    call: Call,
    planned: PlannedCall,
    stored_inputs: Sequence[tuple[Input, bytes]],
    is_awaited: bool,
) -> Accepted:
    caller = call.caller
    validated = planned.validated
    request = msgspec.structs.replace(planned.request, inputs=tuple(item for item, _ in stored_inputs))
    hold = Nanos(max(candidate.hold for candidate in planned.plan.candidates))
    now = gateway.clock.now_ms()
    job_ms = int(gateway.settings.job_deadline_seconds * 1000)
    runs_here = gateway.jobs.runs_here(request.task)

    trace_context = stored_context()  # of the call itself: spans of its job belong directly under it
    digest = None
    if validated.idempotency_key:
        digest = await run_aside(call.size_bytes, canonical_digest, validated)

    attempt_id = new_id("att", now) if is_awaited and _is_sent_at_once(gateway, planned) else None

    async def write(tx: Transaction) -> FirstRun:
        key = validated.idempotency_key
        if key and (earlier := await get_generation_by_key(tx, caller.org_id, key)):
            return FirstRun(earlier)
        if caller.is_limited:
            await check_limits(tx, caller, hold, now)
        plan = await _claim_recording(tx, caller.org_id, call.id, planned)
        first = plan.candidates[0] if attempt_id and isinstance(plan.source, Live | Recording) else None
        await tx.put("add_request", **opened_request(call, request, hold, sent_to=first))
        columns: Row = {
            "id": call.id,
            "org_id": caller.org_id,
            "task": request.task,
            "model": request.model,
            "request": msgspec.json.encode(request),
            "plan": msgspec.json.encode(plan),
            "hold": hold,
            "created_at_ms": call.at_ms,
            "deadline_ms": gateway.clock.steady_ms() + job_ms,
            "retention_seconds": validated.retention_seconds,
            "webhook_url": validated.webhook_url,
            "idempotency_key": validated.idempotency_key,
            "body_digest": digest,
            "lease_token": _FIRST_TOKEN if runs_here else 0,
            "lease_until_ms": gateway.jobs.lease_until_ms if runs_here else 0,
            "trace_context": trace_context,
        }
        await tx.put("add_generation", **columns)
        if first:
            await tx.put(
                "add_attempt",
                id=attempt_id,
                request_id=call.id,
                org_id=caller.org_id,
                round=1,
                part=0,
                candidate=0,
                count=request.n,
                provider=first.provider,
                upstream_model=first.upstream,
                at_ms=now,
            )
        until_ms = now + job_ms + _INPUTS_OUTLIVE_MS
        await gateway.media.add_inputs(tx, caller.org_id, call.id, stored_inputs, until_ms)
        await gateway.jobs.queue(tx, call.id, request.task)
        reserved = await gateway.chat_reservations.reserved_amount(tx, caller.org_id)
        await transfers.hold(tx, caller.org_id, call.id, hold, call.at_ms, reserved=reserved)
        await check_org_budget(tx, caller, now)
        failpoint("accept.in_tx")
        return FirstRun(GenerationRow(**columns, **NEW_GENERATION), attempt_id if first else None)

    with gateway.chat_reservations.holding(caller.org_id, hold), nothing_sent(), span("accept"):
        try:
            first_run = await gateway.store.write(write, org_id=caller.org_id)
        except ConstraintViolated:  # another process has just used the same idempotency key
            if not validated.idempotency_key:
                raise
            first_run = await gateway.store.write(write, org_id=caller.org_id)
    failpoint("accept.after_commit")
    row = first_run.row
    if row.id != call.id:
        return Accepted(row, is_repeated=True)
    return Accepted(row, Lease(call.id, _FIRST_TOKEN), first_run) if runs_here else Accepted(row)


def _is_sent_at_once(gateway: Gateway, planned: PlannedCall) -> bool:
    """Whether the first candidate makes all outputs in one call, without inputs that must be read before."""
    candidate = gateway.catalog.find_candidate(planned.plan.candidates[0], planned.request.task)
    return candidate is not None and not planned.inputs and planned.request.n <= candidate.model.op.native_n


async def _claim_recording(tx: Transaction, org_id: str, request_id: str, planned: PlannedCall) -> Plan:
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
    found = await tx.one(f"find_{fingerprint.by}_recording", **claim)
    if found is None:
        return plan
    await tx.run("release_recording_claim", request_id=request_id)
    return msgspec.structs.replace(plan, source=Replay(found["id"]))
