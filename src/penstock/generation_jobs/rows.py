"""What is stored about a generation: its row, its plan and its attempts."""

import hashlib

import msgspec

from penstock.providers.spec import FailureKind
from penstock.schema import Fingerprint, GenerationResult, Measures, PlannedCandidate, Request
from penstock.store.base import Row, Store, Transaction
from penstock.values import Nanos, OrgId

# ---------------------------------------------------------------------------------------------------------------- plan


class Live(msgspec.Struct, frozen=True, tag="live"):
    """The providers make the outputs."""

    is_reported: bool = False  # the response says in a header that it is live; only on calls with a replay mode


class Recording(msgspec.Struct, frozen=True, tag="recording"):
    """The providers make the outputs, and the result is kept as a recording."""

    recording_id: str
    fingerprint: Fingerprint


class Follow(msgspec.Struct, frozen=True, tag="follow"):
    """Another request is recording the same call: replay its recording, or record if it fails."""

    request_id: str
    otherwise: Recording


class Replay(msgspec.Struct, frozen=True, tag="replay"):
    """The outputs are copies of a recording's."""

    recording_id: str
    due_ms: int = 0  # when the generation is to be finished, in steady time


class Mock(msgspec.Struct, frozen=True, tag="mock"):
    """The built-in provider makes the outputs in place of the requested one."""

    due_ms: int = 0  # when the generation is to be finished, in steady time


Source = Live | Recording | Follow | Replay | Mock


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an accepted request will be served."""

    candidates: tuple[PlannedCandidate, ...]  # in the order in which they are tried
    source: Source = Live()
    forced: bool = False  # the caller named the provider: no other one is tried
    measures: Measures = Measures()  # of a purged video without a result

    @property
    def hold(self) -> Nanos:
        """The most that any of the candidates may cost."""
        return Nanos(max(candidate.hold for candidate in self.candidates))


# ---------------------------------------------------------------------------------------------------------------- rows


class ShownRow(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the table `generations` that callers see."""

    id: str  # the id of its request
    status: str
    model: str
    request: bytes | None  # as JSON; None after a purge
    plan: bytes | None  # None only in lists, if there is a result
    result: bytes | None  # None until completed
    created_at_ms: int
    completed_at_ms: int | None
    expires_at_ms: int | None
    error_code: str | None
    error_message: str | None
    progress: int

    @property
    def is_unfinished(self) -> bool:
        return self.status in ("queued", "in_progress")

    def decode_request(self) -> Request | None:
        return None if self.request is None else msgspec.json.decode(self.request, type=Request)

    def decode_plan(self) -> Plan:
        assert self.plan is not None, "it is needed only while there is no result"
        return msgspec.json.decode(self.plan, type=Plan)

    def decode_result(self) -> GenerationResult | None:
        return None if self.result is None else msgspec.json.decode(self.result, type=GenerationResult)


class GenerationRow(ShownRow, frozen=True, kw_only=True):
    """A row of the table `generations`."""

    org_id: OrgId
    task: str
    hold: Nanos
    deadline_ms: int
    retention_seconds: int
    webhook_url: str | None
    idempotency_key: str | None
    body_digest: bytes | None
    cancel_requested: int
    lease_token: int
    lease_until_ms: int
    crashes: int
    payload_expires_at_ms: int | None
    trace_context: str | None = None  # the call's place in a trace


# The columns that `add_generation` leaves at their defaults.
NEW_GENERATION: Row = {
    "status": "queued",
    "result": None,
    "completed_at_ms": None,
    "expires_at_ms": None,
    "error_code": None,
    "error_message": None,
    "progress": 0,
    "cancel_requested": 0,
    "crashes": 0,
    "payload_expires_at_ms": None,
}


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `attempts`."""

    id: str
    request_id: str
    org_id: OrgId
    round: int  # counts how often all candidates were tried, from 1
    part: int
    candidate: int  # index into the plan's candidates
    count: int
    provider: str
    upstream_model: str
    state: str
    upstream_id: str | None
    ref: bytes | None  # what the provider needs to find the job again, as JSON
    failure_kind: FailureKind | None
    failure_message: str | None
    http_status: int | None
    cost: int | None
    check_at_ms: int | None
    checks: int
    created_at_ms: int
    updated_at_ms: int
    account_id: str | None = None  # that its job belongs to

    @property
    def is_open(self) -> bool:
        return self.state in ("intent", "submitted")


async def get_generation(store: Store | Transaction, request_id: str, org_id: OrgId) -> GenerationRow | None:
    row = await store.one("get_generation", id=request_id, org_id=org_id)
    return None if row is None else GenerationRow(**row)


async def get_generation_by_key(store: Store | Transaction, org_id: OrgId, key: str) -> GenerationRow | None:
    """The generation that first used an idempotency key, also if it was purged."""
    keys = {"idempotency_key": key, "purged_key": purged_key(org_id, key)}
    row = await store.one("get_generation_by_key", org_id=org_id, **keys)
    return None if row is None else GenerationRow(**row)


def purged_key(org_id: OrgId, key: str) -> str:
    """What a purge leaves of an idempotency key: enough to know it again, so that nothing is made twice."""
    return f"sha256:{hashlib.sha256(f'{org_id} {key}'.encode()).hexdigest()}"


async def list_last_attempts(store: Store | Transaction, request_id: str) -> list[AttemptRow]:
    """The last attempt of a generation for each candidate and part, oldest first."""
    rows: list[Row] = await store.all("list_last_attempts", request_id=request_id)
    return [AttemptRow(**row) for row in rows]
