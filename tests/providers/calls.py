"""A gateway in front of a fake provider, and the calls that provider tests make."""

import base64
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from PIL import Image

from penstock.chat import endpoint
from penstock.generations import endpoints
from tests.fake_providers.exchange import ReceivedRequest
from tests.fake_providers.scripted import KEY_ENV, mask, png
from tests.fake_providers.server import FakeProvider, serving
from tests.gateway import OpenGateway, RunningGateway
from tests.providers import descriptions

IMAGE_URI = "data:image/png;base64," + base64.b64encode(png(64, 48)).decode()
MASK_URI = "data:image/png;base64," + base64.b64encode(mask(64, 48)).decode()  # the left half is to be edited
LATER = {"prefer": "respond-async"}  # jobs are polled, and time has to pass for that


@asynccontextmanager
async def gateway_for(
    open_gateway: OpenGateway, slug: str, provider: FakeProvider, path: str = ""
) -> AsyncIterator[RunningGateway]:
    """A gateway with one provider at the URL of a fake; its credential is the scripted provider's."""
    async with gateways_for(open_gateway, {slug: (provider, path)}) as running:
        yield running


@asynccontextmanager
async def gateways_for(
    open_gateway: OpenGateway, fakes: Mapping[str, tuple[FakeProvider, str]], **settings: Any
) -> AsyncIterator[RunningGateway]:
    """A gateway with several providers at the URLs of fakes, by slug."""
    async with AsyncExitStack() as stack:
        for slug, (provider, _) in fakes.items():
            provider.find_problem = partial(find_problem, slug)
            await stack.enter_async_context(serving(provider))
        providers = {
            slug: {"base_url": provider.url + path, "key_env": KEY_ENV} for slug, (provider, path) in fakes.items()
        }
        yield await stack.enter_async_context(open_gateway(providers=providers, **settings))


def find_problem(slug: str, request: ReceivedRequest) -> str | None:
    """Why the provider itself would refuse a request, by the descriptions that others have published."""
    is_chat = request.path.endswith("/chat/completions")
    if request.method != "POST" or is_chat or slug not in descriptions.descriptions():
        return None
    is_form = not request.headers.get("content-type", "").startswith("application/json")
    fields: Any = request.fields
    if isinstance(fields, list):  # of one task
        (fields,) = fields
    return descriptions.first_breach(slug, request.path.partition("?")[0], fields, is_form=is_form)


async def create_image(running: RunningGateway, **body: Any) -> dict[str, Any]:
    """Create an image and return its request record when it has ended."""
    return await running.wait_for_request((await running.image(headers=LATER, **body))["id"])


async def edit_image(running: RunningGateway, **body: Any) -> dict[str, Any]:
    fields = {"image": IMAGE_URI, "prompt": "add a hat", **body}
    call = running.call(fields, endpoint="/compat/v1/images/edits", headers=LATER)
    return await running.wait_for_request((await endpoints.edit_images(running.gateway, call)).json["id"])


def mask_seen(data: bytes) -> tuple[str, Any, Any]:
    """A received mask: its mode, a pixel of the area to edit, and one of the rest."""
    with Image.open(io.BytesIO(data)) as image:
        return image.mode, image.getpixel((0, 0)), image.getpixel((image.width - 1, 0))


async def create_video(running: RunningGateway, **body: Any) -> dict[str, Any]:
    """Create a video and return it when it has ended."""
    started = await running.video(**body)
    shown: dict[str, Any] = await running.wait_for_video(started.json["id"])
    return shown


async def create_chat(running: RunningGateway, **body: Any) -> tuple[str, dict[str, Any]]:
    """Complete a chat; return the response text and the request record."""
    fields = {"messages": [{"role": "user", "content": "Name a colour."}], **body}
    call = running.call(fields, endpoint="/compat/v1/chat/completions")
    response = await endpoint.complete_chat(running.gateway, call)
    text = bytes(response.body or b"")
    if response.chunks:
        text = b"".join([chunk async for chunk in response.chunks])
    return text.decode(), await chat_record(running, call.id)


async def chat_record(running: RunningGateway, request_id: str) -> dict[str, Any]:
    """The request record of a chat, which is written after the response."""

    async def met() -> bool:
        return await running.gateway.requests.get(running.caller.org_id, request_id) is not None

    await running.wait_until(met)
    return await running.wait_for_request(request_id)
