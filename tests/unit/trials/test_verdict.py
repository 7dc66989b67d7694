"""The verdict of a trial: what it saves at the traffic of thirty days, and calls that get another model."""

from decimal import Decimal

import pytest

from penstock.accounts.aliases import read_aliases
from penstock.errors import InvalidRequest
from penstock.trials.results import ModelSums
from penstock.trials.verdict import Traffic, decide, expected_cost, preview
from penstock.values import ZERO, Nanos
from tests.gateway import OpenGateway
from tests.unit.trials.trial_calls import MODELS, record, retrieve, run


@pytest.mark.parametrize(
    ("traffic", "old", "new", "expected"),
    [
        (Traffic(10, 1000), ModelSums(completed=4, cost=400), ModelSums(completed=2, cost=100), 500),
        (Traffic(10, 1000), None, ModelSums(completed=3, cost=100), 333),
        (Traffic(10, 1000), ModelSums(completed=4, cost=0), ModelSums(completed=1, cost=7), 70),
        (Traffic(10, 1000), ModelSums(failed=4), ModelSums(completed=1, cost=200), 2000),
        (Traffic(0, 0), None, ModelSums(completed=1, cost=7), 0),
        (Traffic(10, 1000), None, ModelSums(failed=1), None),
    ],
)
def test_the_cost_follows_from_the_same_prompts_or_from_the_number_of_requests(
    traffic: Traffic, old: ModelSums | None, new: ModelSums, expected: int | None
) -> None:
    assert expected_cost(traffic, old, new) == (None if expected is None else Nanos(expected))
    assert ZERO == 0


async def test_a_verdict_routes_calls_and_says_what_they_would_have_cost(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        for _ in range(3):
            await running.image(model="lab/image-1")
        await running.image(caller=await running.create_caller_in_new_org(), model="lab/image-1")
        running.clock.advance(60)
        made = await run(running, prompts=["a pear", "a plum"])
        trial = await record(running, made["id"])
        seen = await preview(running.gateway, trial, MODELS[1], MODELS[0])
        assert (seen["replaces"], seen["requests"], seen["spent"]) == (MODELS[0], 3, Decimal("0.12"))
        assert (seen["expected"], seen["saves"]) == (Decimal("0.12"), 0)
        assert await read_aliases(running.gateway.store, trial.org_id) == {}
        decided = await decide(running.gateway, trial, MODELS[1], MODELS[0])
        assert decided == seen
        assert (await retrieve(running, trial.id))["verdict"]["model"] == MODELS[1]
        assert (await running.create_caller()).model_aliases == {MODELS[0]: MODELS[1]}
        actions = [row["action"] for row in await running.rows("SELECT action FROM audit_events ORDER BY id")]
        assert "trial.decided" in actions
        assert "alias.set" in actions
        again = await preview(running.gateway, trial, MODELS[0], "hero")
        assert (again["replaces"], again["requests"], again["saves"]) == (None, 0, 0)


async def test_traffic_is_that_of_thirty_days_and_not_the_trial_itself(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        await running.image(model="lab/image-1")
        running.clock.advance(31 * 86_400)
        made = await run(running, prompts=["a pear"])
        seen = await preview(running.gateway, await record(running, made["id"]), MODELS[1], MODELS[0])
        assert (seen["requests"], seen["spent"]) == (0, 0)


async def test_a_verdict_must_name_a_model_of_the_trial_and_a_name(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        made = await run(running, prompts=["a pear"])
        trial = await record(running, made["id"])
        for model, alias, param in (("image-1", "hero", "model"), (MODELS[0], "a b", "alias")):
            with pytest.raises(InvalidRequest) as refused:
                await decide(running.gateway, trial, model, alias)
            assert refused.value.param == param
        assert (await retrieve(running, trial.id))["verdict"] is None
