"""The results of a batch: in the order of its file, with the responses that single calls get."""

import json
from typing import Any

from penstock.batches.results import results_jsonl
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway
from tests.unit.batches.batch_calls import CHAT, batch, change, create, image_rows, wait_for


async def results(running: RunningGateway, batch_id: str) -> list[Any]:
    found = await batch(running, batch_id)
    pieces = [piece async for piece in results_jsonl(running.gateway, found, "http://gateway.test")]
    return [json.loads(line) for line in b"".join(pieces).splitlines()]


async def test_results_are_in_the_order_of_the_file(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.blocked)
        video = {"custom_id": "v", "url": "/v1/videos", "body": {"model": "video-1", "prompt": "a train", "seconds": 4}}
        inline = {**image_rows(1)[0], "response_format": "b64_json"}
        rows = [*image_rows(2), inline, {"custom_id": "c", "url": "/v1/chat/completions", "body": CHAT}, video]
        made = await create(running, requests=rows, concurrency=1)
        await wait_for(running, made["id"])
        failed, image, in_base64, chat, made_video = await results(running, made["id"])
        assert (failed["custom_id"], failed["response"]) == ("1", None)
        assert failed["error"]["code"] == "CONTENT_POLICY_VIOLATION"
        assert failed["error"]["message"]
        assert image["response"]["body"]["data"][0]["url"].startswith("http://gateway.test/m/")
        assert (image["error"], image["cost"]) == (None, 0.04)
        assert in_base64["response"]["body"]["data"][0]["b64_json"]
        assert chat["custom_id"] == "c"
        assert chat["response"]["body"]["object"] == "chat.completion"
        assert made_video["response"]["body"]["output"]["url"]


async def test_rows_that_a_cancel_kept_from_beginning_say_so(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await create(running, requests=image_rows(2), start=False)
        assert await results(running, made["id"]) == []
        await change(running, "cancel", made["id"])
        await wait_for(running, made["id"])
        assert [row["error"]["code"] for row in await results(running, made["id"])] == ["CANCELLED"] * 2


async def test_a_purge_of_a_request_removes_its_words_from_the_batch(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        chat = {**CHAT, "messages": [{"role": "user", "content": "zanzibar"}]}
        rows = [{"url": "/v1/chat/completions", "body": chat}, {**image_rows(1)[0], "prompt": "zanzibar"}]
        made = await create(running, requests=rows)
        await wait_for(running, made["id"])
        assert await running.tables_with("zanzibar") == ["generations", "payloads"]
        for row in await running.rows("SELECT request_id FROM batch_rows"):
            await running.purge(row["request_id"])
        assert await running.tables_with("zanzibar") == []
        assert [row["error"]["code"] for row in await results(running, made["id"])] == ["NOT_FOUND"] * 2
