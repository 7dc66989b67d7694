"""Running one row: what an earlier run of it began is found by its key, not made again."""

import msgspec
import pytest

from penstock.batches.records import PendingRow
from penstock.batches.row_runs import PauseBatch, RowEnd, run_row
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway
from tests.unit.batches.batch_calls import CHAT, IMAGE, batch, create, image_rows

ENDPOINTS = {"image": "/compat/v1/images/generations", "chat": "/compat/v1/chat/completions"}


async def run(running: RunningGateway, kind: str) -> RowEnd:
    """Run a row of a batch of which nothing has run."""
    found = await running.rows("SELECT id FROM batches")
    batch_id = found[0]["id"] if found else (await create(running, requests=image_rows(1), start=False))["id"]
    body = {"image": IMAGE, "chat": CHAT}[kind]
    encoded = msgspec.json.encode(body)
    row = PendingRow(number=1, custom_id="1", endpoint=ENDPOINTS[kind], body=encoded, hold=0)
    return await run_row(running.gateway, running.caller, await batch(running, batch_id), row, set())


@pytest.mark.parametrize("kind", ["image", "chat"])
async def test_a_row_that_is_run_twice_is_made_and_paid_once(open_gateway: OpenGateway, kind: str) -> None:
    async with open_gateway() as running:
        first = await run(running, kind)
        assert await run(running, kind) == first
        assert len(running.lab.invoice) == len(await running.records()) == 1


@pytest.mark.parametrize("kind", ["image", "chat"])
async def test_a_row_that_failed_says_why_and_costs_nothing(open_gateway: OpenGateway, kind: str) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.rejected)
        running.lab.chats.next(faults.rejected)
        end = await run(running, kind)
        assert (end.status, end.cost, end.error_message) == ("failed", 0, None)
        assert end.error_code


async def test_a_key_without_money_pauses_the_batch(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.caller = await running.create_caller(usd_per_month=0)
        with pytest.raises(PauseBatch) as caught:
            await run(running, "image")
        assert caught.value.reason == "rate_limited"
