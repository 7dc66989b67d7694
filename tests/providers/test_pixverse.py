"""PixVerse through the gateway, against a fake that wants an id with every request."""

import pytest

from tests.fake_providers.pixverse import PixVerse
from tests.fake_providers.scripted import mp4
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_video, gateway_for


async def test_videos_of_text_of_an_image_and_between_two(open_gateway: OpenGateway) -> None:
    pixverse = PixVerse()
    async with gateway_for(open_gateway, "pixverse", pixverse) as running:
        for count, sound, cost in ((0, None, "0.36"), (1, True, "0.48"), (2, False, "0.36")):
            inputs = [{"image_url": IMAGE_URI}] * count
            video = await create_video(
                running, model="pixverse-v6", seconds=4, input_reference=inputs, generate_audio=sound
            )
            assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
            assert str(video["metadata"]["cost"]) == cost
        small = await create_video(running, model="pixverse-v6", seconds=1, size="640x360", negative_prompt="fog")
        assert str(small["metadata"]["cost"]) == "0.05"
    text, image, both, _ = [request.fields for request in pixverse.received("create")]
    assert text == {"prompt": "a train", "duration": 4, "aspect_ratio": "16:9", "quality": "720p", "model": "v6"}
    assert (len(pixverse.received("upload")), isinstance(image["img_id"], int)) == (3, True)
    assert both["first_frame_img"] != both["last_frame_img"]


@pytest.mark.parametrize(("status", "code"), [(7, "CONTENT_POLICY_VIOLATION"), (8, "ALL_PROVIDERS_EXHAUSTED")])
async def test_failures(open_gateway: OpenGateway, status: int, code: str) -> None:
    pixverse = PixVerse()
    pixverse.next_states.append((5, status))
    async with gateway_for(open_gateway, "pixverse", pixverse) as running:
        assert (await create_video(running, model="pixverse-v6"))["error"]["code"] == code
        refused = await create_video(running, model="pixverse-v6", prompt="nude")
        assert refused["error"]["code"] == "CONTENT_POLICY_VIOLATION"
        assert await running.money() == (10_000_000_000, 0)
