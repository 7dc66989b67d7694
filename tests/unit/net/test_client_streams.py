"""Replies that are read while they arrive."""

import asyncio
import gzip

import pytest

from penstock.net.client import HttpClient, NotSent, Stream, TooLarge, Unknown
from penstock.providers.spec import Outgoing
from tests.http_client import against, cuts_a_body_of_known_length, cuts_a_chunked_body, post, stalls, until, wire
from tests.ports import unused_port
from tests.tcp_server import Peer, Script, Server, chunk, head


async def test_the_first_chunk_arrives_before_the_second_is_sent() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-type: text/event-stream", "transfer-encoding: chunked"))
        for number in range(3):
            await peer.send(chunk(b"data: %d\n\n" % number))
            await asked.acquire()
        await peer.send(chunk(b""))

    asked, got = asyncio.Semaphore(0), list[bytes]()
    async with (
        against(script) as (sender, server),
        sender.stream(post(server), idle_seconds=5, total_seconds=30) as stream,
    ):
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        async for data in stream:
            got.append(data)
            asked.release()
    assert got == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]


async def endless(peer: Peer) -> None:
    await peer.request()
    await peer.send(head("transfer-encoding: chunked") + chunk(b"first"))
    await peer.gone()


async def test_leaving_a_stream_closes_the_connection_at_once() -> None:
    async with against(endless) as (sender, server):
        async with sender.stream(post(server), idle_seconds=60, total_seconds=60) as stream:
            assert await anext(stream) == b"first"
        await server.departed()


async def test_a_stream_cancelled_before_it_begins_lets_go_when_it_begins() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await release.wait()
        await peer.send(head("transfer-encoding: chunked") + chunk(b"first"))
        await peer.gone()

    async def enter(sender: HttpClient, server: Server) -> None:
        async with sender.stream(post(server), idle_seconds=60, total_seconds=60):
            raise AssertionError

    release = asyncio.Event()
    async with against(script) as (sender, server):
        entering = asyncio.create_task(enter(sender, server))
        await until(lambda: len(server.requests) == 1)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        release.set()
        await server.departed()


async def test_cancelling_the_reader_of_a_stream_closes_the_connection_at_once() -> None:
    async def read(sender: HttpClient, server: Server) -> None:
        async with sender.stream(post(server), idle_seconds=60, total_seconds=60) as stream:
            async for _ in stream:
                began.set()

    began = asyncio.Event()
    async with against(endless) as (sender, server):
        reading = asyncio.create_task(read(sender, server))
        await began.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.departed()


@pytest.mark.parametrize(
    "limits", [{"idle_seconds": 0.2, "total_seconds": 60}, {"idle_seconds": 60, "total_seconds": 0.2}]
)
@pytest.mark.parametrize("script", [endless, stalls])
async def test_a_silent_stream_ends_as_unknown(script: Script, limits: dict[str, float]) -> None:
    async with against(script) as (sender, server):
        with pytest.raises(Unknown) as failure:
            await drained(sender.stream(post(server), **limits), [])
        assert failure.value.timeout
        await server.departed()


@pytest.mark.parametrize("script", [cuts_a_chunked_body, cuts_a_body_of_known_length])
async def test_a_stream_that_breaks_off_says_so(script: Script) -> None:
    async with against(script) as (sender, server):
        got = list[bytes]()
        with pytest.raises(Unknown) as failure:
            await drained(sender.stream(post(server), idle_seconds=5, total_seconds=5), got)
    assert got == [b"abc"]
    assert not failure.value.timeout


async def test_a_stream_that_cannot_connect_was_not_sent() -> None:
    async with wire() as sender:
        with pytest.raises(NotSent):
            async with sender.stream(
                Outgoing("POST", f"http://127.0.0.1:{unused_port()}/"), idle_seconds=5, total_seconds=5
            ):
                pass


async def test_a_reply_that_turns_out_to_be_no_stream_can_be_read_whole() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.reply(b"x" * 100_000, status=429)

    async with against(script) as (sender, server):
        async with sender.stream(post(server), idle_seconds=5, total_seconds=5) as stream:
            assert stream.status == 429
            assert await stream.read() == b"x" * 100_000
        async with sender.stream(post(server), idle_seconds=5, total_seconds=5) as stream:
            with pytest.raises(TooLarge):
                await stream.read(50_000)


async def test_a_compressed_stream_is_refused_but_a_compressed_whole_can_be_read() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(gzip.compress(b"too many"), "content-encoding: gzip", "connection: close", status=429)

    async with against(script) as (sender, server):
        with pytest.raises(Unknown, match="compressed"):
            await drained(sender.stream(post(server), idle_seconds=5, total_seconds=5), [])
        async with sender.stream(post(server), idle_seconds=5, total_seconds=5) as stream:
            assert (stream.status, await stream.read()) == (429, b"too many")


async def drained(stream: Stream, into: list[bytes]) -> None:
    async with stream:
        async for data in stream:
            into.append(data)
