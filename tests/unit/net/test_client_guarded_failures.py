"""How fetches and deliveries fail when the server, the name service or this machine fails."""

import asyncio
import io
import resource
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme

from penstock.net.checked_urls import EgressRules
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge, UrlBlocked
from tests.http_client import (
    MIB,
    SECRET,
    FakeResolver,
    fetch,
    fetch_and_post,
    full_text,
    open_client,
    post_guarded,
    random_loopback,
    responding,
    server_tls,
    timeout_of,
)
from tests.ports import unused_port
from tests.tcp_server import Connection, endless_response, response_head, serve


@fetch_and_post
@pytest.mark.parametrize("resolved", [socket.gaierror(-2, "Name or service not known"), []], ids=str)
async def test_a_name_without_an_ip_address_means_not_sent(call: Callable[..., Any], resolved: Any) -> None:
    async with open_client(resolver=FakeResolver(resolved)) as client:
        with pytest.raises(NotSent) as failure:
            await call(client, "https://x.example/")
    assert not isinstance(failure.value, UrlBlocked)


@fetch_and_post
async def test_a_lookup_that_hangs_ends_at_the_timeout(call: Callable[..., Any]) -> None:
    async def hang(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with open_client(resolver=hang) as client, asyncio.timeout(60):
        with pytest.raises(NotSent):
            await call(client, "https://x.example/", timeout_seconds=0.1)


async def test_the_next_ip_address_is_tried_while_nothing_was_sent() -> None:
    egress = EgressRules(allow_hosts=("x.example",))
    dead = random_loopback()
    alive = random_loopback()
    async with serve(responding(), host=alive) as server, open_client(resolver=FakeResolver([dead, alive])) as client:
        assert (await fetch(client, f"http://x.example:{server.port}/", egress=egress)).body == b"image"


@fetch_and_post
async def test_the_next_ip_address_is_not_tried_once_something_was_sent(call: Callable[..., Any]) -> None:
    async def close(connection: Connection) -> None:
        await connection.read_request()

    egress = EgressRules(allow_hosts=("x.example",))
    first = random_loopback()
    second = random_loopback()
    async with (
        serve(close, host=first) as server,
        serve(responding(), host=second, port=server.port) as spare,
        open_client(resolver=FakeResolver([first, second])) as client,
    ):
        with pytest.raises(MaybeSent):
            await call(client, f"http://x.example:{server.port}/", egress=egress)
    assert (len(server.requests), spare.connections) == (1, 0)


@fetch_and_post
async def test_a_silent_or_slow_server_ends_in_a_timeout(call: Callable[..., Any]) -> None:
    async def never_respond(connection: Connection) -> None:
        await connection.read_request()
        await connection.wait_closed()

    async def send_a_slow_head(connection: Connection) -> None:
        await connection.read_request()
        for byte in b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000:
            await connection.send(bytes([byte]))
            await asyncio.sleep(0.01)

    async def send_a_slow_body(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("content-length: 1000"))
        while True:
            await connection.send(b"x")
            await asyncio.sleep(0.01)

    for script in (never_respond, send_a_slow_head, send_a_slow_body):
        async with serve(script) as server, open_client() as client:
            await timeout_of(partial(call, client, server.url, timeout_seconds=0.3))
            await server.wait_ended()
            assert server.sent_bytes < 1000


@pytest.mark.parametrize("announced", [True, False])
async def test_a_response_that_is_too_large_is_read_up_to_the_limit(announced: bool) -> None:
    writer = io.BytesIO()
    async with serve(endless_response(announced=announced)) as server, open_client() as client:
        with pytest.raises(ResponseTooLarge):
            await fetch(client, server.url, max_bytes=3 * MIB, writer=writer)
        await server.wait_ended()
        assert server.sent_bytes < 20 * MIB
    assert len(writer.getvalue()) <= 3 * MIB


async def test_the_status_of_an_endless_response_to_a_delivery_is_returned() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("content-length: 10000000000") + b"x" * 20_000)
        await connection.wait_closed()

    async with serve(script) as server, open_client() as client:
        assert await post_guarded(client, server.url) == 200  # at most 16 KiB of the body are read
        await server.wait_closed_by_client()


@fetch_and_post
async def test_a_response_that_is_cut_off_means_maybe_sent(call: Callable[..., Any]) -> None:
    async def cut_head(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(b"HTTP/1.1 200 OK\r\nconte")

    async def cut_body(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head("content-length: 10") + b"abc")

    for script in (cut_head, cut_body):
        async with serve(script) as server, open_client() as client:
            with pytest.raises(MaybeSent) as failure:
                await call(client, server.url)
            assert not failure.value.timeout


@fetch_and_post
async def test_certificates_are_checked(call: Callable[..., Any], tmp_path: Path) -> None:
    ours = trustme.CA()
    other = trustme.CA()
    ours.cert_pem.write_to_path(tmp_path / "ca.pem")
    past = datetime(2020, 1, 1, tzinfo=UTC)
    expired = ours.issue_cert("x.example", not_after=past)
    resolver = FakeResolver(["127.0.0.1"])
    egress = EgressRules(allow_hosts=("x.example",))
    async with open_client(ca_file=tmp_path / "ca.pem", resolver=resolver) as client:
        for tls, accepted in (
            (server_tls(ours, "x.example"), True),
            (server_tls(other, "x.example"), False),
            (server_tls(ours, "y.example"), False),
            (server_tls(ours, "127.0.0.1"), False),
            (tls_with(expired), False),
        ):
            async with serve(responding(), tls=tls) as server:
                if accepted:
                    await call(client, f"https://x.example:{server.port}/", egress=egress)
                else:
                    with pytest.raises(NotSent):
                        await call(client, f"https://x.example:{server.port}/", egress=egress)
            assert len(server.requests) == accepted


def tls_with(certificate: trustme.LeafCert) -> Any:
    context = server_tls(trustme.CA(), "x.example")
    certificate.configure_cert(context)
    return context


@fetch_and_post
@pytest.mark.parametrize("known", [True, False])
async def test_a_lack_of_file_descriptors_is_a_local_problem(call: Callable[..., Any], known: bool) -> None:
    async def respond_and_close(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(b"", "connection: close")

    async with serve(respond_and_close) as server, open_client() as client:
        await call(client, f"http://127.0.0.1:{server.port}/")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # open descriptors stay open
            with pytest.raises(NotSent) as failure:
                await call(client, f"http://{'127.0.0.1' if known else '127.0.0.2'}:{server.port}/")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert failure.value.local


@fetch_and_post
async def test_errors_do_not_quote_the_url(call: Callable[..., Any]) -> None:
    async with open_client() as client:
        with pytest.raises(NotSent) as failure:
            await call(client, f"http://127.0.0.1:{unused_port()}/{SECRET}?key={SECRET}")
    assert SECRET not in full_text(failure.value)
