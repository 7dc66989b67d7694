"""LTX: the gateway against a fake made after the documentation; there is no client library."""

import base64
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.ltx import Ltx, failed, problem
from tests.fake_providers.scripted import mp4, png
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_video, gateway_for

UPRIGHT = "data:image/png;base64," + base64.b64encode(png(48, 64)).decode()


@pytest.mark.parametrize(
    ("model", "fields", "expected", "cost"),
    [
        ("ltx-2.5-fast", {"seconds": 5}, {"duration": 5, "resolution": "1280x720"}, "0.45"),
        ("ltx-2.5-fast", {"seconds": 7, "size": "3840x2160"}, {"duration": 8, "resolution": "3840x2160"}, "2.4"),
        ("ltx-2.5-pro", {"seconds": 4, "resolution": "1080p"}, {"duration": 4, "resolution": "1920x1080"}, "0.68"),
        ("ltx-2.5-pro", {"seconds": 4, "size": "3840x2160"}, {"duration": 4, "resolution": "1920x1080"}, "0.68"),
        ("ltx-2.3-fast", {"seconds": 4, "size": "9:16"}, {"duration": 6, "resolution": "1080x1920"}, "0.36"),
        ("ltx-2.3-fast", {"seconds": 6, "size": "720x1280"}, {"duration": 6, "resolution": "720x1280"}, "0.18"),
        ("ltx-2.3-pro", {"seconds": 10, "size": "2560x1440"}, {"duration": 10, "resolution": "2560x1440"}, "1.6"),
    ],
)
async def test_videos(
    open_gateway: OpenGateway, model: str, fields: dict[str, Any], expected: dict[str, Any], cost: str
) -> None:
    provider = Ltx()
    async with gateway_for(open_gateway, "ltx", provider) as running:
        video = await create_video(running, model=model, **fields)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == cost
    upstream = model.replace(".", "-")
    assert provider.received("create")[0].fields == {"prompt": "a train", "model": upstream, **expected}


async def test_pro_makes_ten_seconds_at_most(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "ltx", Ltx()) as running:
        with pytest.raises(InvalidRequest, match=r"`seconds` of ltx-2\.5-pro must be at most 10"):
            await running.video(model="ltx-2.5-pro", seconds=12)


@pytest.mark.parametrize(("images", "size"), [([IMAGE_URI], "1920x1080"), ([UPRIGHT, IMAGE_URI], "1080x1920")])
async def test_videos_of_images(open_gateway: OpenGateway, images: list[str], size: str) -> None:
    provider = Ltx()
    async with gateway_for(open_gateway, "ltx", provider) as running:
        references = [{"image_url": image} for image in images]
        video = await create_video(
            running, model="ltx-2.5-pro", seconds=5, resolution="1080p", input_reference=references
        )
        assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.85")
    last = {"last_frame_uri": images[1]} if len(images) > 1 else {}
    assert provider.received("create")[0].fields == {
        "prompt": "a train", "duration": 5, "resolution": size, "model": "ltx-2-5-pro", "image_uri": images[0], **last
    }  # fmt: skip
    assert {call.path.rsplit("/", 1)[0] for call in provider.received("show")} == {"/v2/image-to-video"}


async def test_errors_for_retired_models_name_the_replacement(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "ltx", Ltx()) as running:
        with pytest.raises(Exception, match=r"`ltx-2` was retired; use `ltx-2\.3-fast`"):
            await running.video(model="ltx-2", seconds=6)


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("content_filtered_error"), "CONTENT_POLICY_VIOLATION"),
        (failed("api_error"), "ALL_PROVIDERS_EXHAUSTED"),
        ({"status": "completed", "result": None}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    provider = Ltx()
    provider.next_states.append(("pending", fate))
    async with gateway_for(open_gateway, "ltx", provider) as running:
        video = await create_video(running, model="ltx-2.3-pro", seconds=6)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("content_filtered_error", 422, "CONTENT_POLICY_VIOLATION"),
        ("insufficient_funds_error", 402, "ALL_PROVIDERS_EXHAUSTED"),
        ("concurrency_limit_error", 429, None),
        ("invalid_request_error", 400, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_a_refused_submission(open_gateway: OpenGateway, kind: str, status: int, code: str | None) -> None:
    """A provider that is only busy is tried again."""
    provider = Ltx()
    provider.next("create", responds(problem(kind, "No."), status))
    async with gateway_for(open_gateway, "ltx", provider) as running:
        video = await create_video(running, model="ltx-2.3-pro", seconds=6)
        assert (video["error"] or {}).get("code") == code
