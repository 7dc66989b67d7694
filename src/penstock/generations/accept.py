"""The promise: record, hold, idempotency key, job and pictures in one transaction."""

import msgspec

from penstock.accounts import transfers
from penstock.accounts.limits import check_limits
from penstock.accounts.requests import open_request
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generations.plan import PlannedCall, digest
from penstock.jobs.leases import Lease
from penstock.schema import Call, Plan
from penstock.store.base import ConstraintViolated, Row, Transaction
from penstock.values import Nanos

_INPUTS_OUTLIVE_MS = 3_600_000


async def accept(gateway: Gateway, call: Call, intent: PlannedCall) -> tuple[Row, Lease | None]:
    """The row that was promised, and the right to drive it; no lease when the same key promised it before."""
    failpoint("accept.before_tx")
    caller, wish = call.caller, intent.wish
    stored = await gateway.transfer.store_inputs(intent.pictures, call.at_ms)
    request = msgspec.structs.replace(intent.request, inputs=tuple(one for one, _ in stored))
    hold = Nanos(max(choice.hold for choice in intent.plan.choices))
    now = gateway.clock.now_ms()
    deadline_ms = now + int(gateway.settings.job_deadline_seconds * 1000)
    mine = gateway.jobs.begin_here(request.task)

    async def write(tx: Transaction) -> Row:
        if wish.idempotency_key:
            earlier = await tx.one("get_generation_by_key", org_id=caller.org_id, idempotency_key=wish.idempotency_key)
            if earlier:
                return earlier
        if caller.is_limited:
            await check_limits(tx, caller, hold, now)
        reserved = gateway.chat_settlement.reserved_amount(caller.org_id)
        await transfers.hold(tx, caller.org_id, call.id, hold, call.at_ms, reserved=reserved)
        await open_request(tx, call, request, hold)
        plan = await _claimed(tx, call, intent)
        await tx.run(
            "add_generation",
            id=call.id,
            org_id=caller.org_id,
            task=request.task,
            model=request.model,
            request=msgspec.json.encode(request),
            plan=msgspec.json.encode(plan),
            hold=hold,
            created_at_ms=call.at_ms,
            deadline_ms=deadline_ms,
            retention_seconds=wish.retention_seconds,
            webhook_url=wish.webhook_url,
            idempotency_key=wish.idempotency_key,
            body_digest=digest(call) if wish.idempotency_key else None,
            lease_token=int(mine),
            lease_until_ms=gateway.jobs.lease_until_ms if mine else 0,
        )
        await gateway.media.add_inputs(tx, caller.org_id, call.id, stored, deadline_ms + _INPUTS_OUTLIVE_MS)
        await gateway.jobs.queue(tx, call.id, request.task)
        failpoint("accept.in_tx")
        row = await tx.one("get_generation", id=call.id, org_id=caller.org_id)
        assert row is not None, "it was written a moment ago"
        return row

    with gateway.chat_settlement.holding(caller.org_id, hold):
        try:
            row = await gateway.store.write(write)
        except ConstraintViolated:  # two processes, one key: the other was first
            if not wish.idempotency_key:
                raise
            row = await gateway.store.write(write)
    failpoint("accept.after_commit")
    return row, Lease(call.id, 1) if row["id"] == call.id else None


async def _claimed(tx: Transaction, call: Call, intent: PlannedCall) -> Plan:
    """Of calls alike that would all record, the first one does and the others follow it."""
    plan, like = intent.plan, intent.plan.likeness
    if not intent.claims or like is None:
        return plan
    claim = {"org_id": call.caller.org_id, "kind": like.kind, "digest": like.digest}
    if not await tx.run("claim_recording", **claim, request_id=call.id):
        leader = await tx.one("get_recording_claim", **claim)
        return msgspec.structs.replace(plan, follows=leader["request_id"]) if leader else plan
    # Between our look for a recording and this claim, whoever had it before may have finished.
    found = await tx.one(f"find_{like.by}_recording", **claim)
    if found is None:
        return plan
    await tx.run("release_recording_claim", request_id=call.id)
    return msgspec.structs.replace(plan, replays=found["id"])
