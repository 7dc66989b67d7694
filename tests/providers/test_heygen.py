"""HeyGen through the gateway, against a fake that refuses what HeyGen's description refuses."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.heygen import HeyGen, failed
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_video, gateway_for

MODEL = "heygen/speaking-image"
CREDIT = 10_000_000_000
SPEAKER: dict[str, Any] = {
    "input_reference": {"image_url": IMAGE_URI},
    "voice_id": "v1",
    "prompt": "Welcome to our shop.",
}


async def test_an_image_speaks_and_what_it_said_is_paid_by_the_second(open_gateway: OpenGateway) -> None:
    heygen = HeyGen()
    async with gateway_for(open_gateway, "heygen", heygen) as running:
        usual = await create_video(running, model=MODEL, **SPEAKER)
        large = await create_video(running, model=MODEL, **SPEAKER, resolution="4K", aspect_ratio="9:16", seconds=5)
        costs = [str(video["metadata"]["cost"]) for video in (usual, large)]
        assert costs == ["0.62", "0.82708"], "12.4 seconds, as HeyGen reports, at the price of the resolution"
    first, second = [request.fields for request in heygen.received("create")]
    assert (first["script"], first["voice_id"], first["type"]) == ("Welcome to our shop.", "v1", "image")
    assert first["image"]["media_type"] == "image/png"
    assert (second["resolution"], second["aspect_ratio"]) == ("4k", "9:16")
    assert "seconds" not in second


async def test_money_for_the_longest_video_is_held(open_gateway: OpenGateway) -> None:
    """The text decides how long it takes, and `seconds` does not."""
    heygen = HeyGen()
    async with gateway_for(open_gateway, "heygen", heygen) as running:
        started = await running.video(model=MODEL, **SPEAKER, seconds=1)
        assert await running.money() == (CREDIT - 4_500_000_000, 4_500_000_000)
        await running.wait_for_video(started.json["id"])
        assert await running.money() == (CREDIT - 620_000_000, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_reference": None}, "input_reference"),
        ({"prompt": "x" * 901}, "900"),
        ({"voice_settings": {"speed": 0.5}}, "voice_settings"),
        ({"generate_audio": False}, "generate_audio"),
    ],
)
async def test_what_is_refused_at_once(open_gateway: OpenGateway, change: dict[str, object], message: str) -> None:
    heygen = HeyGen()
    body = {name: value for name, value in {**SPEAKER, **change}.items() if value is not None}
    async with gateway_for(open_gateway, "heygen", heygen) as running:
        with pytest.raises(InvalidRequest, match=message):
            await create_video(running, model=MODEL, **body)
    assert not heygen.received("create")


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (failed("render_failed", "The video could not be rendered."), "UPSTREAM_ERROR"),
        (failed("moderation_failed", "The image was refused."), "CONTENT_POLICY_VIOLATION"),
    ],
)
async def test_failures_are_free(open_gateway: OpenGateway, fate: dict[str, object], code: str) -> None:
    heygen = HeyGen()
    heygen.next_states.append(("pending", fate))
    async with gateway_for(open_gateway, "heygen", heygen) as running:
        video = await create_video(running, model=MODEL, **SPEAKER)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (CREDIT, 0)


async def test_a_text_without_a_voice_is_rejected_by_heygen(open_gateway: OpenGateway) -> None:
    heygen = HeyGen()
    async with gateway_for(open_gateway, "heygen", heygen) as running:
        video = await create_video(running, model=MODEL, prompt="Hello.", input_reference=SPEAKER["input_reference"])
        assert (video["status"], "voice_id is invalid" in video["error"]["message"]) == ("failed", True)
        assert await running.money() == (CREDIT, 0)
