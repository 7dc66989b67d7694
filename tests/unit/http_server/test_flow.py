"""A transport is paused once, and who waits to write goes on when it takes more."""

import asyncio
from typing import Any

from penstock.http_server.flow import Flow


class CountingTransport:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def pause_reading(self) -> None:
        self.asked.append("pause")

    def resume_reading(self) -> None:
        self.asked.append("resume")


async def test_the_transport_is_asked_only_when_something_changes() -> None:
    transport: Any = CountingTransport()
    flow = Flow(transport)
    for _ in range(2):
        flow.resume_reading()
    assert transport.asked == []
    for _ in range(2):
        flow.pause_reading()
    for _ in range(2):
        flow.resume_reading()
    assert transport.asked == ["pause", "resume"]


async def test_writing_waits_while_the_buffer_is_full() -> None:
    transport: Any = CountingTransport()
    flow = Flow(transport)
    await flow.drain()
    flow.pause_writing()
    assert flow.write_paused
    waiting = asyncio.create_task(flow.drain())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    flow.resume_writing()
    await waiting
    assert not flow.write_paused
