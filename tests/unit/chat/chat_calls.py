"""Chat calls through a gateway, and their records."""

import json
from typing import Any

from penstock.chat.endpoint import complete_chat
from penstock.schema import Response
from tests.gateway import ENDED, RunningGateway

ASK = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}


async def chat(running: RunningGateway, **body: Any) -> Response:
    return await complete_chat(running.gateway, running.call({**ASK, **body}, endpoint="/compat/v1/chat/completions"))


async def last_record(running: RunningGateway) -> dict[str, Any]:
    """Return the newest request, after it has ended."""
    return (await ended_records(running, 1))[-1]


async def ended_records(running: RunningGateway, count: int) -> list[dict[str, Any]]:
    async def met() -> bool:
        return sum(record["status"] in ENDED for record in await running.records()) >= count

    await running.wait_until(met, 0)
    return await running.records()


async def read_stream(response: Response) -> bytes:
    assert response.chunks is not None
    return b"".join([chunk async for chunk in response.chunks])


def chunk_event(delta: Any, index: int = 0, **fields: Any) -> bytes:
    """An event of a chat stream with every documented field."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk = {**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}], **fields}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
