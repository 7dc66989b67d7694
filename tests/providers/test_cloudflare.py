"""Cloudflare Workers AI through the gateway, against a fake that refuses what the models' pages refuse."""

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers import faults
from tests.fake_providers.cloudflare import Cloudflare
from tests.gateway import OpenGateway
from tests.providers.calls import create_image, gateway_for

SCHNELL = "cloudflare/flux-1-schnell"
KLEIN = "cloudflare/flux-2-klein-4b"


async def test_images(open_gateway: OpenGateway) -> None:
    cloudflare = Cloudflare()
    async with gateway_for(open_gateway, "cloudflare", cloudflare) as running:
        square = await create_image(running, model=SCHNELL, seed=7)
        wide = await create_image(running, model=KLEIN, size="1536x1024", n=2)
        assert [str(record["cost"]) for record in (square, wide)] == ["0.0006336", "0.003444"], "6 tiles, twice"
        with pytest.raises(InvalidRequest, match="`steps`"):
            await create_image(running, model=SCHNELL, steps=8)
    first, second, _ = cloudflare.received("run")
    assert first.path == "/run/@cf/black-forest-labs/flux-1-schnell"
    assert first.fields == {"prompt": "a pear", "seed": 7}
    assert second.fields == {"prompt": "a pear", "width": "1536", "height": "1024"}


async def test_failures(open_gateway: OpenGateway) -> None:
    cloudflare = Cloudflare()
    async with gateway_for(open_gateway, "cloudflare", cloudflare) as running:
        refused = await create_image(running, model=SCHNELL, prompt="nude")
        cloudflare.next("run", faults.raw(b"{}", "application/json", 500))
        broken = await create_image(running, model=KLEIN)
        assert [record["error_code"] for record in (refused, broken)] == ["CONTENT_POLICY_VIOLATION", "UPSTREAM_ERROR"]
        assert await running.money() == (10_000_000_000, 0)
