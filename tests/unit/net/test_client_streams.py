"""Responses that are read while they arrive."""

import asyncio
import gzip
from typing import Any

import pytest

from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge
from penstock.net.response import OpenResponse
from penstock.providers.spec import HttpRequest
from tests.http_client import (
    client_and_server,
    cut_body_of_known_length,
    cut_chunked_body,
    never_respond,
    open_client,
    post_request,
    wait_until,
)
from tests.ports import unused_port
from tests.tcp_server import Connection, Script, TcpServer, chunk, response_head


async def test_each_chunk_arrives_before_the_next_is_sent() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("content-type: text/event-stream", "transfer-encoding: chunked"))
        for number in range(3):
            await connection.send(chunk(b"data: %d\n\n" % number))
            await received.acquire()
        await connection.send(chunk(b""))

    received = asyncio.Semaphore(0)
    chunks: list[bytes] = []
    async with (
        client_and_server(script) as (client, server),
        client.stream(post_request(server), read_timeout_seconds=5, timeout_seconds=30) as stream,
    ):
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        async for data in stream:
            chunks.append(data)
            received.release()
    assert chunks == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]


async def send_one_chunk(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("transfer-encoding: chunked") + chunk(b"first"))
    await connection.wait_closed()


async def test_leaving_the_context_closes_the_connection() -> None:
    async with client_and_server(send_one_chunk) as (client, server):
        async with client.stream(post_request(server), read_timeout_seconds=60, timeout_seconds=60) as stream:
            assert await anext(stream) == b"first"
        await server.wait_closed_by_client()


async def test_a_stream_cancelled_before_the_response_closes_when_it_begins() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await release.wait()
        await connection.send(response_head("transfer-encoding: chunked") + chunk(b"first"))
        await connection.wait_closed()

    async def enter(client: HttpClient, server: TcpServer) -> None:
        async with client.stream(post_request(server), read_timeout_seconds=60, timeout_seconds=60):
            raise AssertionError

    release = asyncio.Event()
    async with client_and_server(script) as (client, server):
        entering = asyncio.create_task(enter(client, server))
        await wait_until(lambda: len(server.requests) == 1)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        release.set()
        await server.wait_closed_by_client()


async def test_cancelling_the_reader_closes_the_connection() -> None:
    async def read(client: HttpClient, server: TcpServer) -> None:
        async with client.stream(post_request(server), read_timeout_seconds=60, timeout_seconds=60) as stream:
            async for _ in stream:
                began.set()

    began = asyncio.Event()
    async with client_and_server(send_one_chunk) as (client, server):
        reading = asyncio.create_task(read(client, server))
        await began.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.wait_closed_by_client()


@pytest.mark.parametrize(
    "limits",
    [{"read_timeout_seconds": 0.2, "timeout_seconds": 60}, {"read_timeout_seconds": 60, "timeout_seconds": 0.2}],
)
@pytest.mark.parametrize("script", [send_one_chunk, never_respond])
async def test_a_silent_stream_times_out(script: Script, limits: dict[str, Any]) -> None:
    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent) as failure:
            await read_all(client.stream(post_request(server), **limits), [])
        assert failure.value.timeout
        await server.wait_closed_by_client()


@pytest.mark.parametrize("script", [cut_chunked_body, cut_body_of_known_length])
async def test_a_stream_that_is_cut_off_is_an_error(script: Script) -> None:
    async with client_and_server(script) as (client, server):
        chunks: list[bytes] = []
        with pytest.raises(MaybeSent) as failure:
            await read_all(client.stream(post_request(server), read_timeout_seconds=5, timeout_seconds=5), chunks)
    assert chunks == [b"abc"]
    assert not failure.value.timeout


async def test_a_stream_that_cannot_connect_was_not_sent() -> None:
    async with open_client() as client:
        with pytest.raises(NotSent):
            async with client.stream(
                HttpRequest("POST", f"http://127.0.0.1:{unused_port()}/"), read_timeout_seconds=5, timeout_seconds=5
            ):
                pass


async def test_the_whole_body_can_be_read_at_once() -> None:
    async def script(connection: Connection) -> None:
        while True:
            await connection.read_request()
            await connection.respond(b"x" * 100_000, status=429)

    async with client_and_server(script) as (client, server):
        async with client.stream(post_request(server), read_timeout_seconds=5, timeout_seconds=5) as stream:
            assert stream.status == 429
            assert await stream.read() == b"x" * 100_000
        async with client.stream(post_request(server), read_timeout_seconds=5, timeout_seconds=5) as stream:
            with pytest.raises(ResponseTooLarge):
                await stream.read(50_000)


async def test_a_compressed_body_can_only_be_read_at_once() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(gzip.compress(b"too many"), "content-encoding: gzip", "connection: close", status=429)

    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent, match="compressed"):
            await read_all(client.stream(post_request(server), read_timeout_seconds=5, timeout_seconds=5), [])
        async with client.stream(post_request(server), read_timeout_seconds=5, timeout_seconds=5) as stream:
            assert (stream.status, await stream.read()) == (429, b"too many")


async def read_all(stream: OpenResponse, into: list[bytes]) -> None:
    async with stream:
        async for data in stream:
            into.append(data)
