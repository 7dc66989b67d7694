"""The rows of trials in the store, and how the API shows a trial."""

from typing import Any

import msgspec

from penstock.errors import NotFound
from penstock.store.base import Store
from penstock.values import Nanos, OrgId, dollars, is_id, iso

PREFIX = "trial"
KINDS = ("image", "video", "chat")
_MOST_ROWS = 10_000  # more than any trial has


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `trials`, with the state of its batch. Money is in nano-dollars."""

    id: str
    org_id: OrgId
    key_id: str
    batch_id: str
    name: str | None
    kind: str
    models: str  # as a JSON list
    prompts: int
    created_at_ms: int
    link_digest: bytes | None
    link_expires_at_ms: int | None
    shows_prompts: int
    verdict: str | None
    status: str
    reason: str | None
    rows_total: int
    rows_completed: int
    rows_failed: int
    estimate: int
    cost: int
    max_cost: int | None

    @property
    def model_names(self) -> list[str]:
        return msgspec.json.decode(self.models, type=list[str])


class TrialRow(msgspec.Struct, frozen=True, kw_only=True):
    """How a prompt ended with a model; it may be pending still."""

    number: int
    status: str
    cost: int
    request_id: str | None
    duration_ms: int | None
    expires_at_ms: int | None  # of the outputs; None of texts


async def get_trial(store: Store, org_id: OrgId, trial_id: str) -> TrialRecord:
    """One trial of an organization. Raises NotFound."""
    row = await store.one("get_trial", id=trial_id, org_id=org_id) if is_id(trial_id, PREFIX) else None
    if row is None:
        raise NotFound(f"No such trial: {trial_id[:64]}.")
    return TrialRecord(**row)


async def find_trial_of_batch(store: Store, org_id: OrgId, batch_id: str) -> TrialRecord | None:
    row = await store.one("get_trial_of_batch", batch_id=batch_id, org_id=org_id)
    return None if row is None else TrialRecord(**row)


async def list_rows(store: Store, trial: TrialRecord) -> list[TrialRow]:
    """All rows of the batch of a trial, in their order."""
    page = {"org_id": trial.org_id, "batch_id": trial.batch_id, "limit": _MOST_ROWS}
    return [TrialRow(**row) for row in await store.slow("list_trial_rows", **page)]


def trial_object(trial: TrialRecord, now_ms: int) -> dict[str, Any]:
    """A trial as the API lists it; amounts are in dollars."""
    return {
        "id": trial.id,
        "object": "trial",
        "name": trial.name,
        "kind": trial.kind,
        "created_at": iso(trial.created_at_ms),
        "key_id": trial.key_id,
        "models": trial.model_names,
        "prompts": trial.prompts,
        "batch_id": trial.batch_id,
        "status": trial.status,
        "reason": trial.reason,
        "counts": {
            "total": trial.rows_total,
            "completed": trial.rows_completed,
            "failed": trial.rows_failed,
            "pending": trial.rows_total - trial.rows_completed - trial.rows_failed,
        },
        "estimated_cost": dollars(Nanos(trial.estimate)),
        "cost": dollars(Nanos(trial.cost)),
        "max_cost": None if trial.max_cost is None else dollars(Nanos(trial.max_cost)),
        "currency": "usd",
        "link": _link(trial, now_ms),
        "verdict": None if trial.verdict is None else msgspec.json.decode(trial.verdict),
    }


def _link(trial: TrialRecord, now_ms: int) -> dict[str, Any] | None:
    """What is known of the link by which people vote; its text was shown once."""
    if trial.link_digest is None or trial.link_expires_at_ms is None or trial.link_expires_at_ms <= now_ms:
        return None
    return {"expires_at": iso(trial.link_expires_at_ms), "shows_prompts": bool(trial.shows_prompts)}
