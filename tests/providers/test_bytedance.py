"""ByteDance: OpenAI's client, which its documentation uses, against the fake provider, then the gateway."""

import pytest
from openai import AuthenticationError, BadRequestError, OpenAI

from penstock.errors import InvalidRequest
from tests.fake_providers.bytedance import ByteDance, trouble
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image, gateway_for

UNSAFE = trouble("InputTextSensitiveContentDetected", "The input text may contain sensitive information.")
PATH = "/api/v3"


def test_openai_client_makes_images() -> None:
    with (
        serve_in_thread(ByteDance()) as ark,
        OpenAI(base_url=ark.url + PATH, api_key=KEY, max_retries=0) as client,
    ):
        body = {"model": "seedream-4-5-251128", "prompt": "a fox", "extra_body": {"watermark": False}}
        made = client.images.generate(**body, size="2048x2048", response_format="url")
        assert [bool(item.url) for item in made.data or ()] == [True]
        with pytest.raises(BadRequestError, match="`size` is not valid"):
            client.images.generate(**body, size="1024x1024")
        with pytest.raises(AuthenticationError):
            client.with_options(api_key="nobody").images.generate(model="seedream-4-5-251128", prompt="a fox")


async def test_images_as_large_as_the_model_wants_them(open_gateway: OpenGateway) -> None:
    ark = ByteDance()
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        record = await create_image(running, model="seedream-4.5", n=2, size="1024x1024")
        assert (record["status"], str(record["cost"])) == ("completed", "0.08")
    assert [request.fields for request in ark.received("images")] == [
        {
            "prompt": "a pear", "size": "1920x1920", "watermark": False, "response_format": "url",
            "model": "seedream-4-5-251128",
        }
    ] * 2  # fmt: skip


@pytest.mark.parametrize(
    ("model", "size", "sent", "usd"),
    [
        ("seedream-5-pro", "1024x1024", "1024x1024", "0.045"),
        ("seedream-5-pro", "2048x2048", "2048x2048", "0.09"),
        ("seedream-5-pro", "1613x1613", "1613x1613", "0.09"),  # 2,601,769 pixels
        ("seedream-5.5", "1024x1024", "1024x1024", "0.02"),
        ("seedream-5.5", "2048x2048", "2048x2048", "0.035"),
        ("seedream-5-flash", "2048x2048", "2048x2048", "0.018"),
        ("seedream-5-flash", "4096x4096", "2150x2150", "0.018"),
    ],
)
async def test_large_images_of_seedream_5(
    open_gateway: OpenGateway, model: str, size: str, sent: str, usd: str
) -> None:
    ark = ByteDance()
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        record = await create_image(running, model=model, size=size)
        assert (record["status"], str(record["cost"])) == ("completed", usd)
    assert ark.received("images")[0].fields["size"] == sent


@pytest.mark.parametrize(
    ("model", "images", "usd"),
    [("seedream-5-pro", 1, "0.045"), ("seedream-5-pro", 3, "0.051"), ("seedream-5.5", 3, "0.044")],
)
async def test_the_first_image_of_5_pro_goes_in_free(
    open_gateway: OpenGateway, model: str, images: int, usd: str
) -> None:
    ark = ByteDance()
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        record = await edit_image(running, model=model, image=[IMAGE_URI] * images)
        assert (record["status"], str(record["cost"])) == ("completed", usd)
    assert ark.received("images")[0].fields["image"] == [IMAGE_URI] * images


async def test_videos_cost_the_tokens_they_took(open_gateway: OpenGateway) -> None:
    ark = ByteDance()
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        started = await running.video(model="seedance-2", seconds=5)
        assert (await running.money())[1] == 767_090_000, "a little more than it can come to is held"
        video = await running.wait_for_video(started.json["id"])
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0.7623"
    sent = ark.received("create")[0].fields
    assert (sent["ratio"], sent["resolution"], sent["duration"]) == ("16:9", "720p", 5)


