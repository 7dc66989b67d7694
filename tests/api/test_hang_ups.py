"""Callers who hang up or do not read: their calls end, and they pay for what the provider did for them."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.api.http_calls import ServedApi, served_api
from tests.api.raw_http import RawConnection, pass_windows, request, unread, until
from tests.fake_providers import faults
from tests.fake_providers.exchange import GONE
from tests.fake_providers.scripted import noise
from tests.fake_providers.server import FakeCall
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only
CHAT = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}
IMAGE = {"model": "image-1", "prompt": "a pear", "size": "64x64"}
WHOLE_COST = 9000  # of CHAT, in nano-USD
COMPLETED: dict[str, str | None] = {"status": "completed", "error_message": None}
CANCELLED: dict[str, str | None] = {"status": "cancelled", "error_message": "The caller disconnected."}


class Stalled:
    """A provider's endpoint that begins a stream and sends only comments until the client is gone."""

    def __init__(self) -> None:
        self.is_reached = asyncio.Event()
        self.is_left = asyncio.Event()

    async def __call__(self, call: FakeCall) -> None:
        call.accept()
        await call.exchange.begin(200, "text/event-stream", {})
        self.is_reached.set()
        with suppress(*GONE):
            while True:
                await call.exchange.more(b": wait\n\n")
                await asyncio.sleep(0.01)
        call.exchange.hang_up()
        self.is_left.set()


