"""A response has clean headers, and exactly the body that its head announces."""

import asyncio
import logging
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from penstock.api.response_cycle import ResponseCycle
from penstock.api.response_transport import ResponseTransport
from tests.unit.api.test_response_transport import RecordingTransport

DATE = (b"date", b"today")
TYPE = (b"content-type", b"text/plain")
LENGTH = (b"content-length", b"3")


class Cycle(ResponseCycle):
    """The cycle of a request, which keeps what was sent."""

    def __init__(self, method: str = "GET", http_version: str = "1.1", *, keep_alive: bool = True) -> None:
        self.sent = RecordingTransport()
        self.completed = 0
        transport: Any = ResponseTransport(self.sent)
        log = logging.getLogger("unused")
        scope: Any = {"type": "http", "method": method, "http_version": http_version}
        super().__init__(
            scope, transport, FlowControl(transport), log, log, False, [DATE], asyncio.Event(), False, keep_alive,
            self._complete,
        )  # fmt: skip

    def _complete(self) -> None:
        self.completed += 1
        self.transport.flush()  # type: ignore[attr-defined]  # as the connection does

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
