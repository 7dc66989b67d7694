"""Topaz through the gateway, against a fake that refuses what Topaz's description refuses."""

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.topaz import Topaz
from tests.gateway import OpenGateway
from tests.providers.calls import edit_image, gateway_for


async def test_upscales(open_gateway: OpenGateway) -> None:
    topaz = Topaz()
    async with gateway_for(open_gateway, "topaz", topaz) as running:
        usual = await edit_image(running, model="topaz/wonder-3.5", prompt=None)
        more = await edit_image(running, model="topaz/bloom-2", prompt="a forest", scale_factor=3)
        assert [str(record["cost"]) for record in (usual, more)] == ["0.08", "0.32"]
        with pytest.raises(InvalidRequest, match="from 1 to 6"):
            await edit_image(running, model="topaz/wonder-3.5", prompt=None, scale_factor=8)
    first, second = [request.fields for request in topaz.received("create")]
    assert (first["model"], first["output_width"], first["output_height"]) == ("Wonder 3.5", "128", "96")
    assert (second["prompt"], second["output_width"], "prompt" in first) == ("a forest", "192", False)


async def test_failures(open_gateway: OpenGateway) -> None:
    topaz = Topaz()
    topaz.next_states.append(("Pending", "Failed"))
    async with gateway_for(open_gateway, "topaz", topaz) as running:
        record = await edit_image(running, model="topaz/wonder-3.5", prompt=None)
        assert record["error_code"] == "UPSTREAM_ERROR"
        assert await running.money() == (10_000_000_000, 0)
