"""Accept a planned call: record, hold, idempotency key, generation and inputs in one transaction.

Calls of one moment share a transaction, unless they must be counted or compared with others one by one.
"""

from collections.abc import Sequence
from functools import partial
from itertools import compress

import msgspec

from penstock.accounts.acceptances import Acceptance
from penstock.accounts.limits import check_limits, check_org_budget
from penstock.accounts.requests import opened_request
from penstock.accounts.transfers import NewHold
from penstock.errors import InsufficientBalance, nothing_sent
from penstock.event_loop import run_aside
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generations.plan import PlannedCall
from penstock.generations.rows import (
    NEW_GENERATION,
    Follow,
    GenerationRow,
    Live,
    Plan,
    Recording,
    Replay,
    get_generation_by_key,
)
from penstock.generations.validate import ValidatedCall, canonical_digest
from penstock.jobs.running import Lease
from penstock.recordings.rows import find_recording
from penstock.schema import Call, Input, PlannedCandidate, Request
from penstock.store.base import Change, ConstraintViolated, Row, Transaction
from penstock.telemetry.tracing import span, stored_context
from penstock.upstream.candidate import Candidate
from penstock.values import InputFile, Nanos, OrgId, new_id

_FIRST_TOKEN = 1
_INPUTS_OUTLIVE_MS = 3_600_000


