"""WaveSpeed through the gateway, against a fake that takes the fields of each model's page and no others."""

from typing import Any

import pytest

from tests.fake_providers.scripted import mp4
from tests.fake_providers.wavespeed import WaveSpeed, failed
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image, gateway_for


async def test_images_edits_and_upscales(open_gateway: OpenGateway) -> None:
    wavespeed = WaveSpeed()
    async with gateway_for(open_gateway, "wavespeed", wavespeed) as running:
        made = await create_image(running, model="nano-banana-2", size="1792x1024")
        large = await create_image(running, model="nano-banana-2", size="4096x4096")
        edited = await edit_image(running, model="seedream-4.5", image=[IMAGE_URI, IMAGE_URI], size="1:1")
        upscaled = await edit_image(running, model="wavespeed/image-upscaler", prompt=None)
        assert [str(record["cost"]) for record in (made, large, edited, upscaled)] == ["0.08", "0.16", "0.04", "0.01"]
    first, second, third, fourth = [request.fields for request in wavespeed.received("create")]
    assert (first["aspect_ratio"], first["resolution"], second["resolution"]) == ("16:9", "1k", "4k")
    assert third == {"prompt": "add a hat", "images": [IMAGE_URI, IMAGE_URI], "size": "1920*1920"}
    assert fourth == {"image": IMAGE_URI, "target_resolution": "4k", "output_format": "png"}


async def test_videos(open_gateway: OpenGateway) -> None:
    wavespeed = WaveSpeed()
    async with gateway_for(open_gateway, "wavespeed", wavespeed) as running:
        plain = await create_video(running, model="veo-3.1-fast", seconds=8)
        silent = await create_video(
            running,
            model="veo-3.1-fast",
            seconds=4,
            generate_audio=False,
            input_reference=[{"image_url": IMAGE_URI}] * 2,
        )
        assert (plain["status"], plain["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert [str(video["metadata"]["cost"]) for video in (plain, silent)] == ["1.2", "0.8"]
    fields = wavespeed.received("create")[1].fields
    assert (fields["image"], fields["last_image"], fields["duration"]) == (IMAGE_URI, IMAGE_URI, 4)


async def test_kling_4_takes_up_to_half_a_minute_and_the_shape_of_its_first_image(open_gateway: OpenGateway) -> None:
    wavespeed = WaveSpeed()
    async with gateway_for(open_gateway, "wavespeed", wavespeed) as running:
        long = await create_video(running, model="kling-4", seconds=30, aspect_ratio="21:9")
        frames = await create_video(
            running,
            model="kling-4",
            seconds=3,
            resolution="1080p",
            generate_audio=True,
            input_reference=[{"image_url": IMAGE_URI}] * 2,
        )
        assert [str(video["metadata"]["cost"]) for video in (long, frames)] == ["4.71", "0.705"]
    first, second = [request.fields for request in wavespeed.received("create")]
    assert first == {"prompt": "a train", "duration": 30, "aspect_ratio": "21:9", "resolution": "720p"}
    images = {"image": IMAGE_URI, "last_image": IMAGE_URI}
    assert second == {"prompt": "a train", "duration": 3, "resolution": "1080p", **images}


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed(1200, "The content contains sensitive information."), "CONTENT_POLICY_VIOLATION"),
        (failed(5000, "Internal error."), "ALL_PROVIDERS_EXHAUSTED"),
        ("timeout", "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: Any, code: str) -> None:
    wavespeed = WaveSpeed()
    wavespeed.next_states.append(("created", fate))
    async with gateway_for(open_gateway, "wavespeed", wavespeed) as running:
        assert (await create_image(running, model="seedream-4.5"))["error_code"] == code
        assert await running.money() == (10_000_000_000, 0)
