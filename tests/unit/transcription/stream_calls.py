"""Calls of transcription whose provider streams."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from penstock.schema import Response
from tests.fake_providers.listening import ListeningVendors
from tests.fake_providers.server import Act, FakeCall, event_bytes, serving
from tests.gateway import Installation, RunningGateway
from tests.unit.transcription.listen_calls import listen

MODEL = "gpt-transcribe"  # priced by the second, and streamed by its vendor
COST = 2 * 75_000  # of two seconds
STREAM = ("stream", "true")
DELTA = b'{"type":"transcript.text.delta","delta":"The"}'
DONE = b'{"type":"transcript.text.done","text":"The"}'


@asynccontextmanager
async def vendor(installation: Installation, **settings: Any) -> AsyncIterator[tuple[RunningGateway, ListeningVendors]]:
    """A gateway whose only provider streams."""
    async with serving(ListeningVendors()) as vendors:
        installation.environ["OPENAI_API_KEY"] = "secret"
        async with installation.open(providers={"openai": {"base_url": vendors.url}}, **settings) as running:
            yield running, vendors


async def heard(running: RunningGateway, *fields: tuple[str, str], **changes: Any) -> Response:
    return await listen(running, STREAM, *fields, model=MODEL, **changes)


def chunks(response: Response) -> Any:
    assert response.chunks is not None
    return response.chunks


async def body_of(response: Response) -> bytes:
    return b"".join([chunk async for chunk in chunks(response)])


def events_in(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.removeprefix(b"data: ")) for event in body.split(b"\n\n") if event]


def sending(*events: bytes, then: Callable[[FakeCall], Any] | None = None) -> Act:
    """Begin a stream with these events; end it, or do something else."""

    async def act(call: FakeCall) -> None:
        call.accept()
        await call.exchange.begin(200, "text/event-stream", {})
        for event in events:
            await call.exchange.more(event_bytes(event))
        if then is None:
            await call.exchange.end()
        else:
            await then(call)

    return act


async def hanging_up(call: FakeCall) -> None:
    call.exchange.hang_up()
