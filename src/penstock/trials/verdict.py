"""What a trial decides: calls for one model get another, with what that would have saved in the last thirty days."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.accounts.aliases import check_alias, put_alias, read_aliases
from penstock.audit_log import Act, Note, write_audited
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.store.base import Transaction
from penstock.trials.records import TrialRecord, list_rows
from penstock.trials.results import ModelSums, count_votes, rounded, sums_of
from penstock.trials.scores import Score, pair_scores
from penstock.values import DAY_MS, ZERO, Nanos, dollars, first_id, iso

DAYS = 30


class Traffic(NamedTuple):
    """The completed requests for a model in a time, and what they cost."""

    requests: int
    cost: int


async def preview(gateway: Gateway, trial: TrialRecord, model: str, alias: str) -> dict[str, Any]:
    """What it would mean that calls for `alias` get `model`: the votes, and the money at the traffic of thirty days.

    Calls that ask for an alias count as those of the model that it stands for. Raises InvalidRequest.
    """
    models = trial.model_names
    if model not in models:
        raise InvalidRequest(f"`model` must be one of this trial: {', '.join(models)}.", param="model")
    check_alias(alias, model)
    org_id = trial.org_id
    aliases = await read_aliases(gateway.store, org_id)
    replaced = aliases.get(alias, alias)
    is_used = alias in aliases or bool(gateway.catalog.serving(alias))
    await gateway.chat_settlement.catch_up(org_id)
    to_ms = gateway.clock.now_ms()
    from_ms = to_ms - DAYS * DAY_MS
    span = {"low": first_id("req", from_ms), "high": first_id("req", to_ms + 1)}
    row = await gateway.store.one("sum_model_traffic", org_id=org_id, model=replaced, kind=trial.kind, **span)
    assert row is not None, "sums are always returned"
    sums = sums_of(await list_rows(gateway.store, trial), len(models))
    new = sums[models.index(model)]
    old = sums[models.index(replaced)] if replaced in models else None
    traffic = Traffic(row["requests"], int(row["cost"]))
    if old is not None and trial.created_at_ms >= from_ms:  # the trial itself is no traffic
        traffic = Traffic(max(0, traffic.requests - old.completed), max(0, traffic.cost - old.cost))
    expected = expected_cost(traffic, old, new)
    score = await _against(gateway, trial, models, model, replaced)
    low, high = score.interval or (None, None)
    return {
        "object": "trial.verdict",
        "trial_id": trial.id,
        "model": model,
        "alias": alias,
        "replaces": replaced if is_used and replaced != model else None,
        "from": iso(from_ms),
        "to": iso(to_ms),
        "requests": traffic.requests,
        "spent": dollars(Nanos(traffic.cost)),
        "expected": None if expected is None else dollars(expected),
        "saves": None if expected is None else dollars(Nanos(traffic.cost - expected)),
        "currency": "usd",
        "win_rate": rounded(score.win_rate),
        "win_rate_low": rounded(low),
        "win_rate_high": rounded(high),
    }


def expected_cost(traffic: Traffic, old: ModelSums | None, new: ModelSums) -> Nanos | None:
    """What the traffic would have cost with the new model; None if the trial has no output of it.

    If the trial has both models, by the ratio of what the same prompts cost; otherwise as if each request had one
    output.
    """
    if not new.completed:
        return None
    if not traffic.requests:
        return ZERO
    if old is not None and old.completed and old.cost:
        return Nanos(traffic.cost * new.cost * old.completed // (old.cost * new.completed))
    return Nanos(traffic.requests * new.cost // new.completed)


async def _against(gateway: Gateway, trial: TrialRecord, models: Sequence[str], model: str, other: str) -> Score:
    """The score of a model against another; without votes if the other is not in the trial."""
    if other not in models or other == model:
        return Score()
    places = (models.index(model), models.index(other))
    first, second = sorted(places)
    found = pair_scores(await count_votes(gateway, trial)).get((first, second), Score())
    if places == (first, second):
        return found
    return Score(wins=found.losses, losses=found.wins, ties=found.ties, both_bad=found.both_bad)


async def decide(gateway: Gateway, trial: TrialRecord, model: str, alias: str) -> dict[str, Any]:
    """Let calls for `alias` get `model` from now on: every process notices within two seconds.

    Raises InvalidRequest, or Conflict if the organization has too many aliases.
    """
    verdict = await preview(gateway, trial, model, alias)
    now_ms = gateway.clock.now_ms()
    kept = {"model": model, "alias": alias, "at": iso(now_ms)}

    async def work(tx: Transaction, note: Note) -> None:
        await tx.run("set_trial_verdict", id=trial.id, org_id=trial.org_id, verdict=msgspec.json.encode(kept).decode())
        note(Act("trial.decided", trial.id, trial.org_id, after={"model": model, "alias": alias}))
        await put_alias(tx, note, trial.org_id, alias, model)

    await write_audited(gateway.store, now_ms, work)
    gateway.keys.forget_org(trial.org_id)
    return verdict
