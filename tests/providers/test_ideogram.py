"""Ideogram: the gateway against a fake made after the documentation; there is no client library."""

import pytest

from tests.fake_providers.ideogram import Ideogram
from tests.fake_providers.scripted import png
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway
from tests.providers.calls import MASK_URI, create_image, edit_image, gateway_for, mask_seen


@pytest.mark.parametrize(("quality", "speed", "usd"), [("low", "TURBO", "0.06"), ("hd", "QUALITY", "0.18")])
async def test_images_by_quality(open_gateway: OpenGateway, quality: str, speed: str, usd: str) -> None:
    ideogram = Ideogram()
    async with gateway_for(open_gateway, "ideogram", ideogram) as running:
        record = await create_image(running, model="ideogram-v3", n=2, size="16:10", quality=quality)
        assert (record["status"], str(record["cost"])) == ("completed", usd)
    assert ideogram.received("make")[0].fields == {
        "prompt": "a pear", "num_images": "2", "aspect_ratio": "16x10", "rendering_speed": speed,
    }  # fmt: skip
    assert all("api-key" not in request.headers for request in ideogram.received("files"))


async def test_more_than_one_call_can_make(open_gateway: OpenGateway) -> None:
    ideogram = Ideogram()
    async with gateway_for(open_gateway, "ideogram", ideogram) as running:
        record = await create_image(running, model="ideogram-v3", n=10)
        assert (record["status"], str(record["cost"])) == ("completed", "0.6")
    assert sorted(request.fields["num_images"] for request in ideogram.received("make")) == ["2", "8"]


async def test_the_enhanced_prompt_is_shown(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "ideogram", Ideogram()) as running:
        made = await running.image(model="ideogram-v4", size="2048x2048")
        assert [item["revised_prompt"] for item in made["data"]] == ["a pear, in detail"]
        assert made["metadata"]["executed_model"] == "ideogram/ideogram-v4/generate"


async def test_edits_with_a_mask_and_without(open_gateway: OpenGateway) -> None:
    ideogram = Ideogram()
    async with gateway_for(open_gateway, "ideogram", ideogram) as running:
        assert (await edit_image(running, model="ideogram-v3", mask=MASK_URI))["status"] == "completed"
        assert (await edit_image(running, model="ideogram-v3"))["status"] == "completed"
    masked, free = ideogram.received("make")
    assert (masked.path, free.path) == ("/v1/ideogram-v3/inpaint", "/v1/ideogram-v3/remix")
    assert (masked.fields["image"], mask_seen(masked.fields["mask"])) == (png(64, 48), ("L", 0, 255)), "black is edited"
    assert "mask" not in free.fields


async def test_the_default_quality_of_4_5_is_high_for_images_and_medium_for_edits(open_gateway: OpenGateway) -> None:
    ideogram = Ideogram()
    async with gateway_for(open_gateway, "ideogram", ideogram) as running:
        image = await create_image(running, model="ideogram-v4.5", size="16:9")
        edit = await edit_image(running, model="ideogram-v4.5", mask=MASK_URI)
        precise = await edit_image(running, model="ideogram/v4.5-precise-edit", quality="high")
    assert [str(record["cost"]) for record in (image, edit, precise)] == ["0.1", "0.06", "0.22"]
    made, edited, kept = (request.fields for request in ideogram.received("make_v2"))
    assert made == {"prompt": "a pear", "num_images": "1", "size": "2560x1440"}
    assert mask_seen(edited["mask"]) == ("L", 0, 255), "black is edited"
    assert (kept["image"], kept["quality"]) == (png(64, 48), "high")


async def test_some_of_them_unsafe(open_gateway: OpenGateway) -> None:
    ideogram = Ideogram()
    ideogram.unsafe.extend([True, False])
    async with gateway_for(open_gateway, "ideogram", ideogram) as running:
        record = await create_image(running, model="ideogram-v3", n=2)
        assert (record["status"], str(record["cost"])) == ("completed", "0.12"), "the other one was asked for again"


@pytest.mark.parametrize(
    ("response", "status", "code"),
    [
        ({"error": "Prompt failed the safety check."}, 422, "CONTENT_POLICY_VIOLATION"),
        ({"data": [{"is_image_safe": False, "url": ""}]}, 200, "CONTENT_POLICY_VIOLATION"),
        ({"data": []}, 200, "ALL_PROVIDERS_EXHAUSTED"),
        ({"error": "Invalid API key"}, 401, "ALL_PROVIDERS_EXHAUSTED"),
        ({"error": "Too many requests in flight."}, 429, "RATE_LIMITED"),
    ],
)
async def test_images_that_fail(open_gateway: OpenGateway, response: object, status: int, code: str) -> None:
    ideogram = Ideogram()
    ideogram.next("make", responds(response, status))
    async with gateway_for(open_gateway, "ideogram", ideogram) as running:
        record = await create_image(running, model="ideogram-v4")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await running.money() == (10_000_000_000, 0), "nothing is charged"
