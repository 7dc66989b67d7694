"""Sending to configured origins: what comes back, and what is known when nothing does."""

import asyncio
import email
from email.message import Message
from pathlib import Path

import pytest
import trustme

from penstock.net.client import HttpClient, NotSent, TooLarge, Unknown
from penstock.providers.spec import Outgoing, Upload
from tests.http_client import (
    SECRET,
    against,
    certified,
    post,
    settled,
    wire,
)
from tests.tcp_server import Peer, chunk, head, serve

# -------------------------------------------------------------------------------------------------------------- replies


async def test_request_and_reply_travel_whole() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(b"made", "X-Job: 7", "x-job: 8", "X-Odd: caf\xe9", status=201)

    async with against(script) as (sender, server):
        reply = await sender.send(post(server), total_seconds=5)
    assert (reply.status, reply.body) == (201, b"made")
    assert reply.headers["x-job"] == "7"
    assert reply.headers["content-length"] == "4"
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
async def test_a_request_without_a_body_says_so(method: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply()

    async with against(script) as (sender, server):
        await sender.send(Outgoing(method, f"{server.url}/cancel"), total_seconds=5)
    assert b"content-length: 0" in server.requests[0].lower()


async def test_a_form_keeps_its_order_names_and_types() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply()

    picture = bytes(range(256)) * 300
    form = (
        ("prompt", 'a "quoted" ü\r\nline'),
        ("image[]", Upload(picture, "image/png", "first.png")),
        ("n", "2"),
        ("image[]", Upload(b"second", "image/webp", "zweites ü.webp")),
        ("empty", ""),
    )
    async with against(script) as (sender, server):
        await sender.send(Outgoing("POST", server.url, {"x-key": "k"}, form=form), total_seconds=5)
    parts = parsed_form(server.requests[0])
    assert [part.get_param("name", header="content-disposition") for part in parts] == [
        "prompt", "image[]", "n", "image[]", "empty",
    ]  # fmt: skip
    assert [part.get_payload(decode=True) for part in parts] == [
        'a "quoted" ü\r\nline'.encode(), picture, b"2", b"second", b"",
    ]  # fmt: skip
    assert [part["content-type"] for part in parts] == [None, "image/png", None, "image/webp", None]
    assert parts[1].get_filename() == "first.png"
    assert parts[3].get_filename() is not None


def parsed_form(request: bytes) -> list[Message]:
    message = email.message_from_bytes(b"\r\n".join(request.split(b"\r\n")[1:]))
    assert message.is_multipart()
    return [part for part in message.walk() if not part.is_multipart()]


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 300_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_bodies_of_every_size_arrive_whole(size: int, chunked: bool) -> None:
    body = bytes(index * 7 % 251 for index in range(size))

    async def script(peer: Peer) -> None:
        await peer.request()
        if chunked:
            await peer.send(head("transfer-encoding: chunked"))
            for start in range(0, size, 40_000):
                await peer.send(chunk(body[start : start + 40_000]))
                await asyncio.sleep(0.01)  # a pause between pieces is not the end
            await peer.send(chunk(b""))
        else:
            await peer.reply(body)

    async with against(script) as (sender, server):
        assert (await sender.send(post(server), total_seconds=5)).body == body


async def test_a_body_may_end_with_the_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head() + b"all of it")

    async with against(script) as (sender, server):
        assert (await sender.send(post(server), total_seconds=5)).body == b"all of it"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_reply_and_never_followed(status: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(b"", f"location: {trap.url}/", status=status)

    async def trapped(peer: Peer) -> None:
        await peer.request()

    async with serve(trapped) as trap, against(script) as (sender, server):
        reply = await sender.send(post(server), total_seconds=5)
    assert reply.status == status
    assert reply.headers["location"] == f"{trap.url}/"
    assert trap.connections == 0


async def test_connections_are_reused_and_cookies_are_not_kept() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.reply(b"ok", "set-cookie: a=b; path=/")

    async with against(script) as (sender, server):
        for _ in range(3):
            assert (await sender.send(post(server), total_seconds=5)).body == b"ok"
    assert server.connections == 1
    assert not any(b"cookie:" in request.lower() for request in server.requests)


async def test_a_connection_that_was_closed_while_idle_is_replaced() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(b"ok")

    async with against(script) as (sender, server):
        for _ in range(3):
            assert (await sender.send(post(server), total_seconds=5)).body == b"ok"
            await asyncio.sleep(0.02)  # lets the close arrive; a send that races with it is Unknown, rightly
    assert server.connections == 3


# ---------------------------------------------------------------------------------------------------------- too large


@pytest.mark.parametrize("announced", [True, False])
async def test_a_reply_without_end_is_read_up_to_the_limit_only(announced: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-length: 10000000000" if announced else "transfer-encoding: chunked"))
        block = b"x" * 65_536
        while True:
            await peer.send(block if announced else chunk(block))

    async with against(script) as (sender, server):
        with pytest.raises(TooLarge):
            await sender.send(post(server), total_seconds=10, most_bytes=2_000_000)
        sent = await settled(lambda: server.sent_bytes)
    assert sent < 2_000_000 + 16_000_000  # the limit, and what buffers of two sockets may hold


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False), (70_000, False)])
@pytest.mark.parametrize("chunked", [False, True])
async def test_the_limit_is_exact(size: int, fits: bool, chunked: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if chunked:
            await peer.send(head("transfer-encoding: chunked") + chunk(b"x" * size) + chunk(b""))
        else:
            await peer.reply(b"x" * size)

    async with against(script) as (sender, server):
        sending = sender.send(post(server), total_seconds=5, most_bytes=1000)
        if fits:
            assert len((await sending).body) == size
        else:
            with pytest.raises(TooLarge):
                await sending


async def test_a_chunked_body_is_limited_whatever_length_is_announced_beside_it() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-length: 5", "transfer-encoding: chunked"))
        await peer.send(chunk(b"x" * 100_000) + chunk(b""))

    async with against(script) as (sender, server):
        with pytest.raises(Unknown):
            await sender.send(post(server), total_seconds=5, most_bytes=1000)


# ------------------------------------------------------------------------------------------------------------------ TLS


async def test_a_private_authority_is_trusted_when_configured(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(b"private")

    other, ours = trustme.CA(), trustme.CA()
    bundle = tmp_path / "roots.pem"
    bundle.write_bytes(other.cert_pem.bytes() + ours.cert_pem.bytes())
    async with serve(script, tls=certified(ours, "127.0.0.1")) as server:
        async with wire(ca_file=bundle) as sender:
            assert (await sender.send(post(server), total_seconds=5)).body == b"private"
        async with wire() as sender:
            with pytest.raises(NotSent):
                await sender.send(post(server), total_seconds=5)
    assert len(server.requests) == 1


def test_a_certificate_file_that_cannot_be_read_is_reported_at_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        HttpClient(ca_file=tmp_path / "missing.pem")
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    with pytest.raises(ValueError, match=r"nonsense\.pem"):
        HttpClient(ca_file=nonsense)
