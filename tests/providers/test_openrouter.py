"""OpenRouter: OpenAI's client and its own against the fake provider, then the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import openai
import pytest

from penstock.chat import endpoint
from penstock.errors import InsufficientBalance, InvalidRequest, ModelNotFound, Problem
from penstock.providers.openrouter import MAX_PRICE, media
from tests.fake_providers.google import Gemini
from tests.fake_providers.openai import OpenAI
from tests.fake_providers.openrouter import FLAGGED, REFUSED, OpenRouter, error
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import (
    IMAGE_URI,
    create_chat,
    create_image,
    create_video,
    edit_image,
    gateway_for,
    gateways_for,
)

if TYPE_CHECKING:
    import openrouter
else:
    openrouter = LateImport("openrouter")

AT = "/api/v1"

# -------------------------------------------------------------------------------------------------------------- client


@pytest.fixture
def router() -> Iterator[OpenRouter]:
    with serve_in_thread(OpenRouter()) as provider:
        yield provider


@pytest.fixture
def client(router: OpenRouter) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=KEY, base_url=router.url + AT, max_retries=0) as client:
        yield client


def test_client_completes_a_chat(client: openai.OpenAI) -> None:
    details = client.chat.completions.create(model="z-ai/glm-5.3", messages=[{"role": "user", "content": "Say hello."}])
    assert details.choices[0].message.content == "Say hello."
    assert details.usage
    assert details.usage.model_extra == {"cost": 0.00014, "is_byok": False}


def test_client_listens_past_comments(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="z-ai/glm-5.3", messages=[{"role": "user", "content": "Say hello."}], stream=True
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Say hello."


def test_client_gets_errors_in_streams(router: OpenRouter, client: openai.OpenAI) -> None:
    router.error = {"code": 502, "message": "Provider disconnected"}
    stream = client.chat.completions.create(
        model="z-ai/glm-5.3", messages=[{"role": "user", "content": "Say hello."}], stream=True
    )
    with pytest.raises(openai.APIError, match="Provider disconnected"):
        list(stream)


@pytest.fixture
def own_client(router: OpenRouter) -> Iterator[openrouter.OpenRouter]:
    with openrouter.OpenRouter(api_key=KEY, server_url=router.url + AT) as client:
        yield client


def test_own_client_creates_images(own_client: openrouter.OpenRouter) -> None:
    made = own_client.images.generate(
        model="bytedance-seed/seedream-4.5", prompt="a fox", aspect_ratio="16:9", resolution="2K"
    )
    assert isinstance(made, openrouter.components.ImageGenerationResponse)
    assert (len(made.data), made.data[0].media_type, made.usage and made.usage.cost) == (1, "image/png", 0.04)


def test_own_client_creates_videos(router: OpenRouter, own_client: openrouter.OpenRouter) -> None:
    videos = own_client.video_generation
    image: Any = {"type": "image_url", "image_url": {"url": IMAGE_URI}, "frame_type": "first_frame"}
    job = videos.generate(model="google/veo-3.1", prompt="a fox", duration=8, frame_images=[image])
    assert (job.status, job.id in router.jobs) == ("pending", True)
    assert videos.get_generation(job_id=job.id).status == "in_progress"
    done = videos.get_generation(job_id=job.id)
    assert (done.status, done.usage and done.usage.cost) == ("completed", 0.42)
    assert videos.get_video_content(job_id=job.id).read() == mp4()


def test_own_client_sees_failures(router: OpenRouter, own_client: openrouter.OpenRouter) -> None:
    router.next_states.append(("pending", REFUSED))
    job = own_client.video_generation.generate(model="google/veo-3.1", prompt="a fox")
    shown = own_client.video_generation.get_generation(job_id=job.id)
    assert (shown.status, shown.error) == ("failed", "The model's safety system objected.")
    with pytest.raises(openrouter.errors.NotFoundResponseError, match="Not found"):
        own_client.video_generation.get_generation(job_id="elsewhere")


# -------------------------------------------------------------------------------------------------------------- routing


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("z-ai/glm-5.3", "z-ai/glm-5.3"),
        ("router/z-ai/glm-5.3", "z-ai/glm-5.3"),
        ("openrouter/z-ai/glm-5.3", "z-ai/glm-5.3"),
        ("nobody/knows-this:free", "nobody/knows-this:free"),
        ("openai/gpt-5.4", "openai/gpt-5.4"),  # whose provider is not set up here
        ("anthropic/claude-haiku-4.5", "anthropic/claude-haiku-4.5"),
    ],
)
async def test_any_model_goes_to_the_router(open_gateway: OpenGateway, asked: str, sent: str) -> None:
    router = OpenRouter()
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        text, record = await create_chat(running, model=asked)
        assert json.loads(text)["model"] == sent
        assert (record["status"], str(record["cost"])) == ("completed", "0.00014"), "what it reports"
        before, held = await running.money()
        assert (before, held) == (10_000_000_000 - 140_000, 0)
    assert router.received("chat")[0].fields["model"] == sent
    assert router.received("chat")[0].fields["provider"] == {"max_price": MAX_PRICE}


async def test_same_name_goes_straight_to_a_provider_that_is_set_up(open_gateway: OpenGateway) -> None:
    """The router's spelling is the public id, so that a key more is a way less."""
    router, provider, gemini = OpenRouter(), OpenAI(), Gemini()
    near = {"openrouter": (router, AT), "openai": (provider, "/v1"), "gemini": (gemini, "/v1beta/openai")}
    async with gateways_for(open_gateway, near) as running:
        for model in ("openai/gpt-5.4", "router/openai/gpt-5.4", "google/gemini-3.8-flash", "z-ai/glm-5.3"):
            await create_chat(running, model=model)
        await create_chat(running, model="openrouter/openai/gpt-5.4")
    assert [request.fields["model"] for request in provider.received("chat")] == ["gpt-5.4"] * 2
    assert [request.fields["model"] for request in gemini.received("chat")] == ["gemini-3.8-flash"]
    assert [request.fields["model"] for request in router.received("chat")] == ["z-ai/glm-5.3", "openai/gpt-5.4"]


