"""Hand out produced files to whoever holds a signed address."""

from collections.abc import AsyncIterator

from penstock.api.spec import Query
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.schema import Answer, Call

FILE_QUERY = (
    Query(name="exp", required=True, about="Until when the address works, in Unix time."),
    Query(name="sig", required=True, about="Signature of the gateway."),
)


async def media(gateway: Gateway, call: Call) -> Answer:
    """The signature in the query is the permission; ranges are served where the file is."""
    opened = await gateway.media.open(call.path["media_id"], call.query, call.headers.get("range"))
    if opened.status == 416:
        await _close(opened.chunks)
        problem = InvalidRequest("The file is shorter than this Range.", param="range")
        kept = {name: value for name, value in opened.headers.items() if name in ("accept-ranges", "content-range")}
        return Answer(status=416, json=problem.body(), headers=kept)
    # The first bytes are fetched before anything is promised: a file that is gone is a 404, not half an answer.
    first = await anext(opened.chunks, b"")
    return Answer(status=opened.status, chunks=_whole(first, opened.chunks), headers=opened.headers)


async def _whole(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for chunk in rest:
            yield chunk
    finally:
        await _close(rest)


async def _close(chunks: AsyncIterator[bytes]) -> None:
    if (close := getattr(chunks, "aclose", None)) is not None:
        await close()
