"""xAI: OpenAI's client, which its documentation uses, against the fake provider, then the gateway."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import openai
import pytest

from penstock.accounts.prices import quote
from penstock.errors import InvalidRequest, Problem
from penstock.providers.xai import PROVIDER
from penstock.schema import Request
from penstock.values import Frame, nanos
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import responds, serve_in_thread
from tests.fake_providers.xai import BLOCKED, FAILED, REFUSED, XAI
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, create_chat, create_image, create_video, edit_image, gateway_for

if TYPE_CHECKING:
    import xai_sdk  # type: ignore[import-untyped]
else:
    xai_sdk = LateImport("xai_sdk")

# ------------------------------------------------------------------------------------------------------------- clients


@pytest.fixture
def xai() -> Iterator[XAI]:
    with serve_in_thread(XAI()) as provider:
        yield provider


@pytest.fixture
def client(xai: XAI) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=KEY, base_url=f"{xai.url}/v1", max_retries=0) as client:
        yield client


def test_client_paints(client: openai.OpenAI) -> None:
    more = {"aspect_ratio": "16:9", "resolution": "1k"}
    made = client.images.generate(
        model="grok-imagine-image-2.0", prompt="a fox", n=2, response_format="b64_json", extra_body=more
    )
    assert made.data
    assert [bool(item.b64_json) for item in made.data] == [True, True]


def test_client_creates_videos(client: openai.OpenAI) -> None:
    body = {"model": "grok-imagine-video", "prompt": "a fox", "duration": 8}
    begun: Any = client.post("/videos/generations", body=body, cast_to=object)
    seen: list[Any] = [client.get(f"/videos/{begun['request_id']}", cast_to=object) for _ in range(3)]
    assert [response["status"] for response in seen] == ["pending", "pending", "done"]
    assert seen[-1]["usage"] == {"cost_in_usd_ticks": 5_600_000_000}


def test_client_completes_a_chat(client: openai.OpenAI) -> None:
    details = client.chat.completions.create(model="grok-4.7", messages=[{"role": "user", "content": "Say hello."}])
    assert details.choices[0].message.content == "Say hello."
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="grok-4.7", messages=[{"role": "user", "content": "Hi."}], stop=["."])


def test_its_own_library_has_the_same_states() -> None:
    """It speaks another protocol, with the same shapes and resolutions; two shapes are newer than the library."""
    for model in PROVIDER.models:
        if (row := model.op.param("frame")) is None or row.convert is None:
            continue
        is_video = model.op.task == "video"
        for size in ("1:1", "16:9", "9:16", "20:1", "1:20", "2048x2048", "640x480", "1920x1080"):
            ratio, resolution = row.convert(Frame.parse(size))
            if is_video:
                assert xai_sdk.video.convert_video_aspect_ratio_to_pb(ratio)
                assert xai_sdk.video.convert_video_resolution_to_pb(resolution)
            else:
                assert ratio == "5:2" or xai_sdk.image.convert_image_aspect_ratio_to_pb(ratio)
                assert resolution is None or xai_sdk.image.convert_image_resolution_to_pb(resolution)


# ------------------------------------------------------------------------------------------------------------- gateway


async def test_images_cost_what_is_reported(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        record = await create_image(
            running, model="grok-imagine-image-2", n=3, size="1792x1024", quality="low", user="u-17"
        )
        assert (record["status"], str(record["cost"])) == ("completed", "0.12")
    assert xai.received("generate")[0].fields == {
        "model": "grok-imagine-image-2.0", "prompt": "a pear", "n": 3, "aspect_ratio": "16:9", "resolution": "1k",
        "quality": "low", "response_format": "b64_json", "user": "u-17",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "usd"), [({}, "0.06"), ({"size": "2048x2048"}, "0.08"), ({"quality": "low"}, "0.04")]
)
def test_without_a_quality_the_price_of_medium_is_quoted(fields: dict[str, Any], usd: str) -> None:
    model = next(model for model in PROVIDER.models if model.id == "grok-imagine-image-2")
    request = Request(task="image", model=model.id, values={"prompt": "a pear", **fields})
    assert quote(model, request).total == nanos(usd)


@pytest.mark.parametrize("count", [1, 2])
async def test_edits(open_gateway: OpenGateway, count: int) -> None:
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        record = await edit_image(running, model="grok-imagine-image-2", image=[IMAGE_URI] * count, size="1:1")
        assert (record["status"], str(record["cost"])) == ("completed", str(0.04 + 0.01 * count))
    received = xai.received("edit")[0].fields
    given = {"type": "image_url", "url": IMAGE_URI}
    assert (received.get("image"), received.get("images")) == ((given, None) if count == 1 else (None, [given] * 2))


async def test_some_images_are_blocked(open_gateway: OpenGateway) -> None:
    xai = XAI()
    xai.blocks = {0}
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        assert (await create_image(running, model="grok-imagine-image-2", n=2))["status"] == "completed"
        record = await create_image(running, model="grok-imagine-image-2", n=1)
        assert record["error_code"] == "CONTENT_POLICY_VIOLATION"


async def test_videos(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        video = await create_video(running, model="grok-imagine-video", seconds=5, size="9:16")
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.35"
        await create_video(running, model="grok-imagine-video", seconds=5, input_reference=[{"image_url": IMAGE_URI}])
        await create_video(
            running, model="grok-imagine-video", seconds=5, input_reference=[{"image_url": IMAGE_URI}] * 2
        )
    words, image, images = (request.fields for request in xai.received("video"))
    assert words == {
        "model": "grok-imagine-video", "prompt": "a train", "duration": 5, "aspect_ratio": "9:16", "resolution": "720p",
    }  # fmt: skip
    assert image["image"] == {"url": IMAGE_URI}
    assert "aspect_ratio" not in image
    assert len(images["reference_images"]) == 2


async def test_two_images_are_the_first_and_the_last_frame_where_xai_takes_both(open_gateway: OpenGateway) -> None:
    xai = XAI()
    two = [{"image_url": IMAGE_URI}] * 2
    with_roles = [two[0], {"image_url": IMAGE_URI, "role": "last_frame"}]
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        wanted = {"model": "grok-imagine-video-1.5", "seconds": 3, "size": "1080x1920"}
        assert (await create_video(running, **wanted, input_reference=two))["status"] == "completed"
        with pytest.raises(InvalidRequest, match="takes no last frame"):
            await create_video(running, model="grok-imagine-video", input_reference=with_roles)
    [sent] = (request.fields for request in xai.received("video"))
    assert sent == {
        "model": "grok-imagine-video-1.5", "prompt": "a train", "duration": 3, "resolution": "1080p",
        "image": {"url": IMAGE_URI}, "last_frame": {"url": IMAGE_URI},
    }  # fmt: skip


async def test_videos_from_references_have_720p_at_most(open_gateway: OpenGateway) -> None:
    xai = XAI()
    several = [{"image_url": IMAGE_URI, "role": "reference"}, {"image_url": IMAGE_URI, "role": "first_frame"}]
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        wanted = {"model": "grok-imagine-video-1.5", "seconds": 3, "resolution": "1080p"}
        assert (await create_video(running, **wanted, input_reference=several[:1] * 2))["status"] == "completed"
        assert (await create_video(running, **wanted, input_reference=several[1:]))["status"] == "completed"
    assert [request.fields["resolution"] for request in xai.received("video")] == ["720p", "1080p"]


async def test_lite_takes_no_references(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        with pytest.raises(InvalidRequest, match="at most 1"):
            await create_video(
                running, model="grok-imagine-video-1.5-lite", input_reference=[{"image_url": IMAGE_URI}] * 2
            )
    assert xai.received("video") == []


async def test_what_is_billed_for_a_blocked_video_is_a_loss(open_gateway: OpenGateway) -> None:
    xai = XAI()
    xai.next_states.append(("named", "pending", BLOCKED))
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        assert (await create_video(running, model="grok-imagine-video-1.5", seconds=3))["status"] == "failed"
        losses = await running.rows("SELECT amount FROM transfers WHERE kind = 'loss'")
        assert [row["amount"] for row in losses] == [nanos("0.42")]
        assert await running.money() == (10_000_000_000, 0), "the caller pays nothing"


async def test_shapes_of_images(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        for size in ("900x1950", "21:9", "2500x1000"):
            assert (await create_image(running, model="grok-imagine-image", size=size))["status"] == "completed"
        assert (await edit_image(running, model="grok-imagine-image", size="16:9"))["status"] == "completed"
        assert (await edit_image(running, model="grok-imagine-image-2", size="16:9"))["status"] == "completed"
    made = [request.fields["aspect_ratio"] for request in xai.received("generate")]
    assert made == ["9:19.5", "21:9", "5:2"]
    ratios = [request.fields.get("aspect_ratio") for request in xai.received("edit")]
    assert ratios == [None, "16:9"], "an image that the older model edits keeps its shape"


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (BLOCKED, "CONTENT_POLICY_VIOLATION"),
        (REFUSED, "CONTENT_POLICY_VIOLATION"),
        (FAILED, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "expired"}, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "done", "video": {"url": ""}}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_no_video(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    xai = XAI()
    xai.next_states.append(("named", "pending", fate))
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        video = await create_video(running, model="grok-imagine-video-1.5", seconds=3)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


async def test_chats_cost_what_is_reported(open_gateway: OpenGateway) -> None:
    xai = XAI()
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        text, record = await create_chat(running, model="x-ai/grok-4.7", frequency_penalty=0, presence_penalty=0)
        assert json.loads(text)["usage"]["cost_in_usd_ticks"] == 37_756_000
        assert str(record["cost"]) == "0.0037756"
        _, record = await create_chat(running, model="x-ai/grok-4.7", stream=True)
        assert str(record["cost"]) == "0.0037756"
        with pytest.raises(InvalidRequest, match="`stop` is not supported"):
            await create_chat(running, model="x-ai/grok-4.7", stop=["."])


async def test_a_chat_refused_with_a_message(open_gateway: OpenGateway) -> None:
    xai = XAI()
    words = "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"
    xai.next("chat", responds({"code": "permission-denied", "error": words}, 403))
    async with gateway_for(open_gateway, "xai", xai, "/v1") as running:
        with pytest.raises(Problem) as caught:
            await create_chat(running, model="x-ai/grok-4.7")
        assert caught.value.code == "CONTENT_POLICY_VIOLATION"
