"""Chat calls through a gateway, and their records."""

from typing import Any

from penstock.chat.endpoint import complete
from penstock.schema import Response
from tests.gateway import ENDED, RunningGateway

ASK = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}


async def chat(running: RunningGateway, **body: Any) -> Response:
    return await complete(running.gateway, running.call({**ASK, **body}, endpoint="/compat/v1/chat/completions"))


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