@pytest.mark.parametrize("model", ["openai/gpt-5.44", "router/openai/gpt-5.44"])
async def test_without_a_router_the_nearest_is_named(open_gateway: OpenGateway, model: str) -> None:
    async with gateway_for(open_gateway, "openai", OpenAI(), "/v1") as running:
        with pytest.raises(ModelNotFound, match=r"Did you mean `openai/gpt-5\.4`\?"):
            await create_chat(running, model=model)


async def test_router_does_not_know_it_either(open_gateway: OpenGateway) -> None:
    router = OpenRouter()
    router.unknown = {"nobody/knows-this"}
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        with pytest.raises(Problem, match="No endpoints found for nobody/knows-this"):
            await create_chat(running, model="nobody/knows-this")
        assert await running.money() == (10_000_000_000, 0)


async def test_only_chat_is_routed(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "openrouter", OpenRouter(), AT) as running:
        with pytest.raises(ModelNotFound):
            await create_image(running, model="nobody/paints-this")


async def test_ceiling_is_set_aside(open_gateway: OpenGateway) -> None:
    """Whatever the model costs up to what the router is told, the caller has that much."""
    async with gateway_for(open_gateway, "openrouter", OpenRouter(), AT) as running:
        poor = await running.create_caller_in_new_org("0.05")
        body = {"model": "z-ai/glm-5.3", "messages": [{"role": "user", "content": "Hi."}], "max_tokens": 10}
        with pytest.raises(InsufficientBalance, match="may cost up to"):
            await endpoint.complete_chat(running.gateway, running.call(body, caller=poor))


# ----------------------------------------------------------------------------------------------------------------- chat


async def test_streams(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "openrouter", OpenRouter(), AT) as running:
        text, record = await create_chat(running, model="z-ai/glm-5.3", stream=True)
        assert text.startswith("data: {")
        assert text.endswith("data: [DONE]\n\n")
        assert "PROCESSING" not in text
        assert str(record["cost"]) == "0.00014"


async def test_callers_may_set_routing_but_not_the_highest_price(open_gateway: OpenGateway) -> None:
    router = OpenRouter()
    body = {"order": ["z-ai"], "max_price": {"prompt": "900", "completion": "60", "image": 1}}
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        await create_chat(running, model="z-ai/glm-5.3", provider=body)
        await create_chat(running, model="z-ai/glm-5.3", provider={"max_price": "nonsense"})
        with pytest.raises(InvalidRequest, match="`provider` must be an object"):
            await create_chat(running, model="z-ai/glm-5.3", provider="nonsense")
        with pytest.raises(InvalidRequest, match="`plugins` would change the price"):
            await create_chat(running, model="z-ai/glm-5.3", plugins=[{"id": "web"}])
    first, second = router.received("chat")
    limits = {**MAX_PRICE, "completion": "60", "image": 1}
    assert first.fields["provider"] == {"order": ["z-ai"], "max_price": limits}
    assert second.fields["provider"] == {"max_price": MAX_PRICE}