async def test_videos_between_two_images(open_gateway: OpenGateway) -> None:
    ark = ByteDance()
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        ends = [{"image_url": IMAGE_URI}] * 2
        video = await create_video(
            running, model="seedance-2.5", size="9:16", input_reference=ends, user="someone@example.org"
        )
        assert video["status"] == "completed"
    sent = ark.received("create")[0].fields
    assert [item.get("role") for item in sent["content"]] == [None, "first_frame", "last_frame"]
    assert sent["ratio"] == "adaptive", "no other ratio is accepted together with images"
    assert len(sent["safety_identifier"]) == 64, "who it is stays here"


async def test_images_are_frames_or_references_as_callers_say(open_gateway: OpenGateway) -> None:
    ark = ByteDance()
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        for roles in (["last_frame", "first_frame"], ["reference"], ["reference", "reference"]):
            inputs = [{"image_url": IMAGE_URI, "role": role} for role in roles]
            made = await create_video(running, model="seedance-2", input_reference=inputs)
            assert made["status"] == "completed"
        with pytest.raises(InvalidRequest, match="frames or references, not both"):
            await running.video(
                model="seedance-2",
                input_reference=[{"image_url": IMAGE_URI, "role": role} for role in ("first_frame", "reference")],
            )
    sent = [request.fields for request in ark.received("create")]
    assert [[part["role"] for part in fields["content"][1:]] for fields in sent] == [
        ["first_frame", "last_frame"],
        ["reference_image"],
        ["reference_image", "reference_image"],
    ]
    assert [fields["ratio"] for fields in sent] == ["adaptive", "16:9", "16:9"]


async def test_a_waiting_video_is_cancelled(open_gateway: OpenGateway) -> None:
    ark = ByteDance()
    ark.next_states.append(("queued",))
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        started = await running.video(model="seedance-2-fast")
        await ark.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "cancelled"


async def test_a_running_video_is_not_cancelled(open_gateway: OpenGateway) -> None:
    ark = ByteDance()
    ark.next_states.append(("running", "running", "running", "succeeded"))
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        started = await running.video(model="seedance-2-mini")
        await ark.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "completed"
    assert ark.received("drop")


async def test_a_finished_video_is_kept(open_gateway: OpenGateway) -> None:
    ark = ByteDance()
    ark.next_states.append(("queued", "succeeded"))
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        started = await running.video(model="seedance-2-mini")
        await ark.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "completed"
    assert not ark.received("drop")


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        ({"status": "failed", **trouble("OutputVideoSensitiveContentDetected")}, "CONTENT_POLICY_VIOLATION"),
        ({"status": "failed", **trouble("InternalServiceError")}, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "expired"}, "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "succeeded", "content": None}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_videos_that_fail(open_gateway: OpenGateway, fate: object, code: str) -> None:
    ark = ByteDance()
    ark.next_states.append(("queued", fate))
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        video = await create_video(running, model="seedance-2")
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0), "nothing is charged"


@pytest.mark.parametrize(
    ("response", "status", "code"),
    [
        (UNSAFE, 400, "CONTENT_POLICY_VIOLATION"),
        ({"data": [{"error": {"code": "OutputImageSensitiveContentDetected", "message": "No."}}]}, 200,
         "CONTENT_POLICY_VIOLATION"),
        ({"data": []}, 200, "ALL_PROVIDERS_EXHAUSTED"),
        (trouble("AccountOverdueError"), 403, "ALL_PROVIDERS_EXHAUSTED"),
        (trouble("ServerOverloaded"), 429, "RATE_LIMITED"),
    ],
)  # fmt: skip
async def test_images_that_fail(open_gateway: OpenGateway, response: object, status: int, code: str) -> None:
    ark = ByteDance()
    ark.next("images", responds(response, status))
    async with gateway_for(open_gateway, "bytedance", ark, PATH) as running:
        record = await create_image(running, model="seedream-5")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
