"""What a simulated vendor may be told to do instead of serving. Those that accept first put a line on the invoice."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from tests.fake_providers.exchange import Ware
from tests.fake_providers.scripted import ScriptedOrder
from tests.fake_providers.server import Act, Order, deliver, serve

ok: Act = serve

# ------------------------------------------------------------------------------------------------ refused: nothing made


def error(status: int, message: str, code: str | None = None, **headers: str) -> Act:
    async def act(order: Order) -> None:
        body = {"error": {"message": message, "type": "invalid_request_error", "code": code, "param": None}}
        await order.line.json(body, status, **headers)

    return act


def busy(retry_after_seconds: int | None = None) -> Act:
    headers = {} if retry_after_seconds is None else {"retry_after": str(retry_after_seconds)}
    return error(429, "Rate limit reached.", "rate_limit_exceeded", **headers)


broken = error(500, "The server had an error while processing your request.", "server_error")
blocked = error(400, "Your request was rejected by the safety system.", "moderation_blocked")
rejected = error(400, "Invalid value for `size`.", "invalid_value")
missing = error(404, "Not found.", "not_found")


async def unauthorized(order: Order) -> None:
    """As some vendors do: the whole key in the error."""
    await error(401, f"Incorrect API key provided: {order.heard.key}.", "invalid_api_key")(order)


def redirect(to: str, status: int = 307) -> Act:
    async def act(order: Order) -> None:
        await order.line.send(b"", status, "text/plain", location=to)

    return act


# ------------------------------------------------------------------------------------- accepted: made, and charged for


async def dropped(order: Order) -> None:
    """Accepts, and the connection is gone before a word comes back."""
    order.accept()
    order.line.hang_up()


async def stalled(order: Order) -> None:
    """Accepts, and never says so."""
    order.accept()
    await order.line.wait_until_gone()


class Gate:
    """Accepts, and answers rightly once the test opens the gate; for a vendor in the test's own loop."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def __call__(self, order: Order) -> None:
        ware = order.accept()
        await self._opened.wait()
        await deliver(order, ware)


def waiting(released: threading.Event) -> Act:
    """Accepts, and answers rightly once the test says so; for a vendor in a thread beside the test."""

    async def act(order: Order) -> None:
        ware = order.accept()
        await asyncio.to_thread(released.wait)
        await deliver(order, ware)

    return act


def slowly(seconds: float) -> Act:
    """Accepts, and takes its time."""

    async def act(order: Order) -> None:
        ware = order.accept()
        await asyncio.sleep(seconds)
        await deliver(order, ware)

    return act


def truncated(at: int = 20) -> Act:
    """Announces a whole answer and sends the first `at` bytes."""

    async def act(order: Order) -> None:
        whole = _bytes(order.accept())
        await order.line.begin(200, "application/json", {"content-length": str(len(whole))})
        await order.line.more(whole[:at])
        order.line.hang_up()

    return act


def raw(body: bytes, content_type: str = "application/json", status: int = 200) -> Act:
    """Accepts, and answers with these very bytes."""

    async def act(order: Order) -> None:
        order.accept()
        await order.line.send(body, status, content_type)

    return act


def altered(**changes: Any) -> Act:
    """The right answer with some of its fields replaced."""

    async def act(order: Order) -> None:
        ware = order.accept()
        await order.line.json({**ware.json, **changes}, ware.status)

    return act


nonsense = raw(b'{"data": [{"b64_json":')
page = raw(b"<!doctype html><title>502 Bad Gateway</title>", "text/html; charset=utf-8")
not_a_number = raw(b'{"created": NaN, "data": NaN, "id": NaN, "status": NaN}')
nested = raw(b"[" * 100_000 + b"]" * 100_000)
lone_surrogate = raw(b'{"created": 1, "id": "\\ud800", "status": "\\ud800", "data": [{"b64_json": "\\ud800"}]}')
not_an_object = raw(b'["data", 1, null]')
nothing_said = raw(b"")
empty = altered(data=[])
odd_types = raw(b'{"created": "x", "data": [{"b64_json": 7}], "id": 7, "status": "queued", "progress": {}}')


async def mislabelled(order: Order) -> None:
    """The right words under the wrong type."""
    await order.line.send(_bytes(order.accept()), content_type="text/html")


def huge(megabytes: int = 80, *, announced: bool = False) -> Act:
    """Goes on and on."""

    async def act(order: Order) -> None:
        order.accept()
        size = megabytes * 2**20
        headers = {"content-length": str(size)} if announced else {}
        await order.line.begin(200, "application/json", headers)
        for _ in range(megabytes):
            await order.line.more(b" " * 2**20)
        await order.line.end()

    return act


# ---------------------------------------------------------------------------------------------------------------- films


def film(*states: str, name: str | None = None, code: str | None = None) -> Act:
    """A job that shows these states one after the other, the first as the answer to its submission."""

    async def act(order: Order) -> None:
        assert isinstance(order, ScriptedOrder), "only the lab makes films this way"
        usual, order.lab.states = order.lab.states, states
        if name is not None:
            order.lab.next_ids.append(name)
        ware = order.accept()
        order.lab.states = usual
        if code is not None:
            order.lab.films[ware.json["id"]].code = code
        await deliver(order, ware)

    return act


never_ends = film("queued", "in_progress 10")
fails = film("queued", "in_progress 10", "failed")
is_refused = film("queued", "failed", code="moderation_blocked")
changes_its_mind = film("queued", "completed", "failed")


def showing(**changes: Any) -> Act:
    """For polls: the job as it stands with some fields replaced."""
    return altered(**changes)


def file(data: bytes, content_type: str) -> Act:
    """For downloads: something else than the film or picture."""

    async def act(order: Order) -> None:
        await order.line.send(data, 200, content_type)

    return act


def cut(order_bytes: int = 100) -> Act:
    """For downloads: the beginning of the file."""

    async def act(order: Order) -> None:
        ware = order.accept()
        await order.line.begin(200, ware.content_type, {"content-length": str(len(ware.file))})
        await order.line.more(ware.file[:order_bytes])
        order.line.hang_up()

    return act


# -------------------------------------------------------------------------------------------------------------- streams


def cut_stream(after: int = 2) -> Act:
    """For conversations: so many events, then silence for ever."""

    async def act(order: Order) -> None:
        events = deque(order.accept().events)
        await order.line.begin(200, "text/event-stream", {})
        for _ in range(after):
            await order.line.more(b"data: " + events.popleft() + b"\n\n")
        order.line.hang_up()

    return act


def _bytes(ware: Ware) -> bytes:
    return ware.file or json.dumps(ware.json).encode()


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
    "nothing said": nothing_said,
    "odd types": odd_types,
}
