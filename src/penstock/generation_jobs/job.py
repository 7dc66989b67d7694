"""A generation while a worker runs it, and the writes that its lease allows."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import msgspec

from penstock.accounts.prices import actual_lines, quote, quote_of, restore_prices, snapshot_prices
from penstock.accounts.transfers import record_loss
from penstock.errors import ModelDisabled
from penstock.gateway import Gateway
from penstock.generation_jobs.mailbox import Mailbox
from penstock.generation_jobs.parts import PartHistory
from penstock.generation_jobs.rows import GenerationRow, Mock, Plan, Replay, list_last_attempts
from penstock.jobs.running import LeaseLost, RunningJob
from penstock.jobs.steps import Step
from penstock.provenance.sealer import Origin
from penstock.providers.spec import Result
from penstock.schema import PlannedCandidate, Request
from penstock.store.base import Row, Transaction
from penstock.store.waiting import retry_while_unavailable
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import Failure
from penstock.upstream.faults import with_drill
from penstock.values import ZERO, InputFile, Nanos, OrgId, nanos


class NewGeneration(msgspec.Struct, frozen=True):
    """A generation that was stored a moment ago: what its job would otherwise read."""

    row: GenerationRow
    key_id: str  # of the call's key
    request: Request
    plan: Plan
    candidates: tuple[Candidate, ...]  # those of the plan; none for a replay or a mock
    attempt_id: str | None  # of an attempt that was stored with it: of the first candidate, for all outputs
    inputs: tuple[InputFile, ...] = ()  # those of the request


@dataclass(slots=True)
class Job:
    """A generation while a worker runs it."""

    running: RunningJob
    row: GenerationRow  # as it was when the job was loaded, without request and plan: there are thousands of jobs
    key_id: str  # of the call's key
    request: Request
    plan: Plan
    candidates: tuple[Candidate | None, ...]  # of the plan, None if no longer configured; () for a replay or a mock
    history: PartHistory = field(default_factory=PartHistory)
    stored_percent: int | None = None  # the progress in the store; None while the generation is queued
    mailbox: Mailbox | None = None  # of a caller that waits in this process
    inputs: tuple[InputFile, ...] = ()  # those of the request, for the first attempt of a new generation

    @property
    def id(self) -> str:
        return self.row.id

    def origin(self, candidate: Candidate, *, is_mock: bool = False) -> Origin:
        """Who makes an output, as its seal tells."""
        return Origin(
            request_id=self.id,
            model=self.request.model,
            executed_model=candidate.executed_model,
            provider=candidate.provider.slug,
            is_model=not candidate.provider.mocks,
            is_mock=is_mock,
        )

    @property
    def org_id(self) -> OrgId:
        return self.row.org_id

    @property
    def lease_token(self) -> int:
        return self.running.lease.token

    def new_percent(self, result: Result) -> int | None:
        """The progress that is to be stored: when the provider has begun, and then each five percent. None: nothing."""
        if result.status != "in_progress":
            return None
        percent = min(99, round((result.progress or 0) * 100))
        return percent if self.stored_percent is None or percent >= self.stored_percent + 5 else None

    def note_percent(self, percent: int | None) -> None:
        """Note that this progress, if it is one, was stored."""
        if percent is not None:
            self.stored_percent = percent

    @property
    def show_image(self) -> Callable[[Mapping[str, Any]], None] | None:
        """Shows an unfinished image to the caller, if a caller waits who wants to see them."""
        return self.mailbox.partial_images.add if self.mailbox and self.mailbox.partial_images else None


# -------------------------------------------------------------------------------------------------------------- loading


def new_job(running: RunningJob, new: NewGeneration, mailbox: Mailbox | None) -> Job:
    """The job of a generation that this process has just stored."""
    history = PartHistory()
    if new.attempt_id:
        history.add_unsent((0, 0), new.attempt_id)
        running.send_guard.unsent_attempts.add(new.attempt_id)
    return Job(
        running=running,
        row=_without_payload(new.row),
        key_id=new.key_id,
        request=new.request,
        plan=new.plan,
        candidates=new.candidates,
        history=history,
        mailbox=mailbox,
        inputs=new.inputs,
    )


async def read_job(gateway: Gateway, running: RunningJob, mailbox: Mailbox | None = None) -> Job:
    """The job of a generation that is read from the store with its attempts. Raises LeaseLost when the lease is no
    longer valid.
    """
    lease = running.lease
    found = await gateway.store.one("get_leased_generation", id=lease.id, lease_token=lease.token)
    if found is None:
        raise LeaseLost(lease.id)
    key_id = found.pop("key_id")
    attempt_count = found.pop("attempt_count")
    row = GenerationRow(**found)
    if row.cancel_requested:
        running.wakeups.wake()
    request = row.decode_request()
    assert request is not None, "only finished generations are purged"
    plan = row.decode_plan()
    attempts = await list_last_attempts(gateway.store, row.id) if attempt_count else []
    charged_ids: list[str] = []
    if any(attempt.cost for attempt in attempts):
        charged_ids = [found["id"] for found in await gateway.store.all("list_charged_failures", request_id=row.id)]
    return Job(
        running=running,
        row=_without_payload(row),
        key_id=key_id,
        request=request,
        plan=plan,
        candidates=await _restore_candidates(gateway, plan, request, row.created_at_ms),
        history=PartHistory.of_attempts(attempts, running.send_guard.unsent_attempts, charged_ids),
        stored_percent=row.progress if row.status == "in_progress" else None,
        mailbox=mailbox,
    )


def _without_payload(row: GenerationRow) -> GenerationRow:
    return msgspec.structs.replace(row, request=None, plan=b"")


async def _restore_candidates(
    gateway: Gateway, plan: Plan, request: Request, created_at_ms: int
) -> tuple[Candidate | None, ...]:
    if isinstance(plan.source, Replay | Mock):
        return ()
    restored = [await restore_candidate(gateway, planned, request.task) for planned in plan.candidates]
    return tuple(
        found and with_drill(found, request.drill, request.task, gateway.clock, created_at_ms) for found in restored
    )


async def restore_candidate(gateway: Gateway, planned: PlannedCandidate, task: str) -> Candidate | None:
    """The candidate of an accepted plan with its prices at acceptance; None when it is no longer configured."""
    with suppress(ModelDisabled):
        await gateway.live_models.prepare_accepted(planned.model)
    if planned.account and not gateway.vendor_accounts.knows(planned.account):
        await gateway.vendor_accounts.refresh()  # another process has just added it
    found = gateway.catalog.find_candidate(planned, task)
    candidate = None if found is None else gateway.vendor_accounts.of_job(found, planned.account, planned.fee_percent)
    if candidate is None:
        return None
    if planned.prices == snapshot_prices(candidate.model.prices):
        return candidate  # most are unchanged, and share one object
    prices = restore_prices(planned.prices)
    return replace(candidate, model=replace(candidate.model, prices=prices))


def billed_cost(candidate: Candidate, request: Request, count: int, result: Result) -> Nanos:
    """What the provider says it charges for `count` outputs, else the quote for them."""
    if (usd := candidate.charged(result).cost_usd) is not None:
        return nanos(Decimal(usd))
    if "billed" in result.usage:
        return quote_of(actual_lines(candidate.model, request, count, usage=result.usage)).total
    part = msgspec.structs.replace(request, values={**request.values, "n": count})
    return quote(candidate.model, part).total


# -------------------------------------------------------------------------------------------------------------- writing


async def is_cancel_requested(gateway: Gateway, job: Job) -> bool:
    row = await gateway.store.one("is_cancel_requested", id=job.id)
    return bool(row and row["cancel_requested"])


async def check_lease(tx: Transaction, job: Job, *, is_progress: bool = False) -> None:
    """Raise LeaseLost unless this worker still holds the lease. With `is_progress` the transaction makes progress that
    cannot be made twice, which sets the number of crashes to zero.
    """
    name, values = Step(job.running.lease, is_progress=is_progress).check
    if await tx.one(name, **values) is None:
        raise LeaseLost(job.id)


async def store_progress(gateway: Gateway, job: Job, result: Result) -> None:
    """Store `in_progress` when the provider has begun, and then each five percent of progress."""
    percent = job.new_percent(result)
    if percent is not None:
        await gateway.steps.add(Step(job.running.lease, percent=percent), job.org_id)
        job.note_percent(percent)


async def confirm_survival(gateway: Gateway, job: Job) -> None:
    """Note that this process survived a round of work: the crashes before it had another cause."""
    if job.running.lease.crashes:
        await gateway.steps.add(Step(job.running.lease, is_progress=True), job.org_id)
        job.running.forget_crashes()
    job.running.survived.set()


async def record_attempt(
    gateway: Gateway,
    job: Job,
    attempt_id: str,
    state: str,
    *,
    result: Result | None = None,
    failure: Failure | None = None,
    cost: Nanos = ZERO,
    loss: Nanos = ZERO,
) -> None:
    """Store what became of an attempt, with the progress of a job that has just begun, what a failed one cost
    nevertheless, and the part of it that no caller pays.

    Waits for a store that is unavailable: losing the provider's id for a job would lose something paid for.
    """
    is_progress = not job.history.is_recorded(attempt_id, state)
    now = gateway.clock.now_ms()
    end = attempt_end(attempt_id, state, now, result=result, failure=failure, cost=cost or None)
    percent = job.new_percent(result) if result else None
    step = Step(job.running.lease, [("set_attempt", end)], is_progress, percent)

    async def write_with_loss(tx: Transaction) -> None:
        await check_lease(tx, job, is_progress=is_progress)
        if await tx.run("set_attempt", **end):
            await record_loss(tx, job.org_id, attempt_id, loss, now)

    async def write() -> None:
        if loss:
            await gateway.store.write(write_with_loss)
        else:
            await gateway.steps.add(step, job.org_id)
            job.note_percent(percent)

    await retry_while_unavailable(gateway.clock, write, request_id=job.id)


def attempt_end(
    attempt_id: str,
    state: str,
    at_ms: int,
    *,
    result: Result | None = None,
    failure: Failure | None = None,
    cost: Nanos | None = None,
) -> Row:
    """The values for the query `set_attempt`, which changes an attempt that has not ended.

    The upstream id is stored only for jobs, which are asked about by it: it is unique, so that no two generations claim
    one job. Ids of immediate results need not be unique.
    """
    return {
        "id": attempt_id,
        "state": state,
        "upstream_id": result.upstream_id if result and result.ref else None,
        "ref": msgspec.json.encode(dict(result.ref)) if result else None,
        "failure_kind": failure.kind if failure else None,
        "failure_message": failure.message if failure else None,
        "http_status": failure.status if failure else None,
        "cost": cost,
        "at_ms": at_ms,
    }
