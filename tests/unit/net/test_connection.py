"""Responses of odd servers, received by the event loop itself."""

import asyncio
import socket
from math import inf

import pytest

from penstock.net.connection import Connection as HttpConnection
from penstock.net.errors import MaybeSent, ResponseTooLarge
from tests.http_client import client_and_server, fetch, post_request
from tests.loop_time import pass_time
from tests.tcp_server import Connection, Script, chunk, response_head

OK = response_head("content-length: 2") + b"ok"


@pytest.mark.parametrize(
    "unwanted",
    [b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged", b"x", b"\r\n"],
)
@pytest.mark.parametrize("is_late", [False, True])
async def test_what_follows_a_response_is_never_taken_for_the_next_one(unwanted: bytes, is_late: bool) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(OK if is_late else OK + unwanted)
        await received.wait()
        if is_late:
            await connection.send(unwanted)
            sent.set()
        await connection.read_request()
        await connection.send(OK)

    received = asyncio.Event()
    sent = asyncio.Event()
    async with client_and_server(script) as (client, server):
        for number in range(2):
            reply = await client.send(post_request(server), timeout_seconds=60)
            assert reply.body == b"ok"
            received.set()
            if is_late and number == 0:
                await sent.wait()
    assert all(request.startswith(b"POST ") for request in server.requests)


async def test_interim_responses_are_skipped() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
        await connection.respond(b"ok")

    async with client_and_server(script) as (client, server):
        reply = await client.send(post_request(server), timeout_seconds=60)
    assert (reply.status, reply.body, dict(reply.headers)) == (200, b"ok", {"content-length": "2"})


async def send_endless_headers(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await connection.send(b"x-filler: " + b"x" * 1000 + b"\r\n")


async def send_endless_interim_responses(connection: Connection) -> None:
    await connection.read_request()
    while True:
        await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


async def switch_protocols(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"HTTP/1.1 101 Switching\r\nupgrade: other\r\nconnection: upgrade\r\n\r\nbinary")
    await connection.wait_closed()


@pytest.mark.parametrize("script", [send_endless_headers, send_endless_interim_responses, switch_protocols])
async def test_a_response_that_never_begins_is_given_up(script: Script) -> None:
    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent) as failure:
            await client.send(post_request(server), timeout_seconds=60)
        assert not failure.value.timeout
        await server.wait_ended()
    assert server.sent_bytes < 16_000_000


@pytest.mark.parametrize("trailer", [b"x: " + b"x" * 2_000_000, b"x: y\r\n" * 300_000], ids=["value", "lines"])
async def test_a_response_with_a_long_trailer_is_given_up(trailer: bytes) -> None:
    """The parser keeps a value until its end, and copies it for each piece that arrives."""

    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("transfer-encoding: chunked") + chunk(b"ok") + b"0\r\n")
        await connection.send(trailer)
        await connection.send(b"\r\n\r\n")
        await connection.wait_closed()

    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent, match=r"headers of the response are too long|too many headers"):
            await client.send(post_request(server), timeout_seconds=60)


async def test_a_server_that_sends_faster_than_it_is_read_is_slowed_down() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("transfer-encoding: chunked"))
        while True:
            await connection.send(chunk(b"x" * 100_000))

    async with client_and_server(script) as (client, server):
        request = post_request(server)
        async with client.stream(request, read_timeout_seconds=60, timeout_seconds=60) as stream:
            sent_bytes = -1
            while sent_bytes != server.sent_bytes:
                sent_bytes = server.sent_bytes
                await asyncio.sleep(0.05)  # until the buffers of both sides are full
            read_bytes = 0
            while read_bytes < 2 * sent_bytes:
                read_bytes += len(await anext(stream))
    assert sent_bytes < 16_000_000


async def test_a_body_that_arrives_without_a_pause_ends_at_the_timeout() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("transfer-encoding: chunked"))
        while True:
            await connection.send(chunk(b"x" * 65_536))

    class Writer:
        """Lets a minute pass with the first bytes."""

        size_bytes = 0

        def write(self, data: bytes) -> None:
            if not self.size_bytes:
                pass_time(60)
            self.size_bytes += len(data)

    writer = Writer()
    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent) as failure:
            await fetch(client, server.url, max_bytes=2**30, timeout_seconds=60, writer=writer)
    assert failure.value.timeout
    assert writer.size_bytes < 2**20


