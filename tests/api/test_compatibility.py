"""OpenAI's client for Python against the gateway: calls that succeed, and how often it repeats those that fail."""

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest
from openai import AsyncOpenAI
from openai.types import ImagesResponse
from openai.types.chat import ChatCompletionMessageParam

from tests.api.http_calls import ServedApi, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import mask, mp4, png
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only


@asynccontextmanager
async def client(open_gateway: OpenGateway, **response: object) -> AsyncIterator[tuple[AsyncOpenAI, ServedApi]]:
    async with (
        served_api(open_gateway, **response) as api,
        AsyncOpenAI(api_key=api.running.key, base_url=api.base_url) as opened,
    ):
        yield opened, api


async def test_images(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, _):
        made = await ours.images.generate(model="image-1", prompt="a pear", n=2, response_format="b64_json")
        assert made.data is not None
        assert base64.b64decode(made.data[1].b64_json or "").startswith(b"\x89PNG")
        address = await ours.images.generate(
            model="image-1", prompt="a pear", size="auto", quality="high", output_format="webp", output_compression=80,
            background="opaque", moderation="low",
        )  # fmt: skip
        assert address.data is not None
        assert (address.data[0].url or "").startswith("http")
        assert (address.size, address.output_format) == ("1024x1024", "webp")


async def test_edits(open_gateway: OpenGateway) -> None:
    """One image, several, one with a mask, and one that keeps its size; as paths, bytes and named files."""
    data, named = png(64, 48), ("pear.png", png(64, 48), "image/png")
    async with client(open_gateway) as (ours, api):
        for fields_sent in (
            {"image": data},
            {"image": [data, named, data]},
            {"image": named, "mask": ("mask.png", mask(64, 48), "image/png")},
            {"image": io.BytesIO(data), "size": "auto", "n": 2, "output_format": "jpeg"},
        ):
            edited: ImagesResponse = await ours.images.edit(model="edit-1", prompt="a hat", **fields_sent)
            assert edited.data is not None
            assert all((image.url or "").startswith("http") for image in edited.data)
            assert len(edited.data) == fields_sent.get("n", 1)
            assert edited.size == ("64x48" if "size" in fields_sent else "1024x1024")
        received_fields = [received.fields for received in api.running.lab.edits.received]
        assert [len(fields["image"]) for fields in received_fields] == [1, 3, 1, 1]
        assert [fields.get("mask") is not None for fields in received_fields] == [False, False, True, False]
        assert received_fields[1]["image"] == [data] * 3


@pytest.mark.filterwarnings("ignore:The Sora API")
async def test_videos(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, api):
        started = await ours.videos.create(model="video-1", prompt="a train", seconds="4")
        assert started.status == "queued"
        polling = asyncio.create_task(ours.videos.poll(started.id))
        await api.running.wait_for_request(started.id)
        assert (await polling).status == "completed"
        content = await ours.videos.download_content(started.id)
        assert len(content.content) == len(mp4())
        assert [video.id async for video in ours.videos.list()] == [started.id]


async def test_chat(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, _):
        messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]
        whole = await ours.chat.completions.create(model="lab/chat", messages=messages)
        assert whole.choices[0].message.content
        stream = await ours.chat.completions.create(model="lab/chat", messages=messages, stream=True)
        words = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        assert "".join(words)


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        ({"model": "nothing"}, openai.NotFoundError, "MODEL_NOT_FOUND"),
        ({"n": 11}, openai.BadRequestError, "INVALID_REQUEST"),
    ],
)
async def test_refusals_are_raised_and_not_repeated_by_the_client(
    open_gateway: OpenGateway, change: dict[str, object], kind: type[openai.APIStatusError], code: str
) -> None:
    async with client(open_gateway) as (ours, api):
        with pytest.raises(kind) as problem:
            await ours.images.generate(**{"model": "image-1", "prompt": "x", **change})
        assert problem.value.code == code
        assert (problem.value.request_id or "").startswith("req_")
        assert len(await api.running.records()) == 1


async def test_a_call_with_a_bad_key_is_not_repeated(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, AsyncOpenAI(api_key="sk-wrong", base_url=api.base_url) as ours:
        with pytest.raises(openai.AuthenticationError):
            await ours.images.generate(model="image-1", prompt="x")


async def test_a_call_that_may_have_been_sent_is_not_repeated(open_gateway: OpenGateway) -> None:
    async with client(open_gateway, audited=False) as (ours, api):
        api.running.lab.images.always(faults.dropped)
        with pytest.raises(openai.APIStatusError):
            await ours.images.generate(model="image-1", prompt="x", size="1024x1024")
        assert len(api.running.lab.images) == 1
        assert len(await api.running.records()) == 1


async def test_the_client_waits_for_a_rate_limit(open_gateway: OpenGateway) -> None:
    """A 429 with x-should-retry and retry-after makes the client wait and repeat the call."""
    async with served_api(open_gateway) as api:
        made = await api.running.gateway.keys.create_key(api.running.caller.org_id, requests_per_minute=1)
        async with AsyncOpenAI(api_key=made.key, base_url=api.base_url, max_retries=0) as ours:
            await ours.images.generate(model="image-1", prompt="x", response_format="b64_json")
            with pytest.raises(openai.RateLimitError) as problem:
                await ours.images.generate(model="image-1", prompt="x")
        headers = problem.value.response.headers
        assert headers["x-should-retry"] == "true"
        assert 1 <= int(headers["retry-after"]) <= 120
