"""Leonardo through the gateway, against a fake that takes the described parameters and no others."""

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.leonardo import Leonardo
from tests.fake_providers.scripted import mp4
from tests.gateway import OpenGateway
from tests.providers.calls import create_image, create_video, gateway_for

CREDIT = 10_000_000_000


async def test_what_leonardo_names_when_it_accepts_a_job_is_charged(open_gateway: OpenGateway) -> None:
    """An account that pays in credits is charged the price that was held."""
    leonardo = Leonardo()
    async with gateway_for(open_gateway, "leonardo", leonardo) as running:
        two = await create_image(
            running, model="leonardo/phoenix-v1.0", n=2, size="1472x832", quality="medium", negative_prompt="rain"
        )
        leonardo.cost = ("16", "CREDITS")
        ultra = await create_image(running, model="leonardo/lucid-origin", quality="high", size="1:1")
        usual = await create_image(running, model="leonardo/lucid-realism", prompt_enhancement="off", size="1:1")
        assert [str(record["cost"]) for record in (two, ultra, usual)] == ["0.0147", "0.2", "0.1"]
    first, second, third = [request.fields for request in leonardo.received("create")]
    assert first == {
        "model": "phoenix-v1.0",
        "public": False,
        "parameters": {
            "prompt": "a pear", "negative_prompt": "rain", "quantity": 2, "width": 1472, "height": 832,
            "mode": "QUALITY",
        },
    }  # fmt: skip
    assert (second["parameters"]["mode"], second["parameters"]["width"]) == ("ULTRA", 1024)
    assert (third["parameters"].get("mode"), third["parameters"]["prompt_enhance"]) == (None, "OFF")


async def test_videos(open_gateway: OpenGateway) -> None:
    """All are five seconds long; a longer one is refused."""
    leonardo = Leonardo()
    leonardo.cost = ("0.28", "DOLLARS")
    async with gateway_for(open_gateway, "leonardo", leonardo) as running:
        video = await create_video(
            running,
            model="leonardo/motion-2.0",
            seconds=5,
            aspect_ratio="9:16",
            resolution="720p",
            negative_prompt="rain",
        )
        assert (video["output"]["size_bytes"], video["seconds"]) == (len(mp4()), "5")
        assert str(video["metadata"]["cost"]) == "0.28"
        with pytest.raises(InvalidRequest, match="seconds"):
            await create_video(running, model="leonardo/motion-2.0-fast", seconds=8)
    (received,) = leonardo.received("create_video")
    assert received.fields == {
        "model": "MOTION2", "prompt": "a train", "negativePrompt": "rain", "isPublic": False,
        "width": 480, "height": 832, "resolution": "RESOLUTION_720",
    }  # fmt: skip


async def test_failures_and_refusals_are_free(open_gateway: OpenGateway) -> None:
    leonardo = Leonardo()
    leonardo.next_states.append(("PENDING", "FAILED"))
    async with gateway_for(open_gateway, "leonardo", leonardo) as running:
        failed = await create_image(running, model="leonardo/lucid-origin")
        refused = await create_image(running, model="leonardo/lucid-origin", prompt="forbidden")
        codes = [record["error_code"] for record in (failed, refused)]
        assert codes == ["UPSTREAM_ERROR", "CONTENT_POLICY_VIOLATION"]
        assert await running.money() == (CREDIT, 0)
