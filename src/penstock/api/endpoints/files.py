"""Download files, by signed URL or with the key of the organization that generated them."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from penstock.api import query
from penstock.api.problems import close_stream
from penstock.api.route import Query
from penstock.gateway import Gateway
from penstock.generations import retrieve, sounds
from penstock.media.thumbnails import THUMBNAIL_WIDTHS
from penstock.schema import Call, Response

_REDIRECT = Query(
    name="redirect",
    type="boolean",
    default=False,
    about="Respond with 307 and a signed URL of the file, which is the object store's where that signs URLs. So does "
    "`Prefer: redirect`.",
)
CONTENT_QUERY = (
    Query(
        name="variant",
        one_of=("video", "thumbnail", "spritesheet"),
        default="video",
        about="The video itself, one of its frames (WebP), or a sheet of frames (JPEG).",
    ),
    Query(name="index", type="integer", low=0, high=99, default=0, about="Which of several videos, counted from 0."),
    _REDIRECT,
)
SOUND_QUERY = (_REDIRECT,)
FILE_QUERY = (
    Query(name="exp", required=True, about="When the URL expires, in Unix time."),
    Query(name="sig", required=True, about="Signature that the gateway put into the URL."),
    Query(name="name", about="What the file is called when it is saved, without its ending: letters, digits, hyphens."),
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
    redirect = _wants_redirect(call, asked)
    return await read_first_chunk(await retrieve.video_content(gateway, call, asked["index"], redirect=redirect))


async def download_openrouter_video(gateway: Gateway, call: Call) -> Response:
    """Send an output of a video to clients of OpenRouter's API."""
    return await download_video(gateway, call)


async def download_sound(gateway: Gateway, call: Call) -> Response:
    """Send the file of a sound, or the range of it that was asked for."""
    redirect = _wants_redirect(call, query.read(SOUND_QUERY, call.query))
    return await read_first_chunk(await sounds.sound_content(gateway, call, redirect=redirect))


async def download_transcript(gateway: Gateway, call: Call) -> Response:
    """Send the file of a transcript, or the range of it that was asked for."""
    redirect = _wants_redirect(call, query.read(SOUND_QUERY, call.query))
    return await read_first_chunk(await sounds.sound_content(gateway, call, sounds.TRANSCRIPTS, redirect=redirect))


def _wants_redirect(call: Call, asked: Mapping[str, Any]) -> bool:
    return asked["redirect"] or "redirect" in call.headers.get("prefer", "").lower()


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