class NewGeneration(msgspec.Struct, frozen=True):
    """A generation that was stored a moment ago: what its job would otherwise read."""

    row: GenerationRow
    key_id: str  # of the call's key
    request: Request
    plan: Plan
    candidates: tuple[Candidate, ...]  # those of the plan; none for a replay or a mock
    attempt_id: str | None  # of an attempt that was stored with it: of the first candidate, for all outputs
    inputs: tuple[InputFile, ...] = ()  # those of the request


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

    Raises InsufficientBalance, RateLimited when a limit of the key is reached, or StorageQuotaExceeded. Where the
    balance does not cover the dearest candidates, the call is accepted without them.
    """
    await gateway.quota.check(call.caller.org_id, sum(len(image.data) for image in planned.inputs))
    failpoint("accept.before_tx")
    stored_inputs = await gateway.transfer.store_inputs(planned.inputs, call.at_ms)
    store = partial(_store_affordable, gateway, call, planned, stored_inputs, is_awaited)
    accepted = await gateway.chat_settlement.accept(call.caller.org_id, store)
    failpoint("accept.after_commit")
    call.release_body()
    return accepted


# -------------------------------------------------------------------------------------------------------------- storing


async def _store_affordable(
    gateway: Gateway,
    call: Call,
    planned: PlannedCall,
    stored_inputs: Sequence[tuple[Input, bytes]],
    is_awaited: bool,
) -> Accepted:
    """Store the generation with those candidates that the balance covers; raise InsufficientBalance if it is none."""
    while True:
        prepared = await _prepare(gateway, call, planned, stored_inputs, is_awaited)
        try:
            return await _store(gateway, planned, prepared)
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


async def _store(gateway: Gateway, planned: PlannedCall, prepared: "_Prepared") -> Accepted:
    """Store a generation together with others of the moment, or alone if it must be counted or compared with them.

    Returns the generation that used the same idempotency key before, if there is one.
    """
    caller = prepared.call.caller
    key = planned.validated.idempotency_key
    with gateway.chat_reservations.holding(caller.org_id, prepared.hold), nothing_sent(), span("accept"):
        if not (key or caller.is_limited or planned.claims_recording):
            accepted, acceptance = prepared.with_plan(planned.plan)
            await gateway.acceptances.add(acceptance)
            return accepted
        store_alone = partial(_store_alone, gateway, planned, prepared)
        try:
            return await gateway.store.write(store_alone, org_id=caller.org_id)
        except ConstraintViolated:  # another process has just used the same idempotency key
            if not key:
                raise
            return await gateway.store.write(store_alone, org_id=caller.org_id)


async def _store_alone(gateway: Gateway, planned: PlannedCall, prepared: "_Prepared", tx: Transaction) -> Accepted:
    """As `_store`, in a transaction of its own."""
    caller = prepared.call.caller
    key = planned.validated.idempotency_key
    if key and (earlier := await get_generation_by_key(tx, caller.org_id, key)):
        is_repeated = earlier.id != prepared.call.id  # else the commit of this call was not confirmed
        return Accepted(earlier, is_repeated=True) if is_repeated else Accepted(earlier, lease=prepared.lease)
    if caller.is_limited:
        await check_limits(tx, caller, prepared.hold, prepared.at_ms)
    plan = await _claim_recording(tx, caller.org_id, prepared.call.id, planned)
    accepted, acceptance = prepared.with_plan(plan)
    await gateway.acceptances.write(tx, [acceptance])
    await check_org_budget(tx, caller, prepared.at_ms)
    return accepted


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


class _Prepared(msgspec.Struct, frozen=True):
    """What is stored of a call when it is accepted; the plan may be known only in the transaction."""

    call: Call
    request: Request
    candidates: tuple[Candidate, ...]
    inputs: tuple[InputFile, ...]
    at_ms: int
    hold: Nanos
    columns: Row  # of the generation, except the plan
    other_changes: Sequence[Change]  # its inputs, and its place in the queue
    lease: Lease | None  # if this process is to run it
    attempt_id: str | None  # of the first attempt, if it is stored with the generation and sent at once

    def with_plan(self, plan: Plan) -> tuple[Accepted, Acceptance]:
        """The accepted call, and what is to be written for it."""
        call = self.call
        first = plan.candidates[0] if self.attempt_id and isinstance(plan.source, Live | Recording) else None
        columns = {**self.columns, "plan": msgspec.json.encode(plan)}
        changes: list[Change] = [
            ("add_request", opened_request(call, self.request, self.hold, sent_to=first)),
            ("add_generation", columns),
            *self.other_changes,
        ]
        if first:
            changes.append(("add_attempt", self._first_attempt(first)))
        hold = NewHold(call.caller.org_id, call.id, self.hold, call.at_ms)
        row = GenerationRow(**columns, **NEW_GENERATION)
        attempt_id = self.attempt_id if first else None
        new = NewGeneration(row, call.caller.key_id, self.request, plan, self.candidates, attempt_id, self.inputs)
        return Accepted(row, self.lease, new), Acceptance(hold, changes)

    def _first_attempt(self, candidate: PlannedCandidate) -> Row:
        return {
            "id": self.attempt_id,
            "request_id": self.call.id,
            "org_id": self.call.caller.org_id,
            "round": 1,
            "part": 0,
            "candidate": 0,
            "count": self.request.n,
            "provider": candidate.provider,
            "upstream_model": candidate.upstream,
            "created_at_ms": self.at_ms,
        }


async def _prepare(
    gateway: Gateway,
    call: Call,
    planned: PlannedCall,
    stored_inputs: Sequence[tuple[Input, bytes]],
    is_awaited: bool,
) -> _Prepared:
    request = planned.request
    if stored_inputs:
        request = msgspec.structs.replace(request, inputs=tuple(item for item, _ in stored_inputs))
    hold = Nanos(max(candidate.hold for candidate in planned.plan.candidates))
    lease = Lease(call.id, _FIRST_TOKEN) if gateway.jobs.runs_here(request.task) else None
    columns = await _columns(gateway, call, planned.validated, request, hold, lease)
    now = gateway.clock.now_ms()
    until_ms = now + _job_ms(gateway) + _INPUTS_OUTLIVE_MS
    input_rows = gateway.media.input_rows(call.caller.org_id, call.id, stored_inputs, until_ms)
    return _Prepared(
        call=call,
        request=request,
        candidates=planned.candidates,
        inputs=planned.inputs,
        at_ms=now,
        hold=hold,
        columns=columns,
        other_changes=[
            *(("add_media", row) for row in input_rows),
            *gateway.jobs.queue_changes(call.id, call.caller.org_id, request.task),
        ],
        lease=lease,
        attempt_id=new_id("att", now) if is_awaited and _is_sent_at_once(planned) else None,
    )


async def _columns(
    gateway: Gateway, call: Call, validated: ValidatedCall, request: Request, hold: Nanos, lease: Lease | None
) -> Row:
    """The row of a generation, except the plan."""
    digest = None
    if validated.idempotency_key:
        digest = await run_aside(call.size_bytes, canonical_digest, validated)
    return {
        "id": call.id,
        "org_id": call.caller.org_id,
        "task": request.task,
        "model": request.model,
        "request": msgspec.json.encode(request),
        "hold": hold,
        "created_at_ms": call.at_ms,
        "deadline_ms": gateway.clock.steady_ms() + _job_ms(gateway),
        "retention_seconds": validated.retention_seconds,
        "webhook_url": validated.webhook_url,
        "idempotency_key": validated.idempotency_key,
        "body_digest": digest,
        "lease_token": lease.token if lease else 0,
        "lease_until_ms": gateway.jobs.lease_until_ms if lease else 0,
        "trace_context": stored_context(),  # of the call itself: spans of its job belong directly under it
    }


def _job_ms(gateway: Gateway) -> int:
    """How long a job may take."""
    return int(gateway.settings.job_deadline_seconds * 1000)


def _is_sent_at_once(planned: PlannedCall) -> bool:
    """Whether the first candidate makes all outputs in one call, without inputs that must be read before."""
    if not planned.candidates or planned.inputs:
        return False
    return planned.request.n <= planned.candidates[0].model.op.native_n
