"""Sending responses: JSON, bytes, and streams that end when the caller disconnects."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from penstock.api import responses
from penstock.interrupts import CallerLine
from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.schema import Response
from penstock.values import dollars, nanos
from tests.api.raw_http import until

ID = "req_0123"


class Peer:
    """The server's side of an ASGI call: it records what is sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.line = CallerLine()
        self.flowing = asyncio.Event()
        self.flowing.set()

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await asyncio.sleep(0)
        await self.flowing.wait()
        self.sent.append(message)

    async def get(
        self, response: Response, *, is_head: bool = False, unread: bool = False, has_key: bool = True
    ) -> None:
        await responses.send_response(
            ID,
            response,
            responses.encode_body(response),
            is_head=is_head,
            unread=unread,
            has_key=has_key,
            receive=self.receive,
            send=self.send,
            line=self.line,
        )

    @property
    def headers(self) -> dict[bytes, bytes]:
        assert self.sent[0]["type"] == "http.response.start"
        assert len(dict(self.sent[0]["headers"])) == len(self.sent[0]["headers"])
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def is_complete(self) -> bool:
        return not self.sent[-1].get("more_body", False)


class Source:
    """A stream that records how far it was read and whether it was closed."""

    def __init__(self, *chunks: bytes, stuck: bool = False, broken: bool = False) -> None:
        self.given = 0
        self.closed = False
        self._chunks, self._stuck, self._broken = chunks, stuck, broken
        self.stream = self._run()

    async def _run(self) -> AsyncIterator[bytes]:
        try:
            for chunk in self._chunks:
                self.given += 1
                yield chunk
            if self._broken:
                raise ConnectionResetError
            if self._stuck:
                await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)  # letting go may take a turn
            self.closed = True


async def test_json_is_sent_with_its_length_and_the_request_id() -> None:
    peer = Peer()
    await peer.get(Response(json={"a": "é"}))
    assert peer.headers == {
        b"x-request-id": b"req_0123",
        b"x-service-request-id": b"req_0123",
        b"content-type": b"application/json",
        b"cache-control": b"no-store",
        b"x-content-type-options": b"nosniff",
        b"content-length": b"10",
    }
    assert json.loads(peer.body) == {"a": "é"}
    assert peer.is_complete


def test_money_is_encoded_as_a_number() -> None:
    assert (
        responses.encode_body(Response(json={"cost": dollars(nanos("0.04")), "none": Decimal(0)}))
        == b'{"cost":0.04,"none":0}'
    )


def test_bytes_are_sent_as_they_are() -> None:
    assert responses.encode_body(Response(body=b"\x00\x01")) == b"\x00\x01"
    assert responses.encode_body(Response(status=204)) == b""


@pytest.mark.parametrize("status", [204, 304])
async def test_responses_without_a_body_have_no_body_headers(status: int) -> None:
    for headers in ({}, {"allow": "GET"}):
        peer = Peer()
        await peer.get(Response(status=status, headers=headers))
        assert peer.headers.keys().isdisjoint({b"content-type", b"content-length"})
        assert peer.is_complete


async def test_headers_of_a_response_replace_the_default_ones() -> None:
    peer = Peer()
    await peer.get(
        Response(body=b"x", headers={"Content-Type": "image/png", "X-Request-Id": "req_first", "x-more": "1"})
    )
    assert peer.headers[b"content-type"] == b"image/png"
    assert (peer.headers[b"x-request-id"], peer.headers[b"x-service-request-id"]) == (b"req_first", b"req_0123")
    assert peer.headers[b"x-more"] == b"1"


async def test_a_line_break_in_a_value_starts_no_other_header() -> None:
    peer = Peer()
    await peer.get(Response(json={}, headers={"x-said": "a\r\nset-cookie: b\x00 狐"}))
    assert peer.headers[b"x-said"] == b"aset-cookie: b ?"


async def test_while_the_caller_still_sends_the_connection_closes_after_the_response() -> None:
    peer = Peer()
    arriving = [
        {"type": "http.request", "body": b"x", "more_body": True},
        {"type": "http.request", "body": b"x", "more_body": False},
    ]
    sent_when_read: list[bytes] = []

    async def receive() -> dict[str, Any]:
        sent_when_read.append(peer.body)
        return arriving.pop(0)

    peer.receive = receive  # type: ignore[method-assign]
    await peer.get(Response(status=413, json={"error": 1}), unread=True)
    assert peer.headers[b"connection"] == b"close"
    assert sent_when_read == [b'{"error":1}', b'{"error":1}']
    assert not arriving
    assert peer.is_complete


@pytest.mark.parametrize(("has_key", "dropped_mib"), [(False, 1), (True, 64)])
async def test_less_is_dropped_of_what_strangers_send(has_key: bool, dropped_mib: int) -> None:
    peer = Peer()
    received = 0

    async def receive() -> dict[str, Any]:
        nonlocal received
        received += 1
        return {"type": "http.request", "body": bytes(2**16), "more_body": True}

    peer.receive = receive  # type: ignore[method-assign]
    await peer.get(Response(status=401, json={"error": 1}), unread=True, has_key=has_key)
    assert received == dropped_mib * 16
    assert peer.is_complete


# -------------------------------------------------------------------------------------------------------------- streams


