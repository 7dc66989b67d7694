"""Make a trial: prompts times models are the rows of a batch, which is checked, priced and paid as any other."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from penstock.accounts.idempotency import Claim
from penstock.audit_log import Act, Note, write_audited
from penstock.batches import intake
from penstock.batches.intake import BatchOptions, RowsRefused
from penstock.batches.lines import Line
from penstock.batches.records import BatchRecord
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.schema import Caller
from penstock.store.base import Transaction
from penstock.trials.records import PREFIX, TrialRecord, get_trial
from penstock.values import Nanos

MOST_MODELS = 6
_MODEL_CHARS = 256
_LEFT_AT_ONCE = 100


class NewTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asked for."""

    kind: str
    models: tuple[str, ...]
    prompts: Sequence[Line]
    name: str | None = None
    max_cost: Nanos | None = None
    start: bool = True

    @property
    def options(self) -> BatchOptions:
        """Those of its batch, which begins when the trial is stored."""
        return BatchOptions(name=f"Trial: {self.name}" if self.name else "Trial", max_cost=self.max_cost, start=False)

    def rows(self) -> Iterator[Line]:
        """The rows of its batch: each prompt with each model."""
        for place, line in enumerate(self.prompts):
            for number, model in enumerate(self.models, place * len(self.models) + 1):
                yield Line(number, f"{place + 1} {model}"[:_MODEL_CHARS], line.endpoint, {**line.body, "model": model})


def checked_models(caller: Caller, value: Sequence[Any]) -> tuple[str, ...]:
    """The models of a trial. Raises InvalidRequest unless they are 2 to 6 different names, and none is an alias."""
    are_names = all(isinstance(model, str) and 1 <= len(model) <= _MODEL_CHARS for model in value)
    if not are_names or not 2 <= len(value) <= MOST_MODELS or len(set(value)) < len(value):
        raise InvalidRequest(f"`models` must have the ids of 2 to {MOST_MODELS} different models.", param="models")
    if alias := next((model for model in value if model in caller.model_aliases), None):
        stands_for = caller.model_aliases[alias]
        message = f"`{alias}` stands for `{stands_for}` in your organization; name that, or `{{provider}}/{alias}`."
        raise InvalidRequest(message, param="models")
    return tuple(value)


async def estimate_trial(gateway: Gateway, caller: Caller, trial: NewTrial) -> dict[str, Any]:
    """Check and price a trial and store nothing. Raises RowsRefused."""
    try:
        estimate = await intake.estimate_batch(gateway, caller, trial.rows(), trial.options)
    except RowsRefused as refusal:
        raise _by_prompt(refusal, trial) from None
    by_model = {row["model"]: row["estimated_cost"] for row in estimate["models"]}
    return {
        "object": "trial.estimate",
        "prompts": len(trial.prompts),
        "rows": estimate["rows"],
        "estimated_cost": estimate["estimated_cost"],
        "highest_cost": estimate["highest_cost"],
        "currency": "usd",
        "models": [{"model": model, "estimated_cost": by_model[model]} for model in trial.models],
    }


async def create_rows(
    gateway: Gateway, caller: Caller, trial: NewTrial, batch_id: str, claim: Claim | None = None
) -> BatchRecord:
    """Check, price and store the rows of a trial, as a batch that has not started. Raises RowsRefused and KeyTaken."""
    try:
        return await intake.create_batch(gateway, caller, trial.rows(), trial.options, batch_id, claim)
    except RowsRefused as refusal:
        raise _by_prompt(refusal, trial) from None


async def store_trial(gateway: Gateway, caller: Caller, trial: NewTrial, batch_id: str) -> TrialRecord:
    """Store a trial whose rows are stored, unless another call has; then its batch runs, if it is not to be started
    later.
    """
    now_ms = gateway.clock.now_ms()
    trial_id = f"{PREFIX}_{batch_id.partition('_')[2]}"  # of two calls that store it, one does
    columns = {
        "id": trial_id,
        "org_id": caller.org_id,
        "key_id": caller.key_id,
        "batch_id": batch_id,
        "name": trial.name,
        "kind": trial.kind,
        "models": msgspec.json.encode(trial.models).decode(),
        "prompts": len(trial.prompts),
        "created_at_ms": now_ms,
    }
    resumed = {"max_cost": trial.max_cost, "concurrency": trial.options.concurrency}

    async def write(tx: Transaction) -> None:
        if await tx.run("add_trial", **columns) and trial.start:
            await tx.run("resume_batch", id=batch_id, org_id=caller.org_id, **resumed)

    await gateway.store.write(write, org_id=caller.org_id)
    gateway.batch_wakeup.set()
    return await get_trial(gateway.store, caller.org_id, trial_id)


def _by_prompt(refusal: RowsRefused, trial: NewTrial) -> RowsRefused:
    """The refusal of a batch in the words of its trial: rows are prompts with models."""

    def place(row: int) -> tuple[int, str]:
        prompt, model = divmod(row - 1, len(trial.models))
        return prompt + 1, trial.models[model]

    faults: list[dict[str, Any]] = []
    for fault in refusal.faults:
        prompt, model = place(fault["row"])
        faults.append({**fault, "row": prompt, "message": f"`{model}`: {fault['message']}"})
    first = faults[0]
    where = f"Prompt {first['row']}" + (f", column `{first['column']}`" if first["column"] else "")
    more = f" {len(faults) - 1} more rows are wrong, too." if len(faults) > 1 else ""
    param: Mapping[str, str] = {"model": "models"}
    column = first["column"] or "prompts"
    return RowsRefused(f"{where}, {first['message']}{more}", faults, param.get(column, column))


async def delete_trial(gateway: Gateway, trial: TrialRecord) -> None:
    """Delete a trial and its votes. No more rows of its batch begin; what was made and charged stays."""

    async def work(tx: Transaction, note: Note) -> None:
        await _delete(trial.id, tx)
        await tx.run("cancel_batch", id=trial.batch_id, org_id=trial.org_id)
        note(Act("trial.deleted", trial.id, trial.org_id))

    await write_audited(gateway.store, gateway.clock.now_ms(), work, org_id=trial.org_id)
    gateway.batch_wakeup.set()


async def delete_left(gateway: Gateway) -> None:
    """Delete the trials whose batches have been kept for long enough."""
    while rows := await gateway.store.all("list_left_trials", limit=_LEFT_AT_ONCE):
        for row in rows:
            await gateway.store.write(partial(_delete, row["id"]))


async def _delete(trial_id: str, tx: Transaction) -> None:
    await tx.run("delete_trial_votes", id=trial_id)
    await tx.run("delete_trial", id=trial_id)
