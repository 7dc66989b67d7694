"""OpenAI's files and batches with OpenAI's own client: uploaded, run, read, cancelled, deleted."""

import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.api.http_calls import ServedApi, checked_json, served_api
from tests.fake_providers import faults
from tests.gateway import OpenGateway
from tests.unit.batches.batch_calls import CHAT, IMAGE, wait_for


def client_of(api: ServedApi) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=api.running.key, base_url=api.base_url, max_retries=0)


def jsonl(path: str, *bodies: dict[str, Any]) -> bytes:
    lines = [
        {"custom_id": f"row-{number}", "method": "POST", "url": path, "body": body}
        for number, body in enumerate(bodies, 1)
    ]
    return b"\n".join(json.dumps(line).encode() for line in lines)


@pytest.mark.parametrize(("path", "body"), [("/v1/chat/completions", CHAT), ("/v1/images/generations", IMAGE)])
async def test_a_file_becomes_a_batch_and_its_results_are_files(
    open_gateway: OpenGateway, path: Any, body: dict[str, Any]
) -> None:
    async with served_api(open_gateway) as api, client_of(api) as ours:
        endpoint = api.running.lab.chats if "chat" in path else api.running.lab.images
        endpoint.next(faults.rejected)
        data = jsonl(path, body, body, body)
        file = await ours.files.create(file=("rows.jsonl", data), purpose="batch")
        assert (file.purpose, file.bytes, file.filename) == ("batch", len(data), "rows.jsonl")
        assert (await ours.files.content(file.id)).content == data
        made = await ours.batches.create(
            input_file_id=file.id,
            endpoint=path,
            completion_window="24h",
            metadata={"job": "fruit"},
            extra_body={"max_cost": 1},
        )
        assert (made.status, made.endpoint, made.input_file_id) == ("in_progress", path, file.id)
        await wait_for(api.running, made.id)
        ended = await ours.batches.retrieve(made.id)
        assert (ended.status, ended.metadata) == ("completed", {"job": "fruit"})
        assert ended.request_counts
        assert ended.request_counts.to_dict() == {"total": 3, "completed": 2, "failed": 1}
        assert ended.output_file_id
        assert ended.error_file_id
        lines = (await ours.files.content(ended.output_file_id)).text.splitlines()
        results = [json.loads(line) for line in lines]
        assert [row["response"]["status_code"] for row in results] == [200, 200]
        assert all(row["response"]["body"] for row in results)
        (failed,) = map(json.loads, (await ours.files.content(ended.error_file_id)).text.splitlines())
        assert failed["error"]["code"]
        assert {row["custom_id"] for row in [*results, failed]} == {"row-1", "row-2", "row-3"}


async def test_files_and_batches_are_listed_retrieved_and_deleted(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, client_of(api) as ours:
        ids = []
        for _ in range(3):  # ids of one millisecond have no order
            api.running.clock.advance(1)
            file = await ours.files.create(file=("a.jsonl", jsonl("/v1/videos", {})), purpose="batch")
            ids.append(file.id)
        assert [file.id async for file in await ours.files.list(limit=2)] == ids[::-1]
        assert [file.id async for file in await ours.files.list(limit=2, order="asc")] == ids
        checked_json("FileList", await api.call("GET", "/compat/v1/files"))
        assert (await ours.files.retrieve(ids[0])).id == ids[0]
        assert (await ours.files.delete(ids[0])).deleted
        for call in (ours.files.retrieve, ours.files.content, ours.files.delete):
            with pytest.raises(openai.NotFoundError):
                await call(ids[0])
        good = await ours.files.create(file=("b.jsonl", jsonl("/v1/images/generations", IMAGE)), purpose="batch")
        window: Any = {"endpoint": "/v1/images/generations", "completion_window": "24h"}
        batches = []
        for _ in range(3):
            api.running.clock.advance(1)
            batches.append(await ours.batches.create(input_file_id=good.id, **window))
            await wait_for(api.running, batches[-1].id)
        found = [batch.id async for batch in await ours.batches.list(limit=2)]
        assert found == [batch.id for batch in batches][::-1]
        listed = checked_json("OpenAiBatchList", await api.call("GET", "/compat/v1/batches?limit=1"))
        assert listed["has_more"]
        assert (await ours.batches.cancel(batches[0].id)).status == "completed"
        output = f"file-output-{batches[0].id.partition('_')[2]}"
        assert (await ours.files.retrieve(output)).purpose == "batch_output"
        other = await api.running.create_caller_in_new_org()
        theirs = await api.running.gateway.keys.create_key(other.org_id)
        for path in (f"files/{good.id}", f"files/{output}/content", f"batches/{batches[0].id}"):
            refused = await api.call("GET", f"/compat/v1/{path}", key=theirs.key)
            assert refused.status == 404, path


async def test_a_file_with_a_faulty_line_makes_no_batch(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, client_of(api) as ours:
        bad = jsonl("/v1/images/generations", IMAGE, {**IMAGE, "n": 99})
        file = await ours.files.create(file=("rows.jsonl", bad), purpose="batch")
        with pytest.raises(openai.BadRequestError, match="Row 2, column `n`"):
            await ours.batches.create(input_file_id=file.id, endpoint="/v1/images/generations", completion_window="24h")
        assert [batch async for batch in await ours.batches.list()] == []


async def test_a_batch_that_is_asked_for_again_with_its_key_is_the_first_one(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, works=False) as api, client_of(api) as ours:
        file = await ours.files.create(file=("rows.jsonl", jsonl("/v1/images/generations", IMAGE)), purpose="batch")

        async def create(**more: Any) -> str:
            named: dict[str, Any] = {"endpoint": "/v1/images/generations", "completion_window": "24h", **more}
            headers = {"idempotency-key": "k"}
            made: str = (await ours.batches.create(input_file_id=file.id, extra_headers=headers, **named)).id
            return made

        assert await create() == await create()
        with pytest.raises(openai.UnprocessableEntityError):
            await create(metadata={"job": "other"})


async def test_other_purposes_and_endpoints_are_refused_by_name(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, client_of(api) as ours:
        with pytest.raises(openai.BadRequestError) as caught:
            await ours.files.create(file=("a.jsonl", b"{}"), purpose="fine-tune")
        assert caught.value.param == "purpose"
        file = await ours.files.create(file=("a.jsonl", b"{}"), purpose="batch")
        with pytest.raises(openai.BadRequestError) as caught:
            await ours.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
        assert caught.value.param == "endpoint"