async def test_chunks_are_sent_one_by_one() -> None:
    peer, source = Peer(), Source(b"a", b"", b"b")
    await peer.get(Response(chunks=source.stream, media_type="text/event-stream"))
    assert [message["body"] for message in peer.sent[1:]] == [b"a", b"b", b""]
    assert peer.headers[b"content-type"] == b"text/event-stream"
    assert b"content-length" not in peer.headers
    assert peer.is_complete
    assert source.closed


async def test_a_stream_is_sent_no_faster_than_it_is_read() -> None:
    peer, source = Peer(), Source(*[b"x"] * 100)
    peer.flowing.clear()
    sending = asyncio.create_task(peer.get(Response(chunks=source.stream)))
    for _ in range(50):
        await asyncio.sleep(0)
    assert source.given <= 1
    peer.flowing.set()
    await sending
    assert source.given == 100


@pytest.mark.parametrize("held_up", [False, True], ids=["waiting for a chunk", "waiting to send"])
async def test_a_stream_is_closed_at_once_when_the_caller_disconnects(held_up: bool) -> None:
    peer, source = Peer(), Source(*[b"x"] * (1_000_000 if held_up else 2), stuck=True)
    sending = asyncio.create_task(peer.get(Response(chunks=source.stream)))
    await until(lambda: len(peer.sent) >= 2)
    if held_up:
        peer.flowing.clear()
    peer.line.close()
    async with asyncio.timeout(60):
        await sending
    assert source.closed
    assert not peer.is_complete


async def test_a_stream_that_fails_is_not_completed() -> None:
    peer, source = Peer(), Source(b"a", broken=True)
    with pytest.raises(ConnectionResetError):
        await peer.get(Response(chunks=source.stream))
    assert peer.body == b"a"
    assert not peer.is_complete
    assert source.closed


async def test_a_stream_is_closed_without_a_chunk_if_the_caller_has_disconnected_before() -> None:
    peer, source = Peer(), Source(b"a")
    peer.line.close()
    await peer.get(Response(chunks=source.stream))
    assert source.given == 0
    assert [message["type"] for message in peer.sent] == ["http.response.start"]


async def test_a_stream_is_closed_when_the_server_stops() -> None:
    peer, source = Peer(), Source(b"a", stuck=True)
    sending = asyncio.create_task(peer.get(Response(chunks=source.stream)))
    await until(lambda: len(peer.sent) >= 2)
    sending.cancel()
    with suppress(asyncio.CancelledError):
        await sending
    assert source.closed


async def test_a_stream_is_closed_when_the_server_stops_before_its_head_was_sent() -> None:
    class Unread:
        closed = False

        def __aiter__(self) -> "Unread":
            return self

        async def __anext__(self) -> bytes:
            raise AssertionError

        async def aclose(self) -> None:
            self.closed = True

    peer, unread = Peer(), Unread()
    peer.flowing.clear()
    sending = asyncio.create_task(peer.get(Response(chunks=unread)))
    await asyncio.sleep(0)
    sending.cancel()
    with suppress(asyncio.CancelledError):
        await sending
    assert unread.closed


async def test_a_head_request_reads_no_chunk() -> None:
    peer, source = Peer(), Source(b"a")
    await peer.get(Response(chunks=source.stream, headers={"content-length": "1"}), is_head=True)
    assert source.given == 0
    assert (peer.body, peer.headers[b"content-length"]) == (b"", b"1")
    assert peer.is_complete


async def test_json_may_not_be_cached_or_taken_for_a_page_unless_the_response_says_so() -> None:
    for response, cached in (
        (Response(json={}, headers={"x-a": "b"}), b"no-store"),
        (Response(status=400, json={"error": {}}), b"no-store"),
        (Response(json={}, headers={"Cache-Control": "no-cache"}), b"no-cache"),
    ):
        peer = Peer()
        await peer.get(response)
        assert peer.headers[b"cache-control"] == cached
        assert peer.headers[b"x-content-type-options"] == b"nosniff"
    peer = Peer()
    await peer.get(Response(body=b"<p>", media_type="text/html"))
    assert b"cache-control" not in peer.headers


async def test_a_stream_is_closed_when_the_caller_disconnects_before_its_first_chunk() -> None:
    closed = asyncio.Event()
    waiting = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        try:
            waiting.set()
            await asyncio.Event().wait()
            yield b"never"
        finally:
            closed.set()

    peer = Peer()
    sending = asyncio.create_task(peer.get(Response(chunks=chunks())))
    await waiting.wait()
    peer.line.close()
    async with asyncio.timeout(60):
        await sending
    assert closed.is_set()


@pytest.mark.parametrize("unread", [False, True])
async def test_files_in_base64_are_sent_in_small_pieces(unread: bool) -> None:
    """They are not copied into one body, which would double the memory that an image in base64 takes."""
    caller = Peer()
    files = [b"\x89PNG" * 100_000, b"", b"GIF89a" * 100_000]
    data = [{"b64_json": FileAsBase64(file), "revised_prompt": "é"} for file in files]
    response = Response(json={"data": data, "cost": Decimal("0.04")})
    await caller.get(response, unread=unread)
    shown = [{"b64_json": base64.b64encode(file).decode(), "revised_prompt": "é"} for file in files]
    assert json.loads(caller.body) == {"data": shown, "cost": 0.04}
    assert int(caller.headers[b"content-length"]) == len(caller.body)
    assert max(len(message["body"]) for message in caller.sent[1:]) <= 256 * 1024
    assert [message.get("more_body", False) for message in caller.sent[1:]] == [True] * (len(caller.sent) - 2) + [False]
