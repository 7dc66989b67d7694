"""Krea through the gateway, against a fake that refuses what Krea's description refuses."""

from typing import Any

import pytest

from tests.fake_providers.krea import Krea
from tests.gateway import OpenGateway
from tests.providers.calls import create_image, gateway_for


async def test_images(open_gateway: OpenGateway) -> None:
    krea = Krea()
    async with gateway_for(open_gateway, "krea", krea) as running:
        for name, cost in (("large", "0.06"), ("medium", "0.03"), ("medium-turbo", "0.015")):
            record = await create_image(running, model=f"krea/krea-2-{name}", size="1792x1024", creativity="low")
            assert (record["status"], str(record["cost"])) == ("completed", cost)
    assert krea.received("create")[0].fields == {
        "prompt": "a pear",
        "aspect_ratio": "16:9",
        "resolution": "1K",
        "creativity": "low",
    }


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        ({"status": "failed", "error": "The prompt was moderated."}, "CONTENT_POLICY_VIOLATION"),
        ("failed", "UPSTREAM_ERROR"),
        ("cancelled", "UPSTREAM_ERROR"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: Any, code: str) -> None:
    krea = Krea()
    krea.next_states.append(("queued", fate))
    async with gateway_for(open_gateway, "krea", krea) as running:
        assert (await create_image(running, model="krea/krea-2-medium"))["error_code"] == code
        assert await running.money() == (10_000_000_000, 0)
