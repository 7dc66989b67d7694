"""A whole gateway in front of a simulated vendor: what a provider's tests let callers do, and how it ended."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from penstock import flow
from tests.house import House, OpenHouse
from tests.upstreams.lab import KEY_ENV, png
from tests.upstreams.server import Vendor, serving

PICTURE = "data:image/png;base64," + base64.b64encode(png(64, 48)).decode()
LATER = {"prefer": "respond-async"}  # jobs are polled, and time has to pass for that


@asynccontextmanager
async def house_of(open_house: OpenHouse, slug: str, vendor: Vendor, path: str = "") -> AsyncIterator[House]:
    """The provider is as it comes, but for its address; its credential is the lab's."""
    async with (
        serving(vendor),
        open_house(providers={slug: {"base_url": vendor.url + path, "key_env": KEY_ENV}}) as house,
    ):
        yield house


async def image(house: House, **body: Any) -> dict[str, Any]:
    """The record of an image that was asked for, once it has ended."""
    return await house.ended((await house.image(headers=LATER, **body))["id"])


async def edit(house: House, **body: Any) -> dict[str, Any]:
    wish = {"image": PICTURE, "prompt": "add a hat", **body}
    call = house.call(wish, endpoint="/compat/v1/images/edits", headers=LATER)
    return await house.ended((await flow.edit_images(house.gateway, call)).json["id"])


async def film(house: House, **body: Any) -> dict[str, Any]:
    """The video, once it has ended."""
    started = await house.video(**body)
    shown: dict[str, Any] = await house.finished(started.json["id"])
    return shown
