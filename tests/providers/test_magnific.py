"""Magnific through the gateway, against a fake that refuses what its description refuses."""

from decimal import Decimal

import pytest

from penstock.accounts.prices import quote
from penstock.errors import InvalidRequest
from penstock.providers.magnific import PROVIDER
from penstock.schema import Input, Request
from penstock.values import dollars
from tests.fake_providers.magnific import Magnific
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, edit_image, gateway_for


async def test_upscales(open_gateway: OpenGateway) -> None:
    magnific = Magnific()
    async with gateway_for(open_gateway, "magnific", magnific) as running:
        usual = await edit_image(running, model="magnific/creative", prompt=None)
        more = await edit_image(running, model="magnific/precision", prompt=None, scale_factor=4)
        assert [str(record["cost"]) for record in (usual, more)] == ["0.119", "0.238"]
        with pytest.raises(InvalidRequest, match="`2`, `4`, `8`, `16`"):
            await edit_image(running, model="magnific/creative", prompt=None, scale_factor=3)
        magnific.next_states.append(("CREATED", "FAILED"))
        failed = await edit_image(running, model="magnific/creative", prompt=None)
        assert failed["error_code"] == "UPSTREAM_ERROR"
    first, second, _ = [request.fields for request in magnific.received("create")]
    image = IMAGE_URI.partition(",")[2]
    assert (first, second) == ({"image": image}, {"image": image, "scale_factor": 4})


def test_each_doubling_is_priced_by_the_size_before_it() -> None:
    """4x of one megapixel is a doubling at one megapixel and one at four."""
    creative = PROVIDER.models[0]
    cases = [(1000, 2, "0.119"), (1700, 2, "0.238"), (1000, 4, "0.476"), (500, 8, "0.595"), (250, 16, "0.714")]
    for side, factor, usd in cases:
        inputs = (Input("image", "", "image/png", side, side, 1),)
        request = Request(task="upscale", model=creative.id, values={"scale_factor": factor}, inputs=inputs)
        assert dollars(quote(creative, request).total) == Decimal(usd), (side, factor)
