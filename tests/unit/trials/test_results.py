"""How each model of a trial did."""

from decimal import Decimal

import pytest

from penstock.errors import NotFound
from penstock.trials.records import TrialRow
from penstock.trials.results import sums_of
from penstock.values import Nanos
from tests.fake_providers import faults
from tests.gateway import OpenGateway
from tests.unit.trials.trial_calls import MODELS, retrieve, run


async def test_costs_seconds_failures_and_votes_are_those_of_the_model(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.annex.images.next(faults.blocked)
        made = await run(running, prompts=["a pear", "a plum"])
        vote = "INSERT INTO trial_votes (trial_id, voter, prompt, first, second, choice, created_at_ms) VALUES "
        await running.change(
            f"{vote} ('{made['id']}', '1', 1, 0, 1, 'first', 0)",
            f"{vote} ('{made['id']}', '1', 2, 0, 1, 'tie', 0)",
            f"{vote} ('{made['id']}', '2', 1, 0, 1, 'both_bad', 0)",
        )
        found = await retrieve(running, made["id"])
        votes = {"wins": 1, "losses": 0, "ties": 1, "both_bad": 1}
        assert (found["votes"], found["voters"], found["pairs"]) == (3, 2, [{"models": MODELS, **votes}])
        lab, annex = found["results"]
        assert (lab["completed"], lab["failed"], annex["completed"], annex["failed"]) == (2, 0, 1, 1)
        assert (lab["cost"], lab["cost_per_output"], annex["cost_per_output"]) == map_usd("0.08", "0.04", "0.04")
        assert (lab["win_rate"], lab["wins_per_dollar"]) == (0.75, 18.75)
        assert lab["win_rate_low"] < 0.5 < lab["win_rate"] < lab["win_rate_high"]
        assert annex["win_rate"] == 0.25
        with pytest.raises(NotFound):
            await retrieve(running, made["id"], await running.create_caller_in_new_org())


def map_usd(*texts: str) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, texts))


def test_failures_raise_what_an_output_costs() -> None:
    def row(number: int, status: str, cost: int, duration_ms: int | None) -> TrialRow:
        return TrialRow(
            number=number, status=status, cost=cost, request_id=None, duration_ms=duration_ms, expires_at_ms=None
        )

    rows = [row(1, "completed", 40, 1000), row(2, "completed", 10, 4000), row(3, "failed", 2, 9000)]
    rows += [row(4, "completed", 10, 2000), row(5, "completed", 40, 3000), row(6, "pending", 0, None)]
    first, second = sums_of(rows, 2)
    assert (first.completed, first.failed, first.cost_per_output, first.seconds) == (2, 1, Nanos(41), 2.0)
    assert (second.completed, second.failed, second.cost_per_output, second.seconds) == (2, 0, Nanos(10), 3.0)
    assert sums_of([], 1)[0].cost_per_output is None
