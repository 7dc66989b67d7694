"""Making trials: the price first, one batch, paid once, and nothing left after a refusal."""

from typing import Any

import pytest

from penstock.batches.intake import RowsRefused, delete_old
from penstock.batches.records import get_batch
from penstock.errors import InvalidRequest, NotFound
from penstock.trials import intake
from penstock.values import DAY_MS, nanos
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.trials.trial_calls import MODELS, create, create_from_file, record, retrieve, run


async def test_a_trial_makes_each_prompt_with_each_model_and_costs_what_it_said(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        prompts = ["a pear", "a plum", "a fig"]
        estimate = await create(running, {"dryRun": "true"}, prompts=prompts)
        assert (estimate["prompts"], estimate["rows"], [row["model"] for row in estimate["models"]]) == (3, 6, MODELS)
        assert not await running.rows("SELECT id FROM trials")
        assert not await running.rows("SELECT id FROM batches")
        before, _ = await running.money()
        ended = await run(running, prompts=prompts, name="fruit")
        available, held = await running.money()
        assert (before - available, held) == (nanos(ended["cost"]), 0)
        assert ended["cost"] == estimate["estimated_cost"]
        assert sorted(charge.prompt for charge in running.lab.invoice) == sorted(prompts)
        assert sorted(charge.prompt for charge in running.annex.invoice) == sorted(prompts)
        assert ended["counts"] == {"total": 6, "completed": 6, "failed": 0, "pending": 0}
        kept = await running.rows("SELECT MIN(expires_at_ms - completed_at_ms) AS ms FROM generations")
        assert kept[0]["ms"] >= 13 * DAY_MS


async def test_a_repeated_call_with_its_key_makes_one_trial(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        key = {"idempotency-key": "k1"}
        with pytest.raises(RowsRefused):
            await create(running, headers=key, prompts=[{"prompt": "a pear", "size": "no"}])
        first = await create(running, headers=key, prompts=["a pear"])
        again = await create(running, headers=key, prompts=["a pear"])
        assert again["id"] == first["id"]
        assert len(await running.rows("SELECT id FROM batches")) == 1


async def test_a_call_whose_process_died_before_the_trial_was_stored_is_completed_by_its_repetition(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway(annex=True) as running:
        key = {"idempotency-key": "k1"}
        first = await create(running, headers=key, prompts=["a pear"], start=False)
        await running.change("DELETE FROM trials")
        again = await create(running, headers=key, prompts=["a pear"], start=False)
        assert again["batch_id"] == first["batch_id"]
        assert len(await running.rows("SELECT id FROM trials")) == 1


async def test_a_call_that_a_model_refuses_is_named_by_prompt_and_model_and_leaves_nothing(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway(annex=True) as running:
        with pytest.raises(RowsRefused) as refused:
            await create(running, prompts=["a pear", "a plum"], models=["lab/image-1", "lab/nothing"])
        assert refused.value.param == "models"
        assert [fault["row"] for fault in refused.value.faults] == [1, 2]
        assert "`lab/nothing`" in refused.value.message
        assert not await running.rows("SELECT id FROM trials")
        assert not await running.rows("SELECT id FROM batches")


@sqlite_only
async def test_models_and_sources_are_checked(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"models": ["lab/image-1"]}, "models"),
            ({"models": ["lab/image-1"] * 2}, "models"),
            ({"models": [f"m{number}" for number in range(7)]}, "models"),
            ({"models": ["lab/image-1", 7]}, "models"),
            ({"recent": {}}, "prompts"),
            ({"kind": "edit"}, "kind"),
        ]
        for body, param in wrong:
            usual: dict[str, Any] = {"prompts": ["a pear"], **body}
            with pytest.raises(InvalidRequest) as refused:
                await create(running, **usual)
            assert refused.value.param == param


@sqlite_only
async def test_a_file_comes_in_a_form(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        fields = [("models", model) for model in MODELS]
        made = await create_from_file(running, b"prompt,size\na pear,64x64\n", "a.csv", *fields, ("max_cost", "1"))
        assert (made["prompts"], made["models"], made["max_cost"]) == (1, MODELS, 1)


async def test_a_deleted_trial_is_gone_and_its_batch_begins_no_more_rows(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, works=False) as running:
        made = await create(running, prompts=["a pear"])
        await intake.delete_trial(running.gateway, await record(running, made["id"]))
        with pytest.raises(NotFound):
            await retrieve(running, made["id"])
        batch = await get_batch(running.gateway.store, running.caller.org_id, made["batch_id"])
        assert batch.status == "cancelling"


async def test_a_trial_is_kept_as_long_as_its_batch(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, payload_retention="7d") as running:
        await run(running, prompts=["a pear"])
        await delete_old(running.gateway)
        await intake.delete_left(running.gateway)
        assert len(await running.rows("SELECT id FROM trials")) == 1
        running.clock.advance(8 * DAY_MS / 1000)
        await delete_old(running.gateway)
        await intake.delete_left(running.gateway)
        assert not await running.rows("SELECT id FROM trials")
