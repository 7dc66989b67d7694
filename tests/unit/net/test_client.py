"""Requests to configured providers, and the responses to them."""

import asyncio
import email
from email.message import Message
from pathlib import Path

import psutil
import pytest
import trustme

from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge
from penstock.providers.spec import HttpRequest, Upload
from tests.http_client import (
    SECRET,
    client_and_server,
    open_client,
    post_request,
    server_tls,
    wait_until,
)
from tests.tcp_server import Connection, chunk, endless_response, response_head, serve

# ----------------------------------------------------------------------------------------------------------- responses


async def test_a_request_and_its_response_arrive_complete() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"made", "X-Job: 7", "x-job: 8", "X-Odd: caf\xe9", status=201)

    async with client_and_server(script) as (client, server):
        response = await client.send(post_request(server), timeout_seconds=5)
    assert (response.status, response.body) == (201, b"made")
    assert response.headers["x-job"] == "7"
    assert response.headers["content-length"] == "4"
    start, *lines = server.requests[0].decode().split("\r\n")
    sent = dict(line.lower().split(": ", 1) for line in lines[:-2])
    assert start == f"POST /v1/make?key={SECRET} HTTP/1.1"
    assert lines[-1] == '{"a":1}'
    assert sent["authorization"] == f"bearer {SECRET}"
    assert sent["content-type"] == "application/json"
    assert sent["content-length"] == "7"
    assert sent["accept-encoding"] == "identity"
    assert sent["user-agent"].startswith("penstock/")
    assert set(sent) == {
        "authorization",
        "content-type",
        "content-length",
        "accept-encoding",
        "user-agent",
        "accept",
        "host",
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_a_request_without_a_body_has_content_length_zero(method: str) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond()

    async with client_and_server(script) as (client, server):
        await client.send(HttpRequest(method, f"{server.url}/cancel"), timeout_seconds=5)
    assert b"content-length: 0" in server.requests[0].lower()


async def test_a_form_keeps_the_order_names_and_types_of_its_parts() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond()

    image = bytes(range(256)) * 300
    form = (
        ("prompt", 'a "quoted" ü\r\nline'),
        ("image[]", Upload(image, "image/png", "first.png")),
        ("n", "2"),
        ("image[]", Upload(b"second", "image/webp", "zweites ü.webp")),
        ("empty", ""),
    )
    async with client_and_server(script) as (client, server):
        await client.send(HttpRequest("POST", server.url, {"x-key": "k"}, form=form), timeout_seconds=5)
    parts = form_parts(server.requests[0])
    assert [part.get_param("name", header="content-disposition") for part in parts] == [
        "prompt",
        "image[]",
        "n",
        "image[]",
        "empty",
    ]
    assert [part.get_payload(decode=True) for part in parts] == [
        'a "quoted" ü\r\nline'.encode(),
        image,
        b"2",
        b"second",
        b"",
    ]
    assert [part["content-type"] for part in parts] == [None, "image/png", None, "image/webp", None]
    assert parts[1].get_filename() == "first.png"
    assert parts[3].get_filename() is not None


def form_parts(request: bytes) -> list[Message]:
    message = email.message_from_bytes(b"\r\n".join(request.split(b"\r\n")[1:]))
    assert message.is_multipart()
    return [part for part in message.walk() if not part.is_multipart()]


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 300_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_bodies_of_every_size_arrive_complete(size: int, chunked: bool) -> None:
    body = bytes(index * 7 % 251 for index in range(size))

    async def script(connection: Connection) -> None:
        await connection.read_request()
        if chunked:
            await connection.send(response_head("transfer-encoding: chunked"))
            for start in range(0, size, 40_000):
                await connection.send(chunk(body[start : start + 40_000]))
                await asyncio.sleep(0.01)  # a pause between chunks is not the end
            await connection.send(chunk(b""))
        else:
            await connection.respond(body)

    async with client_and_server(script) as (client, server):
        assert (await client.send(post_request(server), timeout_seconds=5)).body == body


async def test_a_body_can_end_with_the_connection() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head() + b"all of it")

    async with client_and_server(script) as (client, server):
        assert (await client.send(post_request(server), timeout_seconds=5)).body == b"all of it"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_returned_and_not_followed(status: int) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"", f"location: {other.url}/", status=status)

    async def record(connection: Connection) -> None:
        await connection.read_request()

    async with serve(record) as other, client_and_server(script) as (client, server):
        response = await client.send(post_request(server), timeout_seconds=5)
    assert response.status == status
    assert response.headers["location"] == f"{other.url}/"
    assert other.connections == 0


