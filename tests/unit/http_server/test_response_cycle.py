"""A response has clean headers, and exactly the body that its head announces."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from penstock.http_server.flow import Flow
from penstock.http_server.request_head import ARRIVED
from penstock.http_server.response_cycle import Message, ResponseCycle
from penstock.http_server.response_transport import ResponseTransport
from tests.unit.http_server.recording_transport import RecordingTransport

DATE = (b"date", b"today")
TYPE = (b"content-type", b"text/plain")
LENGTH = (b"content-length", b"3")


class Cycle(ResponseCycle):
    """The cycle of a request, which keeps what was sent."""

    def __init__(
        self, method: str = "GET", http_version: str = "1.1", *, keep_alive: bool = True, expects_continue: bool = False
    ) -> None:
        self.sent = RecordingTransport()
        self.completed = 0
        transport: Any = ResponseTransport(self.sent)
        scope: dict[str, Any] = {"type": "http", "method": method, "http_version": http_version}
        flow = Flow(transport)
        super().__init__(
            scope, transport, flow, [DATE], self._complete, keep_alive=keep_alive, expects_continue=expects_continue
        )

    def _complete(self) -> None:
        self.completed += 1
        self._transport.flush()  # as the connection does

    async def start(self, *headers: tuple[bytes, bytes], status: int = 200) -> None:
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def send_body(self, body: bytes, more_body: bool = False) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": more_body})

    @property
    def text(self) -> bytes:
        return b"".join(self.sent.packets)


async def test_a_whole_response_is_sent_at_once() -> None:
    cycle = Cycle()
    await cycle.start(TYPE, LENGTH)
    assert cycle.sent.packets == []
    await cycle.send_body(b"abc")
    head = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\n"
    assert cycle.sent.packets == [head + b"abc"]
    assert cycle.completed == 1


async def test_a_body_without_a_length_is_sent_in_chunks() -> None:
    cycle = Cycle()
    await cycle.start()
    await cycle.send_body(b"0123456789abcdef", more_body=True)
    await cycle.send_body(b"", more_body=True)
    await cycle.send_body(b"!")
    assert cycle.text.endswith(b"transfer-encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n1\r\n!\r\n0\r\n\r\n")
    assert cycle.completed == 1


async def test_a_body_without_a_length_ends_with_the_connection_in_http_1_0() -> None:
    cycle = Cycle(http_version="1.0", keep_alive=False)
    await cycle.start()
    await cycle.send_body(b"one", more_body=True)
    await cycle.send_body(b"two")
    assert cycle.text == b"HTTP/1.1 200 OK\r\ndate: today\r\nconnection: close\r\n\r\nonetwoEND"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
async def test_a_response_without_a_body_has_no_chunks(method: str, status: int) -> None:
    cycle = Cycle(method)
    await cycle.start(status=status)
    await cycle.send_body(b"")
    assert cycle.text.endswith(b"date: today\r\n\r\n")
    assert cycle.completed == 1


async def test_head_gets_the_length_of_a_body_that_is_not_sent() -> None:
    cycle = Cycle("HEAD")
    await cycle.start(LENGTH)
    await cycle.send_body(b"abc")
    assert cycle.text.endswith(b"content-length: 3\r\n\r\n")
    assert cycle.completed == 1


@pytest.mark.parametrize(
    "header", [(b"x", b"a\nb"), (b"x", b"a\rb"), (b"x", b"a\r\ny: b"), (b"x\n", b"a"), (b"x", b"\0")]
)
async def test_no_header_can_begin_another_one(header: tuple[bytes, bytes]) -> None:
    cycle = Cycle()
    with pytest.raises(RuntimeError, match="line break"):
        await cycle.start(header)
    assert cycle.text == b""


@pytest.mark.parametrize("body", [b"abcd", b"ab", b""])
async def test_a_body_of_another_length_than_its_head_says_is_not_completed(body: bytes) -> None:
    cycle = Cycle()
    await cycle.start(LENGTH)
    with pytest.raises(RuntimeError, match="another length"):
        await cycle.send_body(body)
    assert not cycle.completed


async def test_all_pieces_of_a_body_count_for_its_length() -> None:
    cycle = Cycle()
    await cycle.start(LENGTH)
    await cycle.send_body(b"ab", more_body=True)
    with pytest.raises(RuntimeError, match="another length"):
        await cycle.send_body(b"cd", more_body=True)


async def test_the_connection_is_closed_if_the_application_asks_for_it() -> None:
    cycle = Cycle()
    await cycle.start((b"connection", b"close"), LENGTH)
    await cycle.send_body(b"abc")
    assert cycle.text.endswith(b"connection: close\r\ncontent-length: 3\r\n\r\nabcEND")


async def test_the_client_learns_that_its_connection_is_closed() -> None:
    cycle = Cycle(keep_alive=False)
    await cycle.start(LENGTH)
    await cycle.send_body(b"abc")
    assert cycle.text.endswith(b"content-length: 3\r\nconnection: close\r\n\r\nabcEND")


async def test_nothing_is_sent_twice_or_in_another_order() -> None:
    cycle = Cycle()
    with pytest.raises(RuntimeError, match="cannot be sent"):
        await cycle.send_body(b"abc")
    await cycle.start(LENGTH)
    with pytest.raises(RuntimeError, match="cannot be sent"):
        await cycle.start(LENGTH)
    await cycle.send_body(b"abc")
    with pytest.raises(RuntimeError, match="cannot be sent"):
        await cycle.send_body(b"abc")


async def test_nothing_is_sent_to_a_client_that_has_disconnected() -> None:
    cycle = Cycle()
    cycle.disconnected = True
    await cycle.start(LENGTH)
    await cycle.send_body(b"abc")
    assert cycle.text == b""


async def soon(received: Awaitable[Message]) -> Message:
    """What is received, which must be here already or come with what the test has done."""
    async with asyncio.timeout(5):
        return await received


async def test_the_application_receives_the_body_as_it_arrives_and_then_the_end_of_the_connection() -> None:
    cycle = Cycle("POST", expects_continue=True)
    receiving = asyncio.ensure_future(cycle.receive())
    await asyncio.sleep(0)
    assert cycle.text == b"HTTP/1.1 100 Continue\r\n\r\n"
    cycle.add_body(b"on")
    cycle.add_body(b"e")
    assert await soon(receiving) == {"type": "http.request", "body": b"one", "more_body": True}
    cycle.end_body()
    assert await soon(cycle.receive()) == {"type": "http.request", "body": b"", "more_body": False}
    receiving = asyncio.ensure_future(cycle.receive())
    await asyncio.sleep(0)
    assert not receiving.done()
    cycle.disconnect()
    assert await soon(receiving) == {"type": "http.disconnect"}
    assert await soon(cycle.receive()) == {"type": "http.disconnect"}
    assert cycle.text == b"HTTP/1.1 100 Continue\r\n\r\n", "it was sent more than once"


async def test_receiving_ends_with_the_response() -> None:
    cycle = Cycle("POST")
    cycle.end_body()
    assert (await soon(cycle.receive()))["type"] == "http.request"
    receiving = asyncio.ensure_future(cycle.receive())
    await asyncio.sleep(0)
    await cycle.start(LENGTH)
    await cycle.send_body(b"abc")
    assert await soon(receiving) == {"type": "http.disconnect"}


async def test_a_body_that_has_arrived_is_taken_as_a_whole() -> None:
    cycle = Cycle("POST")
    cycle.add_body(b"one")
    assert ARRIVED not in cycle.scope
    cycle.end_body()
    assert cycle.scope[ARRIVED]() == b"one"
    receiving = asyncio.ensure_future(cycle.receive())
    await asyncio.sleep(0)
    assert not receiving.done(), "there is nothing more to receive but the end"
    cycle.disconnect()
    await soon(receiving)


async def test_the_body_of_a_client_that_has_disconnected_is_not_taken() -> None:
    cycle = Cycle("POST")
    cycle.add_body(b"one")
    cycle.end_body()
    cycle.disconnect()
    assert cycle.scope[ARRIVED]() is None


async def run(cycle: Cycle, app: Any) -> None:
    """Run an application until it has ended."""
    tasks: set[asyncio.Task[None]] = set()
    cycle.begin(app, tasks)
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert not tasks


async def test_an_application_that_fails_before_its_response_is_answered_with_an_error() -> None:
    async def app(*_: object) -> None:
        raise ValueError

    cycle = Cycle()
    await run(cycle, app)
    assert cycle.text.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert cycle.text.endswith(b"connection: close\r\n\r\nEND")
    assert cycle.completed == 1


@pytest.mark.parametrize("fails", [True, False])
async def test_a_response_that_is_not_completed_ends_with_the_connection(fails: bool) -> None:
    cycle = Cycle()

    async def app(*_: object) -> None:
        await cycle.start(LENGTH)
        await cycle.send_body(b"ab", more_body=True)
        if fails:
            raise ValueError

    await run(cycle, app)
    assert cycle.text.endswith(b"content-length: 3\r\n\r\nabEND")
    assert not cycle.completed


async def test_a_completed_response_is_left_alone() -> None:
    cycle = Cycle()

    async def app(*_: object) -> None:
        await cycle.start(LENGTH)
        await cycle.send_body(b"abc")
        raise asyncio.CancelledError

    await run(cycle, app)
    assert cycle.text.endswith(b"\r\n\r\nabc")
    assert cycle.completed == 1
