"""Acts that make a fake provider misbehave. Those that accept the request first put a charge on the invoice."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from tests.fake_providers.exchange import FakeResponse
from tests.fake_providers.scripted import ScriptedCall
from tests.fake_providers.server import Act, FakeCall, deliver, event_bytes, serve

ok: Act = serve

# ------------------------------------------------------------------------------------------------ refused: nothing made


def error(status: int, message: str, code: str | None = None, **headers: str) -> Act:
    async def act(call: FakeCall) -> None:
        body = {"error": {"message": message, "type": "invalid_request_error", "code": code, "param": None}}
        await call.exchange.json(body, status, **headers)

    return act


def busy(retry_after_seconds: int | None = None) -> Act:
    headers = {} if retry_after_seconds is None else {"retry_after": str(retry_after_seconds)}
    return error(429, "Rate limit reached.", "rate_limit_exceeded", **headers)


broken = error(500, "The server had an error while processing your request.", "server_error")
blocked = error(400, "Your request was rejected by the safety system.", "moderation_blocked")
rejected = error(400, "Invalid value for `size`.", "invalid_value")
missing = error(404, "Not found.", "not_found")


async def unauthorized(call: FakeCall) -> None:
    """An error that contains the whole key, as some providers send it."""
    await error(401, f"Incorrect API key provided: {call.request.key}.", "invalid_api_key")(call)


def redirect(to: str, status: int = 307) -> Act:
    async def act(call: FakeCall) -> None:
        await call.exchange.send(b"", status, "text/plain", location=to)

    return act


# ------------------------------------------------------------------------------------- accepted: made, and charged for


async def dropped(call: FakeCall) -> None:
    """Accept the request and drop the connection without a response."""
    call.accept()
    call.exchange.hang_up()


async def stalled(call: FakeCall) -> None:
    """Accept the request and never respond."""
    call.accept()
    await call.exchange.wait_until_gone()


class Gate:
    """Accept the request, and respond when the test calls `open`. For a fake provider in this event loop."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def __call__(self, call: FakeCall) -> None:
        response = call.accept()
        await self._opened.wait()
        await deliver(call, response)


def waiting(released: threading.Event) -> Act:
    """Accept the request, and respond when the event is set. For a fake provider in a thread."""

    async def act(call: FakeCall) -> None:
        response = call.accept()
        await asyncio.to_thread(released.wait)
        await deliver(call, response)

    return act


def slowly(seconds: float) -> Act:
    """Accept the request, and respond after so many seconds."""

    async def act(call: FakeCall) -> None:
        response = call.accept()
        await asyncio.sleep(seconds)
        await deliver(call, response)

    return act


def truncated(at: int = 20) -> Act:
    """Announce a complete response, send its first `at` bytes and drop the connection."""

    async def act(call: FakeCall) -> None:
        whole = _bytes(call.accept())
        await call.exchange.begin(200, "application/json", {"content-length": str(len(whole))})
        await call.exchange.more(whole[:at])
        call.exchange.hang_up()

    return act


def raw(body: bytes, content_type: str = "application/json", status: int = 200) -> Act:
    """Accept the request, and respond with these bytes."""

    async def act(call: FakeCall) -> None:
        call.accept()
        await call.exchange.send(body, status, content_type)

    return act


def altered(**changes: Any) -> Act:
    """The normal response with some of its fields replaced."""

    async def act(call: FakeCall) -> None:
        response = call.accept()
        await call.exchange.json({**response.json, **changes}, response.status)

    return act


nonsense = raw(b'{"data": [{"b64_json":')
page = raw(b"<!doctype html><title>502 Bad Gateway</title>", "text/html; charset=utf-8")
not_a_number = raw(b'{"created": NaN, "data": NaN, "id": NaN, "status": NaN}')
nested = raw(b"[" * 100_000 + b"]" * 100_000)
lone_surrogate = raw(b'{"created": 1, "id": "\\ud800", "status": "\\ud800", "data": [{"b64_json": "\\ud800"}]}')
not_an_object = raw(b'["data", 1, null]')
no_response = raw(b"")
empty = altered(data=[])
odd_types = raw(b'{"created": "x", "data": [{"b64_json": 7}], "id": 7, "status": "queued", "progress": {}}')


