"""For each way in which a request can fail: whether the server may have received it."""

import asyncio

import pytest

from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.spec import HttpRequest, Upload
from tests.http_client import (
    SECRET,
    client_and_server,
    cut_body_of_known_length,
    cut_chunked_body,
    full_text,
    never_respond,
    open_client,
    post_request,
    timeout_of,
    wait_until,
)
from tests.ports import unused_port
from tests.tcp_server import Connection, Script, response_head

# ------------------------------------------------------------------------------------------------- nothing was sent


async def test_a_refused_connection_means_not_sent() -> None:
    async with open_client() as client:
        with pytest.raises(NotSent) as failure:
            await client.send(HttpRequest("POST", f"http://127.0.0.1:{unused_port()}/"), timeout_seconds=5)
    assert not failure.value.local


async def test_a_name_that_cannot_be_looked_up_means_not_sent() -> None:
    too_long_for_a_name = "a" * 64
    async with open_client() as client:
        with pytest.raises(NotSent):
            await client.send(HttpRequest("POST", f"http://{too_long_for_a_name}.invalid/"), timeout_seconds=5)


@pytest.mark.parametrize(
    "request_",
    [
        HttpRequest("POST", "http://127.0.0.1:1/", {"authorization": f"Bearer {SECRET}\n"}),
        HttpRequest("POST", "http://127.0.0.1:1/", {"bad name": SECRET}),
        HttpRequest("POST", f"http://[::1/{SECRET}"),
        HttpRequest("POST", f"ftp://127.0.0.1/{SECRET}"),
        HttpRequest("PO ST", f"http://127.0.0.1:1/{SECRET}"),
        HttpRequest("POST", "http://127.0.0.1:1/", form=(("file", Upload(b"", SECRET, "x")),)),
    ],
)
async def test_a_malformed_request_is_not_sent_and_not_quoted(request_: HttpRequest) -> None:
    async with open_client() as client:
        with pytest.raises(NotSent) as failure:
            await client.send(request_, timeout_seconds=5)
    assert SECRET not in full_text(failure.value)


async def test_a_closed_client_sends_nothing() -> None:
    client = HttpClient()
    await client.close()
    with pytest.raises(NotSent):
        await client.send(HttpRequest("GET", "http://127.0.0.1:1/"), timeout_seconds=5)
    with pytest.raises(NotSent):
        client.stream(HttpRequest("GET", "http://127.0.0.1:1/"), read_timeout_seconds=5, timeout_seconds=5)
    with pytest.raises(NotSent):
        await client.fetch("https://x.example/", max_bytes=1, timeout_seconds=5)


# -------------------------------------------------------------------------------------------------- maybe sent


async def close_without_reading(connection: Connection) -> None:
    pass


async def read_then_close(connection: Connection) -> None:
    await connection.read_request()


async def read_then_reset(connection: Connection) -> None:
    await connection.read_request()
    connection.reset()


async def send_half_a_head(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-le")


async def send_no_http(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")


async def cut_long_body(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("content-length: 200000") + b"a" * 199_999)


async def send_two_lengths(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("content-length: 3", "content-length: 4") + b"abc")


@pytest.mark.parametrize(
    "script",
    [
        close_without_reading,
        read_then_close,
        read_then_reset,
        send_half_a_head,
        send_no_http,
        cut_body_of_known_length,
        cut_chunked_body,
        cut_long_body,
        send_two_lengths,
    ],
)
async def test_a_connection_that_fails_after_it_was_made_means_maybe_sent(script: Script) -> None:
    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent) as failure:
            await client.send(post_request(server), timeout_seconds=5)
        assert not failure.value.timeout
        # The word "timeout" in the URL must not be taken for a timeout.
        with pytest.raises(MaybeSent) as failure:
            await client.send(
                HttpRequest("POST", f"{server.url}/timeout/timed out/client error (Connect)"), timeout_seconds=5
            )
        assert not failure.value.timeout
    assert server.connections == 2
    assert SECRET not in full_text(failure.value)


async def test_a_request_lost_on_a_reused_connection_is_not_sent_again() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"ok")
        await connection.read_request()

    async with client_and_server(script) as (client, server):
        await client.send(post_request(server), timeout_seconds=5)
        with pytest.raises(MaybeSent):
            await client.send(post_request(server), timeout_seconds=5)
    assert (server.connections, len(server.requests)) == (1, 2)


async def stop_within_the_body(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("content-length: 100") + b"abc")
    await connection.wait_closed()


async def never_read(connection: Connection) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("script", [never_respond, stop_within_the_body])
async def test_a_silent_server_ends_in_a_timeout_and_a_closed_connection(script: Script) -> None:
    async with client_and_server(script) as (client, server):
        failure = await timeout_of(lambda: client.send(post_request(server), timeout_seconds=0.2))
        await server.wait_closed_by_client()
    assert SECRET not in full_text(failure)


async def test_a_server_that_does_not_read_the_request_ends_in_a_timeout() -> None:
    async with client_and_server(never_read) as (client, server):
        await timeout_of(lambda: client.send(post_request(server, b"x" * 20_000_000), timeout_seconds=0.3))


async def test_a_response_sent_before_the_end_of_the_upload_is_read() -> None:
    received = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.read_head()
        await connection.respond(b"too large", "connection: close", status=413)
        await received.wait()  # closing with unread bytes would reset the connection, and the response could be lost

    async with client_and_server(script) as (client, server):
        response = await client.send(post_request(server, b"x" * 20_000_000), timeout_seconds=30)
        received.set()
    assert (response.status, response.body) == (413, b"too large")


async def test_a_response_that_arrives_byte_by_byte_ends_at_the_timeout() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("content-length: 1000000"))
        while True:
            await connection.send(b"x")
            await asyncio.sleep(0.01)

    async with client_and_server(script) as (client, server):
        await timeout_of(lambda: client.send(post_request(server), timeout_seconds=0.3))
        await server.wait_ended()
    assert 1 < server.sent_bytes < 1000


async def test_a_response_may_begin_late() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await release.wait()
        await connection.respond(b"late")

    release = asyncio.Event()
    async with client_and_server(script) as (client, server):
        sending = asyncio.create_task(client.send(post_request(server), timeout_seconds=10))
        await wait_until(lambda: len(server.requests) == 1)
        assert not sending.done()
        release.set()
        assert (await sending).body == b"late"


async def test_a_cancelled_send_closes_its_connection_when_the_response_begins() -> None:
    """The library cannot abort a request that waits for its response."""

    async def script(connection: Connection) -> None:
        await connection.read_request()
        await release.wait()
        await connection.send(response_head("content-length: 1000000") + b"x" * 200_000)
        await connection.wait_closed()

    release = asyncio.Event()
    async with client_and_server(script) as (client, server):
        sending = asyncio.create_task(client.send(post_request(server), timeout_seconds=60))
        await wait_until(lambda: len(server.requests) == 1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        release.set()
        await server.wait_closed_by_client()
