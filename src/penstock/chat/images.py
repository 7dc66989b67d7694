"""Fetch the images of a chat call that its providers must not fetch themselves."""

import msgspec

from penstock.chat.messages import ChatImage
from penstock.chat.request import ChatRequest, with_images
from penstock.errors import InvalidRequest
from penstock.event_loop import run_aside
from penstock.media.transfer import Transfer
from penstock.models.routing import Route
from penstock.net.checked_urls import is_public_url
from penstock.providers.convert import data_uri
from penstock.values import OrgId

_MAX_FETCHED = 16


async def inline_images(
    chat: ChatRequest, route: Route, transfer: Transfer, org_id: OrgId, max_bytes: int
) -> ChatRequest:
    """Return the call with data URIs instead of the URLs that a provider must not get; they may have `max_bytes`
    together.

    A provider in the operator's network gets no URL: it would fetch it without the egress rules. Nobody gets a URL that
    only the operator's exceptions allow, because it may mean something else elsewhere. All other URLs stay. Raises
    InvalidRequest, which names the message and the part.
    """
    for_own_network = any(candidate.in_own_network for candidate in route.candidates)
    fetched = [image for image in chat.images if image.is_url and (for_own_network or not is_public_url(image.source))]
    if len(fetched) > _MAX_FETCHED:
        raise InvalidRequest(
            f"`messages` may have at most {_MAX_FETCHED} images with a URL for this model.", param="messages"
        )
    inlined: list[ChatImage] = []
    for image in fetched:
        inlined.append(await _fetch(image, transfer, org_id))
        if sum(len(each.source) for each in inlined) > max_bytes:
            message = f"The images of `messages` may have at most {max_bytes} bytes together, as data URIs."
            raise InvalidRequest(message, param=image.param)
    return with_images(chat, inlined)


async def _fetch(image: ChatImage, transfer: Transfer, org_id: OrgId) -> ChatImage:
    loaded = await transfer.load_input("image", image.source, image.param, for_org=org_id)
    source = await run_aside(len(loaded.data), lambda: str(data_uri(loaded)))
    return msgspec.structs.replace(image, source=source)