async def mislabelled(call: FakeCall) -> None:
    """The normal response with a wrong content type."""
    await call.exchange.send(_bytes(call.accept()), content_type="text/html")


def huge(megabytes: int = 80, *, announced: bool = False) -> Act:
    """A response of this many megabytes."""

    async def act(call: FakeCall) -> None:
        call.accept()
        size = megabytes * 2**20
        headers = {"content-length": str(size)} if announced else {}
        await call.exchange.begin(200, "application/json", headers)
        for _ in range(megabytes):
            await call.exchange.more(b" " * 2**20)
        await call.exchange.end()

    return act


# --------------------------------------------------------------------------------------------------------------- videos


def video_states(*states: str, name: str | None = None, code: str | None = None) -> Act:
    """A job that shows these states one after the other; the response to the submission shows the first."""

    async def act(call: FakeCall) -> None:
        assert isinstance(call, ScriptedCall), "only the scripted provider has such videos"
        usual = call.lab.states
        call.lab.states = states
        if name is not None:
            call.lab.next_ids.append(name)
        response = call.accept()
        call.lab.states = usual
        if code is not None:
            call.lab.video_jobs[response.json["id"]].code = code
        await deliver(call, response)

    return act


never_ends = video_states("queued", "in_progress 10")
fails = video_states("queued", "in_progress 10", "failed")
is_refused = video_states("queued", "failed", code="moderation_blocked")
changes_its_mind = video_states("queued", "completed", "failed")


def showing(**changes: Any) -> Act:
    """For polls: the job with some fields replaced."""
    return altered(**changes)


def file(data: bytes, content_type: str) -> Act:
    """For downloads: other data than the video or image."""

    async def act(call: FakeCall) -> None:
        await call.exchange.send(data, 200, content_type)

    return act


def cut(after_bytes: int = 100) -> Act:
    """For downloads: only the beginning of the file, then a dropped connection."""

    async def act(call: FakeCall) -> None:
        response = call.accept()
        await call.exchange.begin(200, response.content_type, {"content-length": str(len(response.file))})
        await call.exchange.more(response.file[:after_bytes])
        call.exchange.hang_up()

    return act


async def half(call: FakeCall) -> None:
    """For downloads: half of the file, in a response that is complete."""
    response = call.accept()
    await call.exchange.send(response.file[: len(response.file) // 2], 200, response.content_type)


# -------------------------------------------------------------------------------------------------------------- streams


def cut_stream(after: int = 2) -> Act:
    """For chat streams: so many events, then a dropped connection."""

    async def act(call: FakeCall) -> None:
        events = deque(call.accept().events)
        await call.exchange.begin(200, "text/event-stream", {})
        for _ in range(after):
            await call.exchange.more(event_bytes(events.popleft()))
        call.exchange.hang_up()

    return act


def stalled_stream(after: int = 2) -> Act:
    """For chat streams: so many events, then silence."""

    async def act(call: FakeCall) -> None:
        events = deque(call.accept().events)
        await call.exchange.begin(200, "text/event-stream", {})
        for _ in range(after):
            await call.exchange.more(event_bytes(events.popleft()))
        await call.exchange.wait_until_gone()

    return act


def long_stream(megabytes: int = 20) -> Act:
    """For chat streams: more than fits into the buffers of connections, as fast as it is read, then the end."""

    async def act(call: FakeCall) -> None:
        events = deque(call.accept().events)
        await call.exchange.begin(200, "text/event-stream", {})
        await call.exchange.more(event_bytes(events.popleft()))
        text = event_bytes(events[0])
        for _ in range(megabytes):
            await call.exchange.more(text * (2**20 // len(text)))
        while events:
            await call.exchange.more(event_bytes(events.popleft()))
        await call.exchange.end()

    return act


def _bytes(response: FakeResponse) -> bytes:
    return response.file or json.dumps(response.json).encode()


FAULTS: Mapping[str, Act] = {
    "busy": busy(),
    "broken": broken,
    "unauthorized": unauthorized,
    "dropped": dropped,
    "truncated": truncated(),
    "nonsense": nonsense,
    "page": page,
    "not a number": not_a_number,
    "nested": nested,
    "lone surrogate": lone_surrogate,
    "not an object": not_an_object,
    "no response": no_response,
    "odd types": odd_types,
}
