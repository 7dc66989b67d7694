"""Hand out produced files: to whoever holds a signed address, and to the caller who had them made."""

from collections.abc import AsyncIterator

import msgspec

from penstock.api.problems import close
from penstock.api.route import Query
from penstock.gateway import Gateway
from penstock.generations import retrieve
from penstock.schema import Call, Response

FILE_QUERY = (
    Query(name="exp", required=True, about="Until when the address works, in Unix time."),
    Query(name="sig", required=True, about="Signature of the gateway."),
)


async def media(gateway: Gateway, call: Call) -> Response:
    """The signature in the query is the permission; ranges are served where the file is."""
    opened = await gateway.media.open(call.path["media_id"], call.query, call.headers.get("range"))
    return await _begun(Response(status=opened.status, chunks=opened.chunks, headers=opened.headers))


async def video_content(gateway: Gateway, call: Call) -> Response:
    return await _begun(await retrieve.video_content(gateway, call))


async def _begun(answer: Response) -> Response:
    """The first bytes are fetched before anything is promised: a file that is gone is a 404, not half an answer."""
    if answer.chunks is None or answer.status == 416:
        return answer
    first = await anext(answer.chunks, b"")
    return msgspec.structs.replace(answer, chunks=_whole(first, answer.chunks))


async def _whole(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for chunk in rest:
            yield chunk
    finally:
        await close(rest)
