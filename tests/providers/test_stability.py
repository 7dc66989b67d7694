"""Stability AI: the gateway against a fake made after the documentation; its client library is for an older API."""

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.scripted import png
from tests.fake_providers.server import responds
from tests.fake_providers.stability import FILTERED, MODERATED, Stability
from tests.gateway import OpenGateway
from tests.providers.calls import MASK_URI, create_image, edit_image, gateway_for, mask_seen


async def test_images(open_gateway: OpenGateway) -> None:
    stability = Stability()
    async with gateway_for(open_gateway, "stability", stability) as running:
        record = await create_image(running, model="sd3.5-large", n=2, size="1792x1024")
        assert (record["status"], str(record["cost"])) == ("completed", "0.13")
        assert (await create_image(running, model="stability/ultra"))["status"] == "completed"
    first, _, last = stability.received("generate")
    assert first.fields == {
        "prompt": "a pear", "aspect_ratio": "16:9", "output_format": "png", "mode": "text-to-image",
        "model": "sd3.5-large",
    }  # fmt: skip
    assert (last.path, "model" in last.fields) == ("/v2beta/stable-image/generate/ultra", False)


async def test_a_mask_is_white_where_to_edit(open_gateway: OpenGateway) -> None:
    stability = Stability()
    async with gateway_for(open_gateway, "stability", stability) as running:
        assert (await edit_image(running, model="stability/inpaint", mask=MASK_URI))["status"] == "completed"
        with pytest.raises(InvalidRequest, match="`mask` is required by stability/inpaint"):
            await edit_image(running, model="stability/inpaint")
    sent = stability.received("edit")[0].fields
    assert (sent["image"], mask_seen(sent["mask"])) == (png(64, 48), ("L", 255, 0))


async def test_edits_without_a_mask_have_a_strength(open_gateway: OpenGateway) -> None:
    stability = Stability()
    async with gateway_for(open_gateway, "stability", stability) as running:
        assert (await edit_image(running, model="sd3.5-large"))["status"] == "completed"
    sent = stability.received("generate")[0].fields
    assert (sent["mode"], sent["strength"]) == ("image-to-image", "0.7")


async def test_upscaling_only_by_four(open_gateway: OpenGateway) -> None:
    stability = Stability()
    async with gateway_for(open_gateway, "stability", stability) as running:
        record = await edit_image(running, model="stability/fast-upscale", prompt=None, scale_factor=4)
        assert (record["status"], str(record["cost"])) == ("completed", "0.02")
        with pytest.raises(InvalidRequest, match="must be `4`"):
            await edit_image(running, model="stability/fast-upscale", scale_factor=2)


async def test_upscaling_that_is_waited_for(open_gateway: OpenGateway) -> None:
    stability = Stability()
    async with gateway_for(open_gateway, "stability", stability) as running:
        record = await edit_image(running, model="stability/creative-upscale", prompt="a fox")
        assert (record["status"], str(record["cost"])) == ("completed", "0.6")
    assert len(stability.received("result")) == 3


async def test_a_filtered_result_of_a_job(open_gateway: OpenGateway) -> None:
    stability = Stability()
    stability.next_states.append(("in-progress", "CONTENT_FILTERED"))
    async with gateway_for(open_gateway, "stability", stability) as running:
        record = await edit_image(running, model="stability/creative-upscale", prompt="a fox")
        assert record["error_code"] == "CONTENT_POLICY_VIOLATION"


@pytest.mark.parametrize(
    ("response", "status", "code"),
    [
        (MODERATED, 403, "CONTENT_POLICY_VIOLATION"),
        (FILTERED, 200, "CONTENT_POLICY_VIOLATION"),
        ({"id": "a1", "name": "payment_required", "errors": ["No credits."]}, 402, "UPSTREAM_ERROR"),
        ({"finish_reason": "SUCCESS", "seed": 1}, 200, "UPSTREAM_ERROR"),
        ({"id": "a1", "name": "rate_limit_exceeded", "errors": ["Slow down."]}, 429, "RATE_LIMITED"),
    ],
)
async def test_images_that_fail(open_gateway: OpenGateway, response: object, status: int, code: str) -> None:
    stability = Stability()
    stability.next("generate", responds(response, status))
    async with gateway_for(open_gateway, "stability", stability) as running:
        record = await create_image(running, model="stability/core")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await running.money() == (10_000_000_000, 0), "nothing is charged"
