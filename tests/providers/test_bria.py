"""Bria through the gateway, against a fake that refuses what Bria's description refuses."""

import base64
from typing import Any

import pytest

from tests.fake_providers.bria import Bria
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, MASK_URI, create_image, edit_image, gateway_for, mask_seen

IMAGE = IMAGE_URI.partition(",")[2]


async def test_images_edits_and_upscales(open_gateway: OpenGateway) -> None:
    bria = Bria()
    async with gateway_for(open_gateway, "bria", bria) as running:
        made = await create_image(running, model="bria/fibo", size="1024x1792", negative_prompt="fog")
        lite = await create_image(running, model="bria/fibo-lite")
        edited = await edit_image(running, model="bria/fibo-edit", mask=MASK_URI)
        upscaled = await edit_image(running, model="bria/increase-resolution", prompt=None, scale_factor=4)
        assert [str(each["cost"]) for each in (made, lite, edited, upscaled)] == ["0.03", "0.02", "0.04", "0.02"]
    first, _, third, fourth = [request.fields for request in bria.received("create")]
    assert first == {"prompt": "a pear", "negative_prompt": "fog", "aspect_ratio": "9:16"}
    assert (third["images"], third["instruction"]) == ([IMAGE], "add a hat")
    assert mask_seen(base64.b64decode(third["mask"]))[1:] == (255, 0), "white is edited"
    assert fourth == {"image": IMAGE, "desired_increase": 4}


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        ({"code": 422, "message": "Visual output content moderation failed"}, "CONTENT_POLICY_VIOLATION"),
        ({"code": 500, "message": "Internal error"}, "UPSTREAM_ERROR"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: dict[str, Any], code: str) -> None:
    bria = Bria()
    bria.next_states.append(("IN_PROGRESS", fate))
    async with gateway_for(open_gateway, "bria", bria) as running:
        assert (await create_image(running, model="bria/fibo"))["error_code"] == code
        refused = await create_image(running, model="bria/fibo", prompt="nude")
        assert refused["error_code"] == "CONTENT_POLICY_VIOLATION"
        assert await running.money() == (10_000_000_000, 0)