@pytest.mark.parametrize(("first_seconds", "second_seconds"), [(600, 20), (20, 20), (15, 20)])
async def test_each_request_of_a_connection_has_its_own_time(first_seconds: float, second_seconds: float) -> None:
    """A timer of an earlier request neither ends a later one early nor lets it wait too long."""

    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"ok")
        await connection.read_request()
        waits.set()
        await connection.wait_closed()

    waits = asyncio.Event()
    async with client_and_server(script) as (client, server):
        await client.send(post_request(server), timeout_seconds=first_seconds)
        pass_time(10)
        sending = asyncio.ensure_future(client.send(post_request(server), timeout_seconds=second_seconds))
        await waits.wait()
        pass_time(second_seconds - 5)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not sending.done()
        pass_time(6)
        with pytest.raises(MaybeSent) as failure:
            await sending
        assert failure.value.timeout
    assert server.connections == 1


async def test_a_body_that_came_with_its_head_is_limited_too() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"x" * 1001)

    async with client_and_server(script) as (client, server):
        with pytest.raises(ResponseTooLarge):
            await client.send(post_request(server), timeout_seconds=60, max_bytes=1000)


@pytest.mark.parametrize("sent", [b"", b"x"])
async def test_a_connection_is_not_used_once_its_server_has_closed_it_or_sent_something(sent: bytes) -> None:
    """Also if the event loop has not seen it yet: a request might be lost, or get a response that is not its own."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with theirs:
        transport, connection = await loop.create_connection(lambda: HttpConnection(set(), ours), sock=ours)
        connection.idle_until = inf
        assert connection.is_fresh()
        if sent:
            theirs.send(sent)
        else:
            theirs.close()
        assert not connection.is_fresh()
        transport.abort()


async def test_chunks_that_arrive_together_are_read_together() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("transfer-encoding: chunked") + chunk(b"x" * 20) * 10_000 + b"0\r\n\r\n")
        await connection.wait_closed()

    pieces = []
    async with client_and_server(script) as (client, server):
        request = post_request(server)
        async with client.stream(request, read_timeout_seconds=60, timeout_seconds=60) as stream:
            async for piece in stream:
                pieces.append(piece)
    assert b"".join(pieces) == b"x" * 200_000
    assert len(pieces) < 200


async def send_tiny_chunks(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("transfer-encoding: chunked"))
    while True:
        await connection.send(chunk(b"x") * 10_000)


async def send_many_headers(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 10_000)
    await connection.wait_closed()


@pytest.mark.parametrize(("script", "says"), [(send_tiny_chunks, "too small"), (send_many_headers, "too many headers")])
async def test_work_that_comes_in_few_bytes_is_given_up(script: Script, says: str) -> None:
    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent, match=says):
            await client.send(post_request(server), timeout_seconds=60)
        await server.wait_ended()


@pytest.mark.parametrize(
    ("status", "header"),
    [
        (204, "content-length: 6"),
        (204, "transfer-encoding: chunked"),
        (304, "content-length: 6"),
    ],
)
async def test_a_connection_is_not_used_again_after_an_empty_response_that_announces_a_body(
    status: int, header: str
) -> None:
    async def script(connection: Connection) -> None:
        while True:
            await connection.read_request()
            await connection.send(f"HTTP/1.1 {status} X\r\n{header}\r\n\r\n".encode())

    async with client_and_server(script) as (client, server):
        for _ in range(3):
            reply = await client.send(post_request(server), timeout_seconds=60)
            assert (reply.status, bytes(reply.body)) == (status, b"")
        await server.wait_ended()
    assert len(server.tasks) == 3


@pytest.mark.parametrize("header", [b"content-length: 2", b"transfer-encoding: chunked"])
async def test_an_interim_response_that_announces_a_body_fails(header: bytes) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(b"HTTP/1.1 100 Continue\r\n" + header + b"\r\n\r\n" + OK)
        await connection.wait_closed()

    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent, match="interim response"):
            await client.send(post_request(server), timeout_seconds=60)
