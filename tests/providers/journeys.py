"""A whole gateway in front of a simulated vendor: what a provider's tests let callers do, and how it ended."""

import base64
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from PIL import Image

from penstock.chat import endpoint
from penstock.generations import endpoints
from tests.house import House, OpenHouse
from tests.upstreams.lab import KEY_ENV, mask, png
from tests.upstreams.server import Vendor, serving

PICTURE = "data:image/png;base64," + base64.b64encode(png(64, 48)).decode()
MASK = "data:image/png;base64," + base64.b64encode(mask(64, 48)).decode()  # the left half is to be edited
LATER = {"prefer": "respond-async"}  # jobs are polled, and time has to pass for that


@asynccontextmanager
async def house_of(open_house: OpenHouse, slug: str, vendor: Vendor, path: str = "") -> AsyncIterator[House]:
    """The provider is as it comes, but for its address; its credential is the lab's."""
    async with houses_of(open_house, {slug: (vendor, path)}) as house:
        yield house


@asynccontextmanager
async def houses_of(
    open_house: OpenHouse, vendors: Mapping[str, tuple[Vendor, str]], **settings: Any
) -> AsyncIterator[House]:
    """Several providers at once, by slug."""
    async with AsyncExitStack() as stack:
        for vendor, _ in vendors.values():
            await stack.enter_async_context(serving(vendor))
        providers = {
            slug: {"base_url": vendor.url + path, "key_env": KEY_ENV} for slug, (vendor, path) in vendors.items()
        }
        yield await stack.enter_async_context(open_house(providers=providers, **settings))


async def image(house: House, **body: Any) -> dict[str, Any]:
    """The record of an image that was asked for, once it has ended."""
    return await house.ended((await house.image(headers=LATER, **body))["id"])


async def edit(house: House, **body: Any) -> dict[str, Any]:
    wish = {"image": PICTURE, "prompt": "add a hat", **body}
    call = house.call(wish, endpoint="/compat/v1/images/edits", headers=LATER)
    return await house.ended((await endpoints.edit_images(house.gateway, call)).json["id"])


def mask_seen(data: bytes) -> tuple[str, Any, Any]:
    """How a provider got the mask: its mode, what is to be edited, and what is not."""
    with Image.open(io.BytesIO(data)) as image:
        return image.mode, image.getpixel((0, 0)), image.getpixel((image.width - 1, 0))


async def film(house: House, **body: Any) -> dict[str, Any]:
    """The video, once it has ended."""
    started = await house.video(**body)
    shown: dict[str, Any] = await house.finished(started.json["id"])
    return shown


async def talk(house: House, **body: Any) -> tuple[str, dict[str, Any]]:
    """What a chat answered, as it came, and its record."""
    wish = {"messages": [{"role": "user", "content": "Name a colour."}], **body}
    call = house.call(wish, endpoint="/compat/v1/chat/completions")
    answer = await endpoint.complete(house.gateway, call)
    text = answer.body or b""
    if answer.chunks:
        text = b"".join([chunk async for chunk in answer.chunks])
    return text.decode(), await noted(house, call.id)


async def noted(house: House, request_id: str) -> dict[str, Any]:
    """The record of a chat, which is written beside the answer."""

    async def met() -> bool:
        return await house.gateway.requests.find(house.caller.org_id, request_id) is not None

    await house.until(met)
    return await house.ended(request_id)
