"""How each model of a trial did: cost, seconds, failures and votes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from penstock.gateway import Gateway
from penstock.trials.records import TrialRecord, TrialRow, list_rows, trial_object
from penstock.trials.scores import Counted, Score, median, pair_scores, scores
from penstock.values import NANOS_PER_USD, Nanos, dollars

_RATE_DIGITS = 4


@dataclass(slots=True)
class ModelSums:
    """What one model of a trial has done so far."""

    completed: int = 0
    failed: int = 0
    cost: int = 0
    durations_ms: list[int] = field(default_factory=list)

    def add(self, row: TrialRow) -> None:
        self.cost += row.cost
        if row.status == "completed":
            self.completed += 1
            if row.duration_ms is not None:
                self.durations_ms.append(row.duration_ms)
        elif row.status == "failed":
            self.failed += 1

    @property
    def cost_per_output(self) -> Nanos | None:
        """What an output cost on average, with what failures cost; None without outputs."""
        return Nanos(round(Decimal(self.cost) / self.completed)) if self.completed else None

    @property
    def seconds(self) -> float | None:
        """How long an output took: the median."""
        middle = median(self.durations_ms)
        return None if middle is None else round(middle / 1000, 3)


def sums_of(rows: Sequence[TrialRow], models: int) -> list[ModelSums]:
    """What each model has done, by its place."""
    found = [ModelSums() for _ in range(models)]
    for row in rows:
        found[(row.number - 1) % models].add(row)
    return found


async def count_votes(gateway: Gateway, trial: TrialRecord) -> list[Counted]:
    return [Counted(**row) for row in await gateway.store.slow("count_trial_votes", trial_id=trial.id)]


async def trial_results(gateway: Gateway, trial: TrialRecord) -> dict[str, Any]:
    """A trial as the API shows it alone, with the results of its models and pairs of models."""
    models = trial.model_names
    sums = sums_of(await list_rows(gateway.store, trial), len(models))
    counted = await count_votes(gateway, trial)
    voters = await gateway.store.one("count_trial_voters", trial_id=trial.id)
    by_model = zip(models, sums, scores(counted, len(models)), strict=True)
    return {
        **trial_object(trial, gateway.clock.now_ms()),
        "votes": sum(row.votes for row in counted),
        "voters": voters["voters"] if voters else 0,
        "results": [_result(model, sum_, score) for model, sum_, score in by_model],
        "pairs": [
            {"models": [models[first], models[second]], **_votes(score)}
            for (first, second), score in sorted(pair_scores(counted).items())
        ],
    }


def _result(model: str, sums: ModelSums, score: Score) -> dict[str, Any]:
    each = sums.cost_per_output
    rate = score.win_rate
    low, high = score.interval or (None, None)
    return {
        "model": model,
        "completed": sums.completed,
        "failed": sums.failed,
        "cost": dollars(Nanos(sums.cost)),
        "cost_per_output": None if each is None else dollars(each),
        "seconds": sums.seconds,
        **_votes(score),
        "win_rate": rounded(rate),
        "win_rate_low": rounded(low),
        "win_rate_high": rounded(high),
        "wins_per_dollar": rounded(rate * NANOS_PER_USD / each) if rate is not None and each else None,
        "wins_per_second": rounded(rate / sums.seconds) if rate is not None and sums.seconds else None,
    }


def _votes(score: Score) -> dict[str, int]:
    return {"wins": score.wins, "losses": score.losses, "ties": score.ties, "both_bad": score.both_bad}


def rounded(value: float | None) -> float | None:
    """A rate as responses show it."""
    return None if value is None else round(value, _RATE_DIGITS)