async def test_connections_are_reused_and_cookies_are_not() -> None:
    async def script(connection: Connection) -> None:
        while True:
            await connection.read_request()
            await connection.respond(b"ok", "set-cookie: a=b; path=/")

    async with client_and_server(script) as (client, server):
        for _ in range(3):
            assert (await client.send(post_request(server), timeout_seconds=5)).body == b"ok"
    assert server.connections == 1
    assert not any(b"cookie:" in request.lower() for request in server.requests)


async def test_a_connection_that_was_closed_while_idle_is_replaced() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"ok")

    async with client_and_server(script) as (client, server):
        for _ in range(3):
            assert (await client.send(post_request(server), timeout_seconds=5)).body == b"ok"
            await wait_until(lambda: not has_connection_to(server.port))
    assert server.connections == 3


def has_connection_to(port: int) -> bool:
    connections = psutil.Process().net_connections("tcp4")
    return any(connection.raddr[1:2] == (port,) for connection in connections)


# ---------------------------------------------------------------------------------------------------------- too large


@pytest.mark.parametrize("announced", [True, False])
async def test_an_endless_response_is_read_up_to_the_limit(announced: bool) -> None:
    async with client_and_server(endless_response(announced=announced)) as (client, server):
        with pytest.raises(ResponseTooLarge):
            await client.send(post_request(server), timeout_seconds=10, max_bytes=2_000_000)
        await server.wait_ended()
    assert server.sent_bytes < 2_000_000 + 16_000_000  # the limit, and what buffers of two sockets may hold


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False), (70_000, False)])
@pytest.mark.parametrize("chunked", [False, True])
async def test_the_limit_is_exact(size: int, fits: bool, chunked: bool) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        if chunked:
            await connection.send(response_head("transfer-encoding: chunked") + chunk(b"x" * size) + chunk(b""))
        else:
            await connection.respond(b"x" * size)

    async with client_and_server(script) as (client, server):
        sending = client.send(post_request(server), timeout_seconds=5, max_bytes=1000)
        if fits:
            assert len((await sending).body) == size
        else:
            with pytest.raises(ResponseTooLarge):
                await sending


async def test_a_chunked_body_is_limited_whatever_its_content_length() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("content-length: 5", "transfer-encoding: chunked"))
        await connection.send(chunk(b"x" * 100_000) + chunk(b""))

    async with client_and_server(script) as (client, server):
        with pytest.raises(MaybeSent):
            await client.send(post_request(server), timeout_seconds=5, max_bytes=1000)


# ------------------------------------------------------------------------------------------------------------------ TLS


async def test_a_private_certificate_authority_can_be_configured(tmp_path: Path) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"private")

    other = trustme.CA()
    ours = trustme.CA()
    bundle = tmp_path / "roots.pem"
    bundle.write_bytes(other.cert_pem.bytes() + ours.cert_pem.bytes())
    async with serve(script, tls=server_tls(ours, "127.0.0.1")) as server:
        async with open_client(ca_file=bundle) as client:
            assert (await client.send(post_request(server), timeout_seconds=5)).body == b"private"
        async with open_client() as client:
            with pytest.raises(NotSent):
                await client.send(post_request(server), timeout_seconds=5)
    assert len(server.requests) == 1


def test_an_unusable_certificate_file_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        HttpClient(ca_file=tmp_path / "missing.pem")
    malformed = tmp_path / "malformed.pem"
    malformed.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    with pytest.raises(ValueError, match=r"malformed\.pem"):
        HttpClient(ca_file=malformed)
