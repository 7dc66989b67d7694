"""What OpenAI's clients expect beside the interface: image streams, video previews, deletions, limits, browsers."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from PIL import Image

from tests.api.http_calls import ServedApi, checked_json, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import mp4, png
from tests.gateway import Installation, OpenGateway, sqlite_only

pytestmark = sqlite_only
IMAGES = "/compat/v1/images/generations"
PREFLIGHT = {"origin": "https://app.test", "access-control-request-method": "POST"}


def openai_client(api: ServedApi) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=api.running.key, base_url=api.base_url, max_retries=0)


# -------------------------------------------------------------------------------------------------------- image streams


async def test_an_image_stream_ends_with_one_completed_event_for_each_image(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, openai_client(api) as ours:
        size: Any = "64x64"
        made = await ours.images.generate(
            model="image-1", prompt="x", size=size, n=2, stream=True, partial_images=2, quality="low"
        )
        events = [event async for event in made]
        assert [event.type for event in events] == ["image_generation.completed"] * 2
        assert base64.b64decode(events[0].b64_json).startswith(b"\x89PNG")
        assert (events[0].size, events[0].output_format, events[0].quality) == ("64x64", "png", "low")
        edited = await ours.images.edit(model="edit-1", prompt="x", size=size, image=png(64, 64), stream=True)
        assert [event.type async for event in edited] == ["image_edit.completed"]
        assert "stream" not in api.running.lab.images.received[0].fields
        records = (await api.call("GET", "/v1/requests")).json["data"]
        assert all(record["response_size_bytes"] > 100 for record in records)


async def test_a_failed_image_stream_ends_with_an_error_event(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, openai_client(api) as ours:
        api.running.lab.images.next(faults.blocked)
        stream = await ours.images.generate(model="image-1", prompt="x", stream=True)
        with pytest.raises(openai.APIError) as caught:
            async for _ in stream:
                pass
        assert isinstance(caught.value.body, dict)
        assert caught.value.body["code"] == "CONTENT_POLICY_VIOLATION"
        with pytest.raises(openai.NotFoundError):  # what is refused before it begins is an HTTP error
            await ours.images.generate(model="no-such", prompt="x", stream=True)


# ------------------------------------------------------------------------------------------------------------- defaults


async def test_the_operator_can_set_openais_defaults(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, image_response_format="b64_json", edit_size="auto") as api:
        result = checked_json("ImageResult", await api.image())
        assert "b64_json" in result["data"][0]
        assert "url" in checked_json("ImageResult", await api.image(response_format="url"))["data"][0]
        data = f"data:image/png;base64,{base64.b64encode(png(80, 48)).decode()}"
        body = {"model": "edit-1", "prompt": "x", "image": data}
        edited = await api.call("POST", "/compat/v1/images/edits", body)
        assert checked_json("ImageResult", edited)["size"] == "80x48"
        shaped = await api.call("POST", "/compat/v1/images/edits", {**body, "aspect_ratio": "1:1"})
        assert checked_json("ImageResult", shaped)["size"] != "80x48"


async def test_a_key_can_have_another_form_of_images_than_others(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, image_response_format="b64_json") as api:
        made = (await api.call("POST", "/v1/keys", {"image_response_format": "url"})).json
        assert made["image_response_format"] == "url"

        async def image(**more: Any) -> dict[str, Any]:
            body = {"model": "image-1", "prompt": "a pear", "size": "64x64", **more}
            response = await api.call("POST", "/compat/v1/images/generations", body, key=made["key"])
            found: dict[str, Any] = checked_json("ImageResult", response)["data"][0]
            return found

        assert "url" in await image()
        assert "b64_json" in await image(response_format="b64_json")
        assert "b64_json" in checked_json("ImageResult", await api.image())["data"][0]
        changed = await api.call("PATCH", f"/v1/keys/{made['id']}", {"image_response_format": None})
        assert changed.json["image_response_format"] is None
        assert "b64_json" in await image()


# --------------------------------------------------------------------------------------------------------------- videos


@pytest.mark.filterwarnings("ignore:The Sora API")
async def test_previews_of_a_video_are_images(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, openai_client(api) as ours:
        video_id = (await api.video()).json["id"]
        await api.running.wait_for_video(video_id)
        thumbnail = (await ours.videos.download_content(video_id, variant="thumbnail")).content
        assert Image.open(io.BytesIO(thumbnail)).format == "WEBP"
        sheet = Image.open(io.BytesIO((await ours.videos.download_content(video_id, variant="spritesheet")).content))
        assert (sheet.format, sheet.size) == ("JPEG", (5 * 64, 5 * 64))
        assert (await ours.videos.download_content(video_id, variant="video")).content == mp4()
        refused = await api.call("GET", f"/compat/v1/videos/{video_id}/content?variant=poster")
        assert refused.code == "INVALID_REQUEST"


@pytest.mark.filterwarnings("ignore:The Sora API")
async def test_deleting_a_video_answers_openais_clients_with_an_object_and_others_with_nothing(
    open_gateway: OpenGateway,
) -> None:
    async with served_api(open_gateway) as api, openai_client(api) as ours:
        finished = (await api.video()).json["id"]
        await api.running.wait_for_video(finished)
        assert (await ours.videos.delete(finished)).deleted is False  # it stays, as the interface says
        api.running.lab.states = ("queued",)
        first, second = [(await api.video()).json["id"] for _ in range(2)]
        deleted = await ours.videos.delete(first)
        assert (deleted.id, deleted.object, deleted.deleted) == (first, "video.deleted", True)
        plain = await api.call("DELETE", f"/compat/v1/videos/{second}")
        assert (plain.status, plain.body) == (204, b"")
        for video_id in (first, second):
            assert (await api.running.wait_for_request(video_id))["status"] == "cancelled"


# --------------------------------------------------------------------------------------------------------------- limits


async def test_successes_say_how_much_of_the_limit_is_left(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        key = (await api.running.gateway.keys.create_key(api.running.caller.org_id, requests_per_minute=3)).key
        body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hi"}]}
        left = []
        for _ in range(3):
            called = await api.call("POST", "/compat/v1/chat/completions", body, key=key)
            assert (called.status, called.headers["x-ratelimit-limit-requests"]) == (200, "3")
            assert called.headers["x-ratelimit-reset-requests"].endswith("s")
            left.append(called.headers["x-ratelimit-remaining-requests"])
        assert left == ["2", "1", "0"]
        assert (await api.call("POST", "/compat/v1/chat/completions", body, key=key)).code == "RATE_LIMITED"
        assert "x-ratelimit-limit-requests" not in (await api.chat()).headers


# ----------------------------------------------------------------------------------------------------------------- CORS


async def test_browsers_may_call_from_the_origins_that_the_operator_lists(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, cors_origins=("https://app.test",)) as api:
        preflight = await api.served.call("OPTIONS", IMAGES, headers=PREFLIGHT)
        assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (204, "https://app.test")
        assert "POST" in preflight.headers["access-control-allow-methods"]
        assert "authorization" in preflight.headers["access-control-allow-headers"].lower()
        assert preflight.headers["vary"] == "origin"
        called = await api.call("GET", "/compat/v1/models", headers={"origin": "https://app.test"})
        assert called.headers["access-control-allow-origin"] == "https://app.test"
        assert "x-request-id" in called.headers["access-control-expose-headers"]
        refused = await api.served.call("GET", "/compat/v1/models", headers={"origin": "https://app.test"})
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, "https://app.test")
        other = await api.served.call("OPTIONS", IMAGES, headers={**PREFLIGHT, "origin": "https://evil.test"})
        assert "access-control-allow-origin" not in other.headers
    async with served_api(open_gateway, cors_origins=("*",)) as api:
        called = await api.call("GET", "/compat/v1/models", headers={"origin": "https://any.test"})
        assert called.headers["access-control-allow-origin"] == "*"


async def test_browsers_may_call_from_nowhere_unless_the_operator_says(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        preflight = await api.served.call("OPTIONS", IMAGES, headers=PREFLIGHT)
        assert preflight.status == 401
        called = await api.call("GET", "/compat/v1/models", headers={"origin": "https://app.test"})
        assert not [name for name in called.headers if name.startswith("access-control")]


# --------------------------------------------------------------------------------------------------------------- models


async def test_the_chat_models_of_local_servers_are_listed_and_retrievable(
    open_gateway: OpenGateway, installation: Installation
) -> None:
    listed = {"object": "list", "data": [{"id": "qwen3:8b", "object": "model"}, {"id": "org/llama", "object": "model"}]}
    async with local_server(listed) as (url, asked):
        installation.environ |= {"OLLAMA_URL": url, "VLLM_URL": "http://127.0.0.1:1"}
        async with served_api(open_gateway) as api, openai_client(api) as ours:
            ids = [model.id async for model in ours.models.list()]
            assert {"ollama/qwen3:8b", "ollama/org/llama"} <= set(ids)
            found = checked_json("Model", await api.call("GET", "/compat/v1/models/ollama/org/llama?schema=true"))
            assert (found["owned_by"], found["modes"], found["providers"]) == ("ollama", ["chat"], ["ollama"])
            missing = await api.call("GET", "/compat/v1/models/ollama/other")
            assert (missing.status, missing.code) == (404, "MODEL_NOT_FOUND")
            assert len(asked) == 1
            api.running.clock.advance(61)
            await api.call("GET", "/compat/v1/models")
            assert len(asked) == 2


@asynccontextmanager
async def local_server(body: Any) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers every request with this JSON; and the requests."""
    asked: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        data = json.dumps(body).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
        writer.write(head.encode() + b"connection: close\r\n\r\n" + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_the_built_in_models_take_openais_arguments_that_change_nothing(open_gateway: OpenGateway) -> None:
    """A newcomer points an existing program at them first."""
    asked: dict[str, Any] = {"model": "atelier/echo", "messages": [{"role": "user", "content": "hi"}]}
    drawn: dict[str, Any] = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}
    neutral: list[tuple[str, dict[str, Any]]] = [
        *[("chat/completions", {**asked, name: value}) for name, value in {
            "logit_bias": {}, "modalities": ["text"], "prompt_cache_retention": "24h", "safety_identifier": "u1",
            "functions": [], "function_call": "none", "prediction": {"type": "content", "content": "hi"},
        }.items()],
        *[("images/generations", {**drawn, name: value}) for name, value in {
            "background": "auto", "moderation": "auto", "input_fidelity": "low"}.items()],
    ]  # fmt: skip
    async with served_api(open_gateway, disabled_providers=()) as api:
        answers = [await api.call("POST", f"/compat/v1/{path}?dryRun=true", body) for path, body in neutral]
        assert [answer.json for answer in answers if answer.status != 200] == []
        wanted = await api.call("POST", "/compat/v1/images/generations", {**drawn, "background": "transparent"})
        assert wanted.status == 400, "what asks for something is not dropped"
