"""Masks: checked at the door, kept in one form, and handed to each provider in the polarity it wants."""

import io
from typing import Any

import pytest
from PIL import Image

from penstock.errors import InvalidRequest
from penstock.imaging.convert import Polarity
from penstock.media.transfer import LoadedInput, Transfer
from penstock.schema import Request, UploadedFile
from tests.fake_providers.scripted import mask, png
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only


def corners(data: bytes) -> Any:
    """Mode, and the first and last pixel of the first row."""
    with Image.open(io.BytesIO(data)) as image:
        return image.mode, image.getpixel((0, 0)), image.getpixel((image.width - 1, 0))


async def loaded(gather: Transfer, data: bytes, role: str = "mask") -> LoadedInput:
    return await gather.load(role, UploadedFile(data), role)


async def test_mask_is_kept_in_one_form(open_gateway: OpenGateway) -> None:
    soft = Image.new("RGBA", (4, 1), (9, 9, 9, 7))
    soft.putpixel((0, 0), (200, 200, 200, 0))
    file = io.BytesIO()
    soft.save(file, "PNG")
    async with open_gateway(works=False) as running:
        made = await loaded(running.gateway.transfer, file.getvalue())
    assert corners(made.data) == ("RGBA", (0, 0, 0, 0), (255, 255, 255, 255)), "only the fully transparent is edited"
    assert (made.content_type, made.width, made.height) == ("image/png", 4, 1)


async def test_mask_that_marks_nothing_is_refused_at_the_door(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest, match="fully transparent pixels mark the area") as caught:
            await loaded(running.gateway.transfer, png(8, 8))
        assert caught.value.param == "mask"
        assert (await loaded(running.gateway.transfer, png(8, 8), "image")).data == png(8, 8)


@pytest.mark.parametrize(
    ("polarity", "shown"),
    [
        ("alpha", ("RGBA", (0, 0, 0, 0), (255, 255, 255, 255))),
        ("white", ("L", 255, 0)),
        ("black", ("L", 0, 255)),
    ],
)
async def test_mask_as_a_provider_wants_it(open_gateway: OpenGateway, polarity: Polarity, shown: Any) -> None:
    async with open_gateway(works=False, audited=False) as running:
        gather = running.gateway.transfer
        pictures = [await loaded(gather, png(8, 8), "image"), await loaded(gather, mask(8, 8))]
        stored = await gather.store_inputs(pictures, running.clock.now_ms())
        request = Request(task="edit", model="touch", values={}, inputs=tuple(one for one, _ in stored))
        found = await gather.inputs(request, polarity)
    assert corners(found["mask"][0].data) == shown
    assert found["images"][0].data == png(8, 8), "pictures stay as they are"