async def within(seconds: float, wait: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(seconds):
        await wait()


async def ended(api: ServedApi) -> dict[str, Any]:
    """Wait until the only request has ended; return its row."""
    (record,) = await all_ended(api)
    return record


async def all_ended(api: ServedApi) -> list[dict[str, Any]]:
    """Wait until there are requests and all of them have ended; return their rows."""
    async with asyncio.timeout(60):
        while True:
            rows = await api.running.records()
            if rows and all(row["status"] not in ("pending", "processing") for row in rows):
                return rows
            await asyncio.sleep(0.005)


async def test_a_caller_who_hangs_up_before_the_first_event_stops_the_provider(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        stalled = Stalled()
        api.running.lab.chats.next(stalled)
        before = await api.running.money()
        async with await api.served.connect() as connection:
            body = {**CHAT, "stream": True}
            await connection.send(request("POST", "/compat/v1/chat/completions", key=api.running.key, body=body))
            await within(10, stalled.is_reached.wait)
        await within(10, stalled.is_left.wait)
        await until(lambda: not api.served.state.tasks)
        record = await ended(api)
        assert (record["status"], record["error_message"]) == ("cancelled", "The caller disconnected.")
        assert record["cost"] > 0, "the provider has read the prompt"
        assert await api.running.money() == (before[0] - record["cost"], 0)
        assert api.running.gateway.health.is_healthy("lab", "chat-1")


class Silent:
    """A provider's endpoint that has not answered yet when the client leaves."""

    def __init__(self) -> None:
        self.is_left = asyncio.Event()

    async def __call__(self, call: FakeCall) -> None:
        call.accept()
        await call.exchange.wait_until_gone()
        self.is_left.set()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_who_hangs_up_before_the_provider_answers_stops_it(
    open_gateway: OpenGateway, stream: bool
) -> None:
    async with served_api(open_gateway) as api:
        silent = Silent()
        api.running.lab.chats.next(silent)
        before = await api.running.money()
        async with await api.served.connect() as connection:
            body = {**CHAT, "stream": stream}
            await connection.send(request("POST", "/compat/v1/chat/completions", key=api.running.key, body=body))
            await until(lambda: len(api.running.lab.chats) == 1)
        await within(10, silent.is_left.wait)
        record = await ended(api)
        assert (record["status"], record["error_message"]) == ("cancelled", "The caller disconnected.")
        assert 0 < record["cost"] < WHOLE_COST, "the provider has read the prompt"
        assert await api.running.money() == (before[0] - record["cost"], 0)
        assert api.running.gateway.health.is_healthy("lab", "chat-1")


async def test_a_caller_who_hangs_up_while_it_waits_for_an_image_frees_its_place(open_gateway: OpenGateway) -> None:
    """The generation goes on, is charged, and its result can be retrieved."""
    async with served_api(open_gateway) as api:
        gate = faults.Gate()
        api.running.lab.images.next(gate)
        async with await api.served.connect() as connection:
            await connection.send(request("POST", "/compat/v1/images/generations", key=api.running.key, body=IMAGE))
            await until(lambda: len(api.running.lab.images) == 1)
            assert api.served.state.tasks
        await until(lambda: not api.served.state.tasks)
        gate.open()
        record = await ended(api)
        assert record["status"] == "completed"
        assert record["cost"] > 0
        found = await api.call("GET", f"/compat/v1/images/{record['id']}")
        assert (found.status, len(found.json["data"])) == (200, 1)


async def test_a_stream_that_the_gateway_interrupts_costs_nothing_and_is_recorded_as_a_loss(
    open_gateway: OpenGateway,
) -> None:
    async with served_api(open_gateway) as api, await api.served.connect() as connection:
        before = await api.running.money()
        api.running.lab.chats.next(faults.stalled_stream())
        body = {**CHAT, "stream": True}
        await connection.send(request("POST", "/compat/v1/chat/completions", key=api.running.key, body=body))
        await connection.reader.readuntil(b"data: ")
        api.running.gateway.interrupts.stop()
        async with asyncio.timeout(60):
            assert b'"code":"UNAVAILABLE"' in await connection.reader.readuntil(b"0\r\n\r\n")
        record = await ended(api)
        assert (record["status"], record["error_code"], record["cost"]) == ("cancelled", "UNAVAILABLE", 0)
        assert (await api.running.transfers(record["id"]))["loss"] > 0
        assert await api.running.money() == before
        assert api.running.gateway.health.is_healthy("lab", "chat-1")


# -------------------------------------------------------------------------------------------------------- slow readers


async def start_long_stream(api: ServedApi, connection: RawConnection) -> None:
    """Start a stream and read only its head, until the gateway cannot send more."""
    api.running.lab.chats.next(faults.long_stream())
    body = {**CHAT, "stream": True, "max_tokens": 100_000}
    connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await connection.send(request("POST", "/compat/v1/chat/completions", key=api.running.key, body=body))
    await until(lambda: any(waits_for_caller(served) for served in api.served.state.connections), 20)


def waits_for_caller(connection: Any) -> bool:
    """Whether the call on this connection can send no more, and has noticed it."""
    return connection.flow.write_paused and bool(connection.flow._may_write._waiters)


async def test_a_stream_that_nobody_reads_costs_nothing_if_the_gateway_stops(open_gateway: OpenGateway) -> None:
    """The event that says so cannot be sent, and it looks as if the caller had left."""
    async with served_api(open_gateway) as api, await api.served.connect() as connection:
        before = await api.running.money()
        await start_long_stream(api, connection)
        api.running.gateway.interrupts.stop()
        record = await ended(api)
        assert (record["status"], record["error_code"], record["cost"]) == ("cancelled", "UNAVAILABLE", 0)
        assert await api.running.money() == before


async def read_to_the_end(connection: RawConnection) -> bytes:
    connection.writer.transport.resume_reading()  # type: ignore[attr-defined]
    async with asyncio.timeout(30):
        return (await connection.read_response()).body


async def test_time_in_which_the_caller_does_not_read_is_not_the_providers(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, stream_seconds=100) as api, await api.served.connect() as connection:
        await start_long_stream(api, connection)
        api.running.clock.advance(90)
        assert (await read_to_the_end(connection)).endswith(b"data: [DONE]\n\n")
        record = await ended(api)
        assert (record["status"], record["error_code"]) == ("completed", None)
        assert record["cost"] > 0
        assert api.running.gateway.health.is_healthy("lab", "chat-1")


async def test_a_caller_who_reads_too_slowly_is_ended_and_pays_for_what_was_sent(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, stream_seconds=100) as api, await api.served.connect() as connection:
        await start_long_stream(api, connection)
        api.running.clock.advance(101)
        body = await read_to_the_end(connection)
        last = body.rsplit(b"data: ", 1)[1]
        assert b'"code":"CANCELLED"' in last
        assert b"took longer than 100 seconds to read" in last
        record = await ended(api)
        assert (record["status"], record["error_code"]) == ("cancelled", "CANCELLED")
        assert record["cost"] == WHOLE_COST, "as the provider reported in the end"
        assert api.running.gateway.health.is_healthy("lab", "chat-1")


SPOKEN = {"model": "lab/chat", "input": "one two three", "max_output_tokens": 100_000}
DRAWN = {
    "model": "atelier/echo",
    "input": "a pear",
    "tools": [{"type": "image_generation", "model": "image-1"}],
    "tool_choice": {"type": "image_generation"},
}
STREAMS: dict[str, tuple[str, dict[str, Any], str, dict[str, str | None]]] = {
    "a chat": ("chat/completions", {**CHAT, "max_tokens": 100_000}, "lab/chat", CANCELLED),
    "a response": ("responses", SPOKEN, "lab/chat", CANCELLED),
    "an image": ("images/generations", IMAGE, "image-1", COMPLETED),
    "a response with an image": ("responses", DRAWN, "image-1", COMPLETED),
}


@pytest.mark.parametrize(("path", "body", "model", "end"), STREAMS.values(), ids=STREAMS)
async def test_a_stream_that_nobody_reads_is_ended_after_three_windows_of_time(
    open_gateway: OpenGateway, path: str, body: dict[str, Any], model: str, end: dict[str, str | None]
) -> None:
    """Its connection is given back, and what was made for it is paid for."""
    async with served_api(open_gateway, disabled_providers=()) as api:
        image = {"b64_json": base64.b64encode(noise(1500)).decode()}
        api.running.lab.images.next(faults.raw(json.dumps({"created": 1, "data": [image]}).encode()))
        api.running.lab.chats.next(faults.long_stream())
        sent = request("POST", f"/compat/v1/{path}", key=api.running.key, body={**body, "stream": True})
        with await api.served.connect_silently(sent):
            await until(lambda: unread(api.served) == 1)
            await pass_windows(api.served)
            assert unread(api.served) == 0, "the stream goes on"
            await until(lambda: not api.served.state.tasks, 10)
        (record,) = [row for row in await all_ended(api) if row["model"] == model]
        assert {name: record[name] for name in end} == end
        assert record["cost"] >= WHOLE_COST
        assert api.running.gateway.health.is_healthy("lab", "chat-1")


async def test_a_provider_that_takes_too_long_for_its_stream_is_to_blame(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, stream_seconds=100) as api, await api.served.connect() as connection:
        before = await api.running.money()
        go_on = asyncio.Event()

        async def act(call: FakeCall) -> None:
            events = list(call.accept().events)
            await call.exchange.begin(200, "text/event-stream", {})
            await call.exchange.more(b"data: " + events[0] + b"\n\n")
            await go_on.wait()
            await call.exchange.more(b"data: " + events[1] + b"\n\n")
            await call.exchange.wait_until_gone()

        api.running.lab.chats.next(act)
        body = {**CHAT, "stream": True}
        await connection.send(request("POST", "/compat/v1/chat/completions", key=api.running.key, body=body))
        await connection.reader.readuntil(b"data: ")
        api.running.clock.advance(101)
        go_on.set()
        async with asyncio.timeout(60):
            rest = await connection.reader.readuntil(b"0\r\n\r\n")
        assert b'"code":"UPSTREAM_TIMEOUT"' in rest
        record = await ended(api)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
        assert await api.running.money() == before
