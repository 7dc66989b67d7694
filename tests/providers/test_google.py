"""Google: its own client against the fake provider, then the gateway."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import openai
import pytest
from PIL import Image

from tests.fake_providers.google import BLOCKED, FAILED, REFUSED, TALKED, UNSAFE, WORDS_ONLY, Gemini, Google
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, create_chat, create_image, create_video, edit_image, gateway_for

if TYPE_CHECKING:
    import google.genai as genai
else:
    genai = LateImport("google.genai")

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def google() -> Iterator[Google]:
    with serve_in_thread(Google()) as provider:
        yield provider


@pytest.fixture
def client(google: Google) -> Iterator[genai.Client]:
    with opened(google, KEY) as client:
        yield client


def opened(google: Google, key: str) -> genai.Client:
    return genai.Client(api_key=key, http_options=genai.types.HttpOptions(base_url=google.url, api_version="v1beta"))


def test_client_paints(client: genai.Client) -> None:
    config = genai.types.GenerateContentConfig(
        response_modalities=["IMAGE"],
        image_config=genai.types.ImageConfig(aspect_ratio="16:9", image_size="1K"),
        seed=7,
    )
    given = genai.types.Part.from_bytes(data=png(64, 48), mime_type="image/png")
    details: Any = [given, "a hat"]
    made = client.models.generate_content(model="gemini-3.1-flash-image", contents=details, config=config)
    assert made.parts
    drawn = [part for part in made.parts if part.inline_data and not part.thought]
    assert drawn[0].inline_data
    with Image.open(io.BytesIO(drawn[0].inline_data.data or b"")) as image:
        assert image.size == (1376, 768)
    assert made.usage_metadata
    assert (made.usage_metadata.prompt_token_count, made.usage_metadata.thoughts_token_count) == (268, 200)


@pytest.mark.parametrize("response", [BLOCKED, UNSAFE])
def test_client_is_refused_under_success(google: Google, client: genai.Client, response: dict[str, Any]) -> None:
    google.responses.append(response)
    made = client.models.generate_content(model="gemini-3.1-flash-image", contents="a fox", config=wide())
    blocked = made.prompt_feedback and made.prompt_feedback.block_reason
    assert blocked or (made.candidates and made.candidates[0].finish_reason == genai.types.FinishReason.IMAGE_SAFETY)


def wide() -> genai.types.GenerateContentConfig:
    return genai.types.GenerateContentConfig(image_config=genai.types.ImageConfig(aspect_ratio="16:9"))


def test_client_creates_videos(google: Google, client: genai.Client) -> None:
    form: Any = {"type": "video", "aspect_ratio": "16:9", "duration": "8s", "resolution": "720p", "delivery": "uri"}
    begun: Any = client.interactions.create(
        model="gemini-omni-1.1-flash", input="a fox", background=True, store=True, response_format=form
    )
    assert begun.status == "queued"
    assert client.interactions.get(begun.id).status == "in_progress"
    done: Any = client.interactions.get(begun.id)
    assert done.status == "completed"
    uri = done.steps[0].content[0].uri
    assert client.files.download(file="files/" + uri.rpartition("/")[2]) == mp4()


def test_client_calls_off(client: genai.Client) -> None:
    begun: Any = client.interactions.create(model="gemini-omni-1.1-flash", input="a fox", background=True)
    assert client.interactions.cancel(begun.id).status == "cancelled"


def test_client_without_key(google: Google) -> None:
    with (
        opened(google, "nobody") as client,
        pytest.raises(genai.errors.ClientError, match="API key not valid"),
    ):
        client.models.generate_content(model="gemini-3.1-flash-image", contents="a fox")


def test_openai_client_completes_a_chat() -> None:
    with (
        serve_in_thread(Gemini()) as provider,
        openai.OpenAI(api_key=KEY, base_url=f"{provider.url}/v1beta/openai", max_retries=0) as client,
    ):
        details = client.chat.completions.create(
            model="gemini-3.8-flash", messages=[{"role": "user", "content": "Say hello."}]
        )
        assert details.choices[0].message.content == "Say hello."
        assert details.usage
        assert (details.usage.completion_tokens, details.usage.total_tokens) == (2, 44)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(
                model="gemini-3.8-flash", messages=[{"role": "user", "content": "Hi."}], seed=7
            )


# --------------------------------------------------------------------------------------------------- images: gateway


async def test_images(open_gateway: OpenGateway) -> None:
    google = Google()
    async with gateway_for(open_gateway, "google", google, "/v1beta") as running:
        record = await create_image(running, model="nano-banana-2", n=2, size="1792x1024", thinking="high", seed=7)
        # Each: 10 tokens in at 0.5, 210 of words at 3 and 1120 of the image at 60 dollars a million.
        assert (record["status"], str(record["cost"])) == ("completed", "0.13567")
    assert len(google.received("generate")) == 2
    assert google.received("generate")[0].fields == {
        "contents": [{"role": "user", "parts": [{"text": "a pear"}]}],
        "generationConfig": {
            "responseModalities": ["IMAGE"], "imageConfig": {"aspectRatio": "16:9", "imageSize": "1K"}, "seed": 7,
            "thinkingConfig": {"thinkingLevel": "HIGH"},
        },
    }  # fmt: skip


async def test_edits(open_gateway: OpenGateway) -> None:
    google = Google()
    async with gateway_for(open_gateway, "google", google, "/v1beta") as running:
        record = await edit_image(running, model="nano-banana", image=[IMAGE_URI, IMAGE_URI], size="1:1")
        assert (record["status"], str(record["cost"])) == ("completed", "0.0342828")
    parts = google.received("generate")[0].fields["contents"][0]["parts"]
    assert [list(part) for part in parts] == [["inlineData"], ["inlineData"], ["text"]]


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (BLOCKED, "CONTENT_POLICY_VIOLATION"),
        (UNSAFE, "CONTENT_POLICY_VIOLATION"),
        (WORDS_ONLY, "ALL_PROVIDERS_EXHAUSTED"),
        ({"candidates": []}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_no_image(open_gateway: OpenGateway, response: dict[str, Any], code: str) -> None:
    google = Google()
    google.responses.append(response)
    async with gateway_for(open_gateway, "google", google, "/v1beta") as running:
        record = await create_image(running, model="nano-banana", size="1:1")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await running.money() == (10_000_000_000, 0)


# ------------------------------------------------------------------------------------------------------ videos: gateway


@pytest.mark.parametrize("inline", [False, True])
async def test_videos(open_gateway: OpenGateway, inline: bool) -> None:
    google = Google()
    google.inline = inline
    async with gateway_for(open_gateway, "gemini-omni", google, "/v1beta") as running:
        video = await create_video(
            running,
            model="gemini-omni-1.1-flash",
            seconds=5,
            size="1920x1080",
            input_reference=[{"image_url": IMAGE_URI}],
        )
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.7602"
    received = google.received("create")[0].fields
    assert [part["type"] for part in received.pop("input")] == ["text", "image"]
    assert received == {
        "model": "gemini-omni-1.1-flash", "background": True, "store": True,
        "generation_config": {"video_config": {"task": "image_to_video"}},
        "response_format": {
            "type": "video", "delivery": "uri", "duration": "5s", "aspect_ratio": "16:9", "resolution": "1080p",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (FAILED, "ALL_PROVIDERS_EXHAUSTED"),
        (REFUSED, "CONTENT_POLICY_VIOLATION"),
        (TALKED, "CONTENT_POLICY_VIOLATION"),
        ({"status": "incomplete"}, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "completed", "steps": []}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_no_video(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    google = Google()
    google.next_states.append(("queued", fate))
    async with gateway_for(open_gateway, "gemini-omni", google, "/v1beta") as running:
        video = await create_video(running, model="gemini-omni-1.2-flash", seconds=3)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


async def test_cancelling(open_gateway: OpenGateway) -> None:
    google = Google()
    google.next_states.append(("queued", "in_progress"))
    async with gateway_for(open_gateway, "gemini-omni", google, "/v1beta") as running:
        started = await running.video(model="gemini-omni-1.2-flash", seconds=3)
        await google.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "cancelled"
    assert len(google.received("cancel")) == 1


# ------------------------------------------------------------------------------------------------------- chat: gateway


async def test_chats_pay_for_thinking(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "gemini", Gemini(), "/v1beta/openai") as running:
        text, record = await create_chat(
            running, model="google/gemini-3.8-flash", seed=7, user="u-17", frequency_penalty=0
        )
        assert json.loads(text)["choices"][0]["message"]["content"] == "Name a colour."
        assert str(record["cost"]) == "0.0001635"  # 3 tokens at 0.75, 43 at 3.75 dollars a million
        _, record = await create_chat(running, model="google/gemini-3.8-flash", stream=True)
        assert str(record["cost"]) == "0.0001635"


async def test_chat_errors_in_a_list(open_gateway: OpenGateway) -> None:
    gemini = Gemini()
    details = {"error": {"code": 404, "message": "models/gemini-3.8-flash is gone.", "status": "NOT_FOUND"}}
    gemini.next("chat", responds([details], 404))
    async with gateway_for(open_gateway, "gemini", gemini, "/v1beta/openai") as running:
        with pytest.raises(Exception, match=r"models/gemini-3\.8-flash is gone"):
            await create_chat(running, model="google/gemini-3.8-flash")
