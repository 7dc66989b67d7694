"""One webhook message tells of the end of a batch."""

import json

from tests.gateway import OpenGateway
from tests.unit.batches.batch_calls import change, create, image_rows, wait_for


async def test_the_end_of_a_batch_is_told_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        url = "https://hooks.example.com/batches"
        made = await create(running, requests=image_rows(2), webhook_url=url)
        await wait_for(running, made["id"])
        cancelled = await create(running, requests=image_rows(1), webhook_url=url, start=False)
        await change(running, "cancel", cancelled["id"])
        await wait_for(running, cancelled["id"])
        found = await running.rows("SELECT event, body, url FROM messages ORDER BY id")
        assert [row["event"] for row in found] == ["batch.completed", "batch.cancelled"]
        data = json.loads(bytes(found[0]["body"]))["data"]
        assert (data["id"], data["counts"]["completed"], data["cost"]) == (made["id"], 2, 0.08)
