"""Creating batches: refused whole or without the faulty rows, as the caller chose, before anything is spent."""

from typing import Any

import pytest

from penstock.batches import intake
from penstock.batches.intake import RowsRefused
from penstock.errors import InvalidRequest
from tests.gateway import OpenGateway
from tests.unit.batches.batch_calls import IMAGE, batch, change, create, create_from_file, image_rows, wait_for

BAD = {**IMAGE, "n": 99}


async def test_a_faulty_batch_is_refused_whole_and_leaves_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(RowsRefused) as caught:
            await create(running, requests=[*image_rows(600), BAD, {"prompt": "no model"}])
        assert caught.value.message.startswith("Row 601, column `n`: ")
        assert [(row["row"], row["column"]) for row in caught.value.faults] == [(601, "n"), (602, "model")]
        assert caught.value.body()["error"]["rows"] == caught.value.faults
        assert not await running.rows("SELECT id FROM batches")
        assert not await running.rows("SELECT number FROM batch_rows")
        assert not running.lab.invoice


async def test_a_half_bad_batch_runs_without_the_bad_rows_if_the_caller_says_so(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await create(running, requests=[BAD, *image_rows(2)], skip_invalid=True)
        assert (made["counts"]["total"], made["counts"]["skipped"]) == (2, 1)
        ended = await wait_for(running, made["id"])
        assert ended.rows_completed == 2
        with pytest.raises(RowsRefused):
            await create(running, requests=[BAD], skip_invalid=True)


async def test_a_dry_run_says_the_sum_and_stores_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        found = await create(running, {"dryRun": "true"}, requests=[*image_rows(3), BAD], skip_invalid=True)
        assert (found["rows"], found["skipped"], float(found["estimated_cost"])) == (3, 1, 0.12)
        assert found["models"][0]["model"] == "image-1"
        assert found["faults"][0]["row"] == 4
        assert not await running.rows("SELECT id FROM batches")


async def test_a_table_becomes_a_batch(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await create_from_file(
            running,
            b"custom_id,prompt,n\nfirst,a pear,1\nsecond,two plums,2\n",
            "prompts.csv",
            endpoint="/v1/images/generations",
            defaults='{"model": "image-1", "size": "64x64"}',
            max_cost="1.5",
            name="fruit",
        )
        assert (made["name"], float(made["max_cost"]), float(made["estimated_cost"])) == ("fruit", 1.5, 0.12)
        assert (await wait_for(running, made["id"])).rows_completed == 2


@pytest.mark.parametrize(
    ("custom_ids", "faulty"),
    [
        (["a", "a"], 2),
        ([None, "1"], 2),  # the first row is known by its number
        (["2", None], 2),
        (["2", "1"], None),
        (["01", None, "3"], None),
    ],
)
async def test_two_rows_cannot_have_one_custom_id(
    open_gateway: OpenGateway, custom_ids: list[str | None], faulty: int | None
) -> None:
    async with open_gateway(works=False) as running:
        rows = [{"custom_id": custom_id, "body": IMAGE} for custom_id in custom_ids]
        if faulty is None:
            assert (await create(running, requests=rows))["counts"]["total"] == len(rows)
            return
        with pytest.raises(RowsRefused, match=f"Row {faulty}, column `custom_id`"):
            await create(running, requests=rows)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "file"),
        ({"requests": []}, "requests"),
        ({"requests": ["a pear"]}, "requests"),
        ({"requests": [IMAGE], "endpoint": "/v1/files"}, "endpoint"),
        ({"requests": [IMAGE], "concurrency": 0}, "concurrency"),
        ({"requests": [IMAGE], "max_cost": -1}, "max_cost"),
        ({"requests": [IMAGE], "budget": 1}, "budget"),
        ({"requests": [IMAGE], "webhook_url": "http://plain.test"}, "webhook_url"),
        ({"requests": image_rows(3)}, "requests"),
    ],
)
async def test_options_are_checked_by_name(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], param: str
) -> None:
    monkeypatch.setattr(intake, "ROWS_MAX", 2)
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest) as caught:
            await create(running, **body)
        assert caught.value.param == param


async def test_a_gateway_that_stores_no_payloads_takes_no_batches(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, payloads="none") as running:
        with pytest.raises(InvalidRequest, match="stores no payloads"):
            await create(running, requests=[IMAGE])


async def test_what_a_lost_process_was_checking_is_deleted(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await create(running, requests=image_rows(2), start=False)
        await running.change("UPDATE batches SET status = 'validating', lease_until_ms = 1")

        async def is_gone() -> bool:
            return not await running.rows("SELECT id FROM batches")

        await running.wait_until(is_gone)
        assert not await running.rows("SELECT number FROM batch_rows")
        with pytest.raises(InvalidRequest):
            await change(running, "resume", made["id"])


async def test_a_batch_waits_until_it_is_started(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        made = await create(running, requests=[IMAGE], start=False)
        assert ((await batch(running, made["id"])).status, made["reason"]) == ("paused", "not_started")


async def test_a_batch_is_deleted_when_its_texts_are_and_its_requests_stay(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await create(running, requests=[IMAGE])
        waiting = await create(running, requests=[IMAGE], start=False)
        await wait_for(running, made["id"])
        await intake.delete_old(running.gateway)
        assert len(await running.rows("SELECT id FROM batches")) == 2
        running.clock.advance(31 * 86_400)
        await intake.delete_old(running.gateway)
        assert [row["id"] for row in await running.rows("SELECT id FROM batches")] == [waiting["id"]]
        assert len(await running.rows("SELECT number FROM batch_rows")) == 1
        assert len(await running.records()) == 1
