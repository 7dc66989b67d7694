"""OpenAI: its own client against the fake provider, then the gateway."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from PIL import Image, ImageColor

from penstock.api.asgi import AsgiApp
from penstock.generations.endpoints import make_images
from tests.api.http_calls import ServedApi
from tests.api.raw_http import serving
from tests.fake_providers.openai import COLOURS, OpenAI, refusal
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeCall, event_bytes, responds, serve_in_thread
from tests.gateway import OpenGateway, RunningGateway
from tests.providers.calls import IMAGE_URI, create_chat, create_image, edit_image, gateway_for, gateways_for

BLOCKED = refusal(
    "Your request was rejected by the safety system.", "moderation_blocked", kind="image_generation_user_error"
)

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def provider() -> Iterator[OpenAI]:
    with serve_in_thread(OpenAI()) as provider:
        yield provider


@pytest.fixture
def client(provider: OpenAI) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=KEY, base_url=f"{provider.url}/v1", max_retries=0) as client:
        yield client


def test_client_paints(provider: OpenAI, client: openai.OpenAI) -> None:
    made = client.images.generate(model="gpt-image-2", prompt="a fox", n=2, size="128x64", quality="low")
    assert made.data
    with Image.open(io.BytesIO(base64.b64decode(made.data[1].b64_json or ""))) as image:
        assert image.size == (128, 64)
    assert made.usage
    assert (made.usage.output_tokens, made.usage.input_tokens_details.text_tokens) == (392, 10)


def test_client_edits(provider: OpenAI, client: openai.OpenAI) -> None:
    files = [("a.png", png(64, 48), "image/png"), ("b.png", png(64, 48), "image/png")]
    made = client.images.edit(model="gpt-image-2", prompt="a hat", image=files, mask=files[0], size="64x64")
    assert made.data
    assert provider.received("edit")[0].fields["image"] == [png(64, 48)] * 2


def test_client_gets_an_error_for_unknown_fields(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="Unknown parameter: 'response_format'"):
        client.images.generate(model="gpt-image-2", prompt="a fox", response_format="url")


def test_client_completes_a_chat(client: openai.OpenAI) -> None:
    details = client.chat.completions.create(
        model="gpt-5.4", messages=[{"role": "user", "content": "Say hello."}], max_completion_tokens=9
    )
    assert details.choices[0].message.content == "Say hello."
    with pytest.raises(openai.BadRequestError, match="max_completion_tokens"):
        client.chat.completions.create(model="gpt-5.4", messages=[{"role": "user", "content": "Hi."}], max_tokens=9)


# ---------------------------------------------------------------------------------------------------------- the gateway


async def test_images(open_gateway: OpenGateway) -> None:
    provider = OpenAI()
    async with gateway_for(open_gateway, "openai", provider, "/v1") as running:
        record = await create_image(
            running, model="gpt-image-2", n=2, size="1024x1024", quality="standard", style="natural", user="u-17",
            response_format="b64_json", output_format="webp",
        )  # fmt: skip
        assert record["status"] == "completed"
        # Two images of 1756 tokens at 30, and 10 tokens of words at 5 dollars a million.
        assert str(record["cost"]) == "0.10541"
    assert provider.received("generate")[0].fields == {
        "model": "gpt-image-2", "prompt": "a pear", "n": 2, "size": "1024x1024", "quality": "medium",
        "safety_identifier": "u-17",
    }  # fmt: skip


async def test_edits(open_gateway: OpenGateway) -> None:
    provider = OpenAI()
    async with gateway_for(open_gateway, "openai", provider, "/v1") as running:
        record = await edit_image(
            running, model="gpt-image-1.5", image=[IMAGE_URI, IMAGE_URI], size="1792x1024", quality="auto"
        )
        # 1756 tokens at 32, two images of 300 tokens at 8, and 10 tokens of words at 5 dollars a million.
        assert (record["status"], str(record["cost"])) == ("completed", "0.061042")
    received = provider.received("edit")[0].fields
    assert len(received.pop("image")) == 2
    assert received == {"model": "gpt-image-1.5", "prompt": "add a hat", "n": "1", "size": "1536x1024"}


async def test_a_refusal_is_final_and_costs_nothing(open_gateway: OpenGateway) -> None:
    provider = OpenAI()
    provider.next("generate", responds(BLOCKED.json, BLOCKED.status))
    async with gateway_for(open_gateway, "openai", provider, "/v1") as running:
        record = await create_image(running, model="gpt-image-2")
        assert (record["status"], record["error_code"]) == ("upstream_failure", "CONTENT_POLICY_VIOLATION")
        assert await running.money() == (10_000_000_000, 0)


async def test_unfinished_images_are_streamed_and_their_tokens_charged(open_gateway: OpenGateway) -> None:
    provider = OpenAI()
    async with gateway_for(open_gateway, "openai", provider, "/v1") as running, open_client(running) as client:
        asked: Any = {"model": "gpt-image-1.5", "prompt": "a fox", "quality": "low", "stream": True}
        events = [event async for event in await client.images.generate(**asked, partial_images=2)]
        kinds = ["partial_image", "partial_image", "completed"]
        assert [event.type for event in events] == [f"image_generation.{kind}" for kind in kinds]
        partial: Any = events[0]
        assert (partial.partial_image_index, partial.size, partial.output_format) == (0, "1024x1024", "png")
        assert [colour(event) for event in events] == [*map(ImageColor.getrgb, COLOURS[:2]), (0, 128, 128)]
        file = ("in.png", png(64, 64), "image/png")
        edited = await client.images.edit(**asked, image=file, partial_images=1)
        assert [event.type async for event in edited] == ["image_edit.partial_image", "image_edit.completed"]
        plain = [event async for event in await client.images.generate(**asked)]
        several = [event async for event in await client.images.generate(**asked, n=2, partial_images=3)]
        assert [event.type for event in (*plain, *several)] == ["image_generation.completed"] * 3
        costs = sorted(record["cost"] for record in await running.records())
    sent = provider.received("generate")
    assert [request.fields.get("partial_images") for request in sent] == [2, None, None]
    assert [request.fields["partial_images"] for request in provider.received("edit")] == ["1"]
    text = 10 * 5_000  # tokens of the prompt, in nano-dollars
    low = 196
    edited_cost = text + 300 * 8_000 + (low + 100) * 32_000
    assert costs == sorted([text + (low + 200) * 32_000, edited_cost, text + low * 32_000, text + 2 * low * 32_000])


async def test_the_image_tool_shows_unfinished_images(open_gateway: OpenGateway) -> None:
    fakes = {"openai": (OpenAI(), "/v1")}
    async with gateways_for(open_gateway, fakes, disabled_providers=()) as running, open_client(running) as client:
        tool: Any = {"type": "image_generation", "model": "gpt-image-1.5", "quality": "low", "partial_images": 2}
        asked: Any = {"model": "atelier/echo", "input": "image_generation", "tools": [tool], "stream": True}
        events: list[Any] = [event async for event in await client.responses.create(**asked)]
    partial = [event for event in events if event.type == "response.image_generation_call.partial_image"]
    assert [event.partial_image_index for event in partial] == [0, 1]
    assert base64.b64decode(partial[0].partial_image_b64).startswith(b"\x89PNG")
    assert [event.sequence_number for event in events] == list(range(len(events)))
    final = events[-1].response
    assert (final.status, [item.type for item in final.output]) == ("completed", ["image_generation_call", "message"])
    assert final.output[0].id == partial[0].item_id
    assert final.output[0].result


async def test_money_is_held_for_unfinished_images(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "openai", OpenAI(), "/v1") as running:
        totals = []
        for partial in (0, 3):
            body = {"model": "gpt-image-1.5", "prompt": "x", "stream": True, "partial_images": partial}
            call = running.call(body, query={"dryRun": "true"}, endpoint="/compat/v1/images/generations")
            totals.append((await make_images(running.gateway, call)).json["total_cost_micros"])
        assert totals[1] - totals[0] == 300 * 32  # micro-dollars


async def test_a_caller_who_hangs_up_after_an_unfinished_image_loses_nothing(open_gateway: OpenGateway) -> None:
    provider = OpenAI()
    gate = asyncio.Event()

    async def held(call: FakeCall) -> None:
        events = call.accept().events
        await call.exchange.begin(200, "text/event-stream", {})
        await call.exchange.more(event_bytes(events[0]))
        await gate.wait()
        await call.exchange.more(event_bytes(events[-1]))
        await call.exchange.end()

    provider.next("generate", held)
    async with gateway_for(open_gateway, "openai", provider, "/v1") as running:
        body = {"model": "gpt-image-1.5", "prompt": "x", "stream": True, "partial_images": 1}
        call = running.call(body, endpoint="/compat/v1/images/generations")
        response = await make_images(running.gateway, call)
        assert response.chunks is not None
        async for chunk in response.chunks:
            if b"partial_image" in chunk:
                break
        await response.chunks.aclose()  # type: ignore[attr-defined]
        gate.set()
        record = await running.wait_for_request(call.id)
        assert (record["status"], record["cost"] > 0) == ("completed", True)


@asynccontextmanager
async def open_client(running: RunningGateway) -> AsyncIterator[openai.AsyncOpenAI]:
    """OpenAI's client of a running gateway."""
    async with serving(AsgiApp(running.gateway), running.gateway.settings) as served:
        url = ServedApi(running, served).base_url
        async with openai.AsyncOpenAI(api_key=running.key, base_url=url, max_retries=0) as client:
            yield client


def colour(event: Any) -> tuple[int, int, int]:
    with Image.open(io.BytesIO(base64.b64decode(event.b64_json))) as image:
        found: Any = image.convert("RGB").getpixel((0, 0))
        return (found[0], found[1], found[2])


async def test_chats(open_gateway: OpenGateway) -> None:
    provider = OpenAI()
    async with gateway_for(open_gateway, "openai", provider, "/v1") as running:
        text, record = await create_chat(running, model="openai/gpt-5.4", max_tokens=64)
        assert json.loads(text)["choices"][0]["message"]["content"] == "Name a colour."
        assert (record["status"], str(record["cost"])) == ("completed", "0.0000525")  # 3 at 2.5 and 3 at 15 a million
        text, record = await create_chat(running, model="openai/gpt-5.4", stream=True)
        assert text.endswith("data: [DONE]\n\n")
        assert '"usage"' not in text
        assert str(record["cost"]) == "0.0000525"
    plain, streamed = provider.received("chat")
    assert plain.fields["max_completion_tokens"] == 64
    assert streamed.fields["stream_options"] == {"include_usage": True}
