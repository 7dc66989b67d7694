"""Batches at a provider: OpenAI's own client against the fake one, then what the gateway reads of them."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.upstream.vendor_batches import VendorBatch, VendorBatches, input_line, is_refusal
from tests.fake_providers import faults
from tests.fake_providers.openai_batches import OpenAIBatches
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.batches.vendor_calls import MODEL, opened

SENT = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "one two"}]}


@pytest.fixture
def provider() -> OpenAIBatches:
    return OpenAIBatches()


@asynccontextmanager
async def api_of(open_gateway: OpenGateway, provider: OpenAIBatches) -> AsyncIterator[tuple[VendorBatches, Candidate]]:
    async with opened(open_gateway, provider) as running:
        candidate = running.gateway.routing.route(MODEL, ("chat",), running.caller.org_id).first.batched
        assert candidate is not None
        yield VendorBatches(running.gateway.upstream, candidate), candidate


@pytest.fixture
def client(provider: OpenAIBatches) -> Iterator[openai.OpenAI]:
    with (
        serve_in_thread(provider),
        openai.OpenAI(api_key=KEY, base_url=f"{provider.url}/v1", max_retries=0) as client,
    ):
        yield client


def test_client_makes_a_batch(client: openai.OpenAI) -> None:
    line = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": SENT}
    file = client.files.create(file=("batch.jsonl", json.dumps(line).encode()), purpose="batch")
    endpoint: Any = "/v1/chat/completions"
    made = client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")
    states = [client.batches.retrieve(made.id).status for _ in range(4)]
    assert states == ["validating", "in_progress", "finalizing", "completed"]
    output = client.batches.retrieve(made.id).output_file_id
    answer = json.loads(client.files.content(output or "").text)
    assert answer["response"]["body"]["choices"][0]["message"]["content"] == "one two"
    assert [batch.id for batch in client.batches.list()] == [made.id]


def test_client_is_refused_what_openai_refuses(client: openai.OpenAI) -> None:
    endpoint: Any = "/v1/chat/completions"
    with pytest.raises(openai.BadRequestError):
        client.batches.create(input_file_id="file-none", endpoint=endpoint, completion_window="24h")
    with pytest.raises(openai.BadRequestError):
        client.files.create(file=("a.jsonl", b"{}"), purpose="vision")


@sqlite_only
async def test_a_batch_is_sent_found_and_read(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    provider.usual = ("completed",)
    provider.faulty["bad"] = (400, {"error": {"message": "No such thing."}})
    async with api_of(open_gateway, provider) as (api, candidate):
        batches = candidate.model.op.batches
        assert batches is not None
        bad = {**SENT, "messages": [{"role": "user", "content": "bad"}]}
        file = input_line(batches, "1", SENT) + input_line(batches, "2", bad)
        made = await api.create(await api.upload(file), "vbt_1")
        found = await api.find("vbt_1")
        assert found is not None
        assert (found.id, await api.find("vbt_2")) == (made.id, None)
        ended = await api.get(made.id)
        assert ended.has_ended
        answers = await api.answers(ended)
        first = answers["1"]
        assert isinstance(first, bytes)
        assert json.loads(first)["choices"][0]["message"]["content"] == "one two"
        second = answers["2"]
        assert isinstance(second, Failure)
        assert (second.status, second.message) == (400, "No such thing.")


@sqlite_only
async def test_a_list_of_several_pages_is_read_to_its_end(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    pages = [
        {"data": [{"id": "batch_9", "status": "completed"}], "has_more": True},
        {"data": [{"id": "batch_1", "status": "failed", "metadata": {"penstock_id": "vbt_1"}}], "has_more": False},
    ]
    provider.next("list_batches", *map(responds, pages))
    async with api_of(open_gateway, provider) as (api, _):
        found = await api.find("vbt_1")
        assert found is not None
        assert found.id == "batch_1"
        assert [request.path.partition("?")[2] for request in provider.received("list_batches")] == [
            "limit=100",
            "limit=100&after=batch_9",
        ]


@sqlite_only
async def test_only_a_clear_no_is_a_refusal(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    error = {"error": {"message": "No."}}
    acts = {403: True, 400: True, 429: False, 409: False, 500: False}
    provider.next("create_batch", *(responds(error, status) for status in acts), faults.dropped)
    async with api_of(open_gateway, provider) as (api, _):
        for is_clear in (*acts.values(), False):
            with pytest.raises(AttemptFailed) as caught:
                await api.create("file-1", "vbt_1")
            assert is_refusal(caught.value.failure) is is_clear


@sqlite_only
async def test_answers_that_cannot_be_read_are_no_answers(open_gateway: OpenGateway, provider: OpenAIBatches) -> None:
    provider.outputs["file-out"] = b"this is not JSON\n"
    async with api_of(open_gateway, provider) as (api, _):
        with pytest.raises(AttemptFailed):
            await api.answers(VendorBatch("batch_1", "completed", output_file_id="file-out"))
