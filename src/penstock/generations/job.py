"""A generation in the hands of its driver: what it works with, and what it may write down."""

from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from penstock.gateway import Gateway
from penstock.jobs.leases import Lease, LeaseLost
from penstock.providers.spec import Result
from penstock.schema import AttemptSummary, Plan, PlannedCandidate, Request, StoredOutput
from penstock.store.base import Row, Store, Transaction
from penstock.store.waiting import retry_while_unavailable
from penstock.upstream.catalog import Candidate
from penstock.values import Nanos


@dataclass(slots=True)
class Job:
    """A generation in the hands of its driver."""

    lease: Lease
    row: Row
    request: Request
    plan: Plan
    attempts: dict[tuple[int, int], Row]
    tried: list[AttemptSummary] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.lease.id

    @property
    def org_id(self) -> str:
        return str(self.row["org_id"])


@dataclass(frozen=True, slots=True)
class Part:
    """Which outputs an attempt is for: `count` of them, as part `part` of what choice `number` of the plan makes."""

    number: int
    part: int
    count: int
    option: Candidate
    choice: PlannedCandidate


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """Outputs of one attempt, kept."""

    share: Part
    attempt_id: str
    result: Result
    files: tuple[StoredOutput, ...]
    cost_usd: Decimal  # rounded once, when all of them are settled


async def cancel_asked(store: Store | Transaction, job: Job) -> bool:
    row = await store.one("is_cancel_requested", id=job.id)
    return bool(row and row["cancel_requested"])


async def check_lease(tx: Transaction, job: Job, *, moves: bool = False) -> None:
    """Every write of a driver begins here: whoever lost its lease changes nothing. What moves a generation on in a way
    that cannot happen twice shows that the crashes before it were survived.
    """
    if not await tx.run("hold_lease", id=job.id, lease_token=job.lease.token, moves=int(moves)):
        raise LeaseLost(job.id)


async def survived(gateway: Gateway, job: Job) -> None:
    """A whole round of work, and this process lives: whatever killed the ones before was something else."""
    if job.lease.crashes:
        await gateway.store.write(lambda tx: check_lease(tx, job, moves=True))
        job.lease.crashes = 0
    job.lease.survived()


async def record_attempt(
    gateway: Gateway,
    job: Job,
    attempt_id: str,
    state: str,
    *,
    result: Result | None = None,
    kind: str | None = None,
    message: str | None = None,
) -> None:
    """Waits for a store that is away: forgetting a job's name would lose something paid for."""
    moves = all(row["id"] != attempt_id or row["state"] != state for row in job.attempts.values())

    async def write(tx: Transaction) -> None:
        await check_lease(tx, job, moves=moves)
        await set_attempt(tx, attempt_id, state, gateway.clock.now_ms(), result=result, kind=kind, message=message)

    await retry_while_unavailable(gateway.clock, lambda: gateway.store.write(write), request_id=job.id)


async def set_attempt(
    tx: Transaction,
    attempt_id: str,
    state: str,
    at_ms: int,
    *,
    result: Result | None = None,
    kind: str | None = None,
    message: str | None = None,
    cost: Nanos | None = None,
) -> None:
    """The names of jobs are unique, so that no two generations claim one; other answers may be named as they please."""
    await tx.run(
        "set_attempt",
        id=attempt_id,
        state=state,
        upstream_id=result.upstream_id if result and result.ref else None,
        ref=msgspec.json.encode(dict(result.ref)) if result else None,
        failure_kind=kind,
        failure_message=message,
        cost=cost,
        at_ms=at_ms,
    )