@pytest.mark.parametrize("stream", [False, True])
async def test_error_under_success(open_gateway: OpenGateway, stream: bool) -> None:
    """In a stream it comes after the first word, when the caller has been promised an answer."""
    router = OpenRouter()
    router.error = {"code": 502, "message": "Provider returned error", "metadata": {"raw": "overloaded"}}
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        if stream:
            text, record = await create_chat(running, model="z-ai/glm-5.3", stream=True)
            assert json.loads(text.rpartition("data: ")[2])["error"]["code"] == "UPSTREAM_ERROR"
            assert "Provider returned error: overloaded" in record["error_message"]
            assert record["status"] == "upstream_failure"
        else:
            with pytest.raises(Problem, match="Provider returned error: overloaded"):
                await create_chat(running, model="z-ai/glm-5.3")
        assert await running.money() == (10_000_000_000, 0)


@pytest.mark.parametrize("status", [200, 403])
async def test_flagged(open_gateway: OpenGateway, status: int) -> None:
    router = OpenRouter()
    router.next("chat", responds({"error": FLAGGED}, status))
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        with pytest.raises(Problem) as caught:
            await create_chat(running, model="z-ai/glm-5.3")
        assert caught.value.code == "CONTENT_POLICY_VIOLATION"


# ---------------------------------------------------------------------------------------------------------------- media


async def test_images(open_gateway: OpenGateway) -> None:
    router = OpenRouter()
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        record = await create_image(running, model="seedream-4.5", n=2, size="2048x1152")
        assert (record["status"], str(record["cost"])) == ("completed", "0.08")
        assert (await edit_image(running, model="seedream-4.5", size="1:1"))["status"] == "completed"
    first, _, third = (request.fields for request in router.received("images"))
    assert first == {
        "model": "bytedance-seed/seedream-4.5", "prompt": "a pear", "aspect_ratio": "16:9", "resolution": "1K",
    }  # fmt: skip
    assert third["input_references"] == [{"type": "image_url", "image_url": {"url": IMAGE_URI}}]


async def test_videos(open_gateway: OpenGateway) -> None:
    router = OpenRouter()
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        ends: Any = [{"image_url": IMAGE_URI}] * 2
        video = await create_video(running, model="kling-3", seconds=5, size="9:16", input_reference=ends)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.42", "what it reports"
    received = router.received("video")[0].fields
    assert [image["frame_type"] for image in received.pop("frame_images")] == ["first_frame", "last_frame"]
    assert received == {
        "model": "kwaivgi/kling-v3.0-std", "prompt": "a train", "duration": 5, "aspect_ratio": "9:16",
        "generate_audio": False,
    }  # fmt: skip
    assert router.received("content")[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("fate", "status"),
    [(REFUSED, "failed"), ({"status": "expired"}, "failed"), ({"status": "completed", "unsigned_urls": []}, "failed")],
)
async def test_no_video(open_gateway: OpenGateway, fate: dict[str, Any], status: str) -> None:
    router = OpenRouter()
    router.next_states.append(("pending", fate))
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        video = await create_video(running, model="kling-3", seconds=5)
        assert (video["status"], video["error"]["code"]) == (status, "ALL_PROVIDERS_EXHAUSTED")
        assert await running.money() == (10_000_000_000, 0)


async def test_no_capacity_upstream(open_gateway: OpenGateway) -> None:
    router = OpenRouter()
    details = error(503, "No provider meets your routing requirements")
    router.next("images", responds(details.json, details.status))
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        assert (await create_image(running, model="seedream-4.5"))["status"] == "upstream_failure"


def test_what_the_provider_behind_it_bills_the_operator_is_part_of_the_cost() -> None:
    """With the operator's own key of that provider, the cost that OpenRouter reports is only its fee."""
    usage = {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}}
    assert media.cost_usd({"usage": usage}) == "0.26"
    assert media.cost_usd({"usage": {**usage, "is_byok": False}}) == "0.01"
    assert media.cost_usd({"usage": {"cost": None, "is_byok": True}}) is None
    assert media.cost_usd({}) is None
