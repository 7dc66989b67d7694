"""Luma: its own client against the fake provider, then the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.fake_providers.luma import Luma, failed
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image, gateway_for

if TYPE_CHECKING:
    import luma_agents
else:
    luma_agents = LateImport("luma_agents")

MEDIA = {"data": IMAGE_URI.partition(",")[2], "media_type": "image/png"}

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def luma() -> Iterator[Luma]:
    with serve_in_thread(Luma()) as provider:
        yield provider


@pytest.fixture
def client(luma: Luma) -> Iterator[luma_agents.Luma]:
    with luma_agents.Luma(auth_token=KEY, base_url=f"{luma.url}/v1", max_retries=0) as client:
        yield client


def test_client_makes_a_video(luma: Luma, client: Any) -> None:
    job = client.generations.create(
        prompt="a fox",
        model="ray-3.2",
        type="video",
        aspect_ratio="16:9",
        video={"duration": "10s", "resolution": "720p", "keyframes": [MEDIA, MEDIA], "keyframe_indexes": [0, 240]},
    )
    assert job.state == "queued"
    assert [client.generations.get(job.id).state for _ in range(2)] == ["processing", "completed"]
    assert client.generations.get(job.id).output[0].type == "video"


def test_client_sees_failures(luma: Luma, client: Any) -> None:
    luma.next_states.append(("queued", failed("content_moderated")))
    job = client.generations.create(prompt="a fox", model="uni-1", type="image")
    assert client.generations.get(job.id).failure_code == "content_moderated"


# ---------------------------------------------------------------------------------------------------------- the gateway


@pytest.mark.parametrize(
    ("fields", "expected", "cost"),
    [
        ({"seconds": 5}, {"duration": "5s", "resolution": "720p"}, "0.3"),
        ({"seconds": 7}, {"duration": "10s", "resolution": "720p"}, "0.9"),
        ({"seconds": 5, "size": "960x540"}, {"duration": "5s", "resolution": "540p"}, "0.15"),
        ({"seconds": 10, "resolution": "1080p"}, {"duration": "10s", "resolution": "1080p"}, "3.6"),
    ],
)
async def test_videos(open_gateway: OpenGateway, fields: dict[str, Any], expected: dict[str, str], cost: str) -> None:
    luma = Luma()
    async with gateway_for(open_gateway, "luma", luma, "/v1") as running:
        video = await create_video(running, model="luma-ray-3", user="u1", **fields)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == cost
    assert luma.received("create")[0].fields == {
        "type": "video", "prompt": "a train", "user_id": "u1", "aspect_ratio": "16:9", "video": expected,
        "model": "ray-3.2",
    }  # fmt: skip


@pytest.mark.parametrize(("seconds", "last"), [(5, 120), (10, 240)])
async def test_videos_of_images(open_gateway: OpenGateway, seconds: int, last: int) -> None:
    luma = Luma()
    async with gateway_for(open_gateway, "luma", luma, "/v1") as running:
        for count in (1, 2):
            video = await create_video(
                running, model="luma-ray-3", seconds=seconds, input_reference=[{"image_url": IMAGE_URI}] * count
            )
            assert video["status"] == "completed"
    one, two = [call.fields for call in luma.received("create")]
    assert (one["aspect_ratio"], one["video"]["keyframe_indexes"]) == ("4:3", [0])
    assert (two["video"]["keyframes"], two["video"]["keyframe_indexes"]) == ([MEDIA, MEDIA], [0, last])


async def test_images(open_gateway: OpenGateway) -> None:
    luma = Luma()
    async with gateway_for(open_gateway, "luma", luma, "/v1") as running:
        assert str((await create_image(running, model="luma/uni-1", size="1792x1024"))["cost"]) == "0.0404"
        assert str((await edit_image(running, model="luma/uni-1", image=[IMAGE_URI, IMAGE_URI]))["cost"]) == "0.0464"
        assert str((await create_image(running, model="luma/uni-1-max"))["cost"]) == "0.1"
    made, edited, better = [call.fields for call in luma.received("create")]
    assert better["model"] == "uni-1-max"
    assert made == {
        "type": "image", "prompt": "a pear", "aspect_ratio": "16:9", "output_format": "png", "model": "uni-1",
    }  # fmt: skip
    assert (edited["type"], edited["source"], edited["image_ref"]) == ("image_edit", MEDIA, [MEDIA])


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("content_moderated"), "CONTENT_POLICY_VIOLATION"),
        (failed("budget_exhausted"), "ALL_PROVIDERS_EXHAUSTED"),
        (failed("generation_failed"), "ALL_PROVIDERS_EXHAUSTED"),
        ({"state": "completed", "output": None}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    luma = Luma()
    luma.next_states.append(("queued", fate))
    async with gateway_for(open_gateway, "luma", luma, "/v1") as running:
        video = await create_video(running, model="luma-ray-3", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


async def test_a_job_that_cannot_be_cancelled_is_paid_for(open_gateway: OpenGateway) -> None:
    """Luma has no way to cancel: best effort ends here, and what it makes is delivered."""
    luma = Luma()
    async with gateway_for(open_gateway, "luma", luma, "/v1") as running:
        started = await running.video(model="luma-ray-3", seconds=5)
        await luma.endpoints["create"].reached(1)
        await running.cancel(started.json["id"])
        assert (await running.wait_for_request(started.json["id"]))["status"] == "completed"


async def test_a_busy_provider_is_tried_again(open_gateway: OpenGateway) -> None:
    luma = Luma()
    luma.next("create", responds({"detail": "Too many requests."}, 429, retry_after="3"))
    async with gateway_for(open_gateway, "luma", luma, "/v1") as running:
        assert (await create_video(running, model="luma-ray-3", seconds=5))["status"] == "completed"
