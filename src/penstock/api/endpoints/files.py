"""Download files, by signed URL or with the key of the organization that generated them."""

from collections.abc import AsyncIterator

import msgspec

from penstock.api import query
from penstock.api.problems import close_stream
from penstock.api.route import Query
from penstock.gateway import Gateway
from penstock.generations import retrieve, sounds
from penstock.media.thumbnails import THUMBNAIL_WIDTHS
from penstock.schema import Call, Response

CONTENT_QUERY = (
    Query(
        name="variant",
        one_of=("video", "thumbnail", "spritesheet"),
        default="video",
        about="The video itself, one of its frames (WebP), or a sheet of frames (JPEG).",
    ),
    Query(name="index", type="integer", low=0, high=99, default=0, about="Which of several videos, counted from 0."),
)
FILE_QUERY = (
    Query(name="exp", required=True, about="When the URL expires, in Unix time."),
    Query(name="sig", required=True, about="Signature that the gateway put into the URL."),
    Query(name="share", about="Part of a URL by which a file was shared."),
    Query(
        name="w",
        one_of=tuple(str(width) for width in THUMBNAIL_WIDTHS),
        about="Return a WebP at most so many pixels wide instead of the file: a small copy, or a frame of a video.",
    ),
)


async def download_file(gateway: Gateway, call: Call) -> Response:
    """Send a file, or the range of it that was asked for; the signature in the query is the permission."""
    return await read_first_chunk(
        await gateway.media.open(call.path["media_id"], call.query, call.headers.get("range"))
    )


async def download_video(gateway: Gateway, call: Call) -> Response:
    """Send the first output of a video, or the range of it that was asked for, or an image made from it."""
    asked = query.read(CONTENT_QUERY, call.query)
    if asked["variant"] != "video":
        return await retrieve.video_preview(gateway, call, asked["variant"], asked["index"])
    return await read_first_chunk(await retrieve.video_content(gateway, call, asked["index"]))


async def download_openrouter_video(gateway: Gateway, call: Call) -> Response:
    """Send an output of a video to clients of OpenRouter's API."""
    return await download_video(gateway, call)


async def download_sound(gateway: Gateway, call: Call) -> Response:
    """Send the file of a sound, or the range of it that was asked for."""
    return await read_first_chunk(await sounds.sound_content(gateway, call))


async def read_first_chunk(response: Response) -> Response:
    """Read the first chunk before the status is sent, so that a missing file is a 404 and not half a response."""
    if response.chunks is None or response.status == 416:
        return response
    first = await anext(response.chunks, b"")
    return msgspec.structs.replace(response, chunks=_chain(first, response.chunks))


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for chunk in rest:
            yield chunk
    finally:
        await close_stream(rest)
