"""Masks are checked, stored in one form, and converted to the polarity of each provider."""

import io
from typing import Any

import pytest
from PIL import Image

from penstock.errors import InvalidRequest
from penstock.fields import UploadedFile
from penstock.imaging.formats import Polarity
from penstock.long_bodies.buffers import Buffer
from penstock.media.transfer import Transfer
from penstock.schema import Request
from penstock.values import InputFile, OrgId
from tests.fake_providers.scripted import mask, png
from tests.gateway import OpenGateway, sqlite_only

ORG = OrgId("org_1")

pytestmark = sqlite_only


def corners(data: Buffer) -> Any:
    """Mode, and the first and last pixel of the first row."""
    with Image.open(io.BytesIO(data)) as image:
        return image.mode, image.getpixel((0, 0)), image.getpixel((image.width - 1, 0))


async def load(transfer: Transfer, data: bytes, role: str = "mask") -> InputFile:
    return await transfer.load_input(role, UploadedFile(data), role, for_org=ORG)


async def test_a_mask_is_stored_in_one_form(open_gateway: OpenGateway) -> None:
    soft = Image.new("RGBA", (4, 1), (9, 9, 9, 7))
    soft.putpixel((0, 0), (200, 200, 200, 0))
    file = io.BytesIO()
    soft.save(file, "PNG")
    async with open_gateway(works=False) as running:
        loaded = await load(running.gateway.media_transfer, file.getvalue())
    assert corners(loaded.data) == ("RGBA", (0, 0, 0, 0), (255, 255, 255, 255)), (
        "only fully transparent pixels are edited"
    )
    assert (loaded.content_type, loaded.width, loaded.height) == ("image/png", 4, 1)


async def test_a_mask_without_transparency_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest, match="no fully transparent pixels, which mark the area") as caught:
            await load(running.gateway.media_transfer, png(8, 8))
        assert caught.value.param == "mask"
        assert (await load(running.gateway.media_transfer, png(8, 8), "image")).data == png(8, 8)


@pytest.mark.parametrize(
    ("polarity", "expected"),
    [
        ("alpha", ("RGBA", (0, 0, 0, 0), (255, 255, 255, 255))),
        ("white", ("L", 255, 0)),
        ("black", ("L", 0, 255)),
    ],
)
async def test_a_mask_is_converted_to_the_polarity_of_the_provider(
    open_gateway: OpenGateway, polarity: Polarity, expected: Any
) -> None:
    async with open_gateway(works=False, audited=False) as running:
        transfer = running.gateway.media_transfer
        inputs = [await load(transfer, png(8, 8), "image"), await load(transfer, mask(8, 8))]
        stored = await transfer.store_inputs(inputs, running.clock.now_ms())
        request = Request(task="edit", model="edit-1", values={}, inputs=tuple(record for record, _ in stored))
        images = await transfer.read_inputs(request, polarity, for_org=ORG)
    assert corners(images["mask"][0].data) == expected
    assert images["images"][0].data == png(8, 8), "other inputs are not changed"
