"""Fetches from and deliveries to URLs that somebody else supplied: what is read, and what is blocked."""

import asyncio
import io
import os
import random
import sys
import textwrap
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import trustme

from penstock import cache
from penstock.long_bodies.long_body import StreamedBody
from penstock.net.checked_urls import EgressRules
from penstock.net.errors import UNREACHABLE, UrlBlocked
from penstock.providers.spec import HttpRequest
from tests.http_client import (
    LOOPBACK,
    MIB,
    SECRET,
    FakeResolver,
    fetch,
    fetch_and_post,
    open_client,
    post_guarded,
    random_loopback,
    responding,
    server_tls,
)
from tests.tcp_server import Connection, Script, chunk, response_head, serve

# ------------------------------------------------------------------------------------------------------------- reading


async def test_a_fetch_returns_status_headers_and_body() -> None:
    async with serve(responding(b"image", "content-type: image/png")) as server, open_client() as client:
        response = await fetch(client, f"{server.url}/a?b=c")
    assert (response.status, response.body) == (200, b"image")
    assert response.headers["content-type"] == "image/png"
    lines = server.requests[0].decode().lower().split("\r\n")
    assert lines[0] == "get /a?b=c http/1.1"
    assert {line.split(":")[0] for line in lines[1:-2]} == {"host", "accept", "accept-encoding", "user-agent"}
    assert "accept-encoding: identity" in lines


async def test_the_name_is_looked_up_once_and_is_used_for_host_header_and_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    address = random_loopback()
    resolver = FakeResolver([address])
    async with (
        serve(responding(), host=address, port=8443, tls=server_tls(authority, "x.example")) as server,
        open_client(ca_file=tmp_path / "ca.pem", resolver=resolver) as client,
    ):
        response = await fetch(client, "https://x.example:8443/a")
        assert await post_guarded(client, "https://x.example:8443/b") == 200
    assert response.body == b"image"
    assert resolver.hosts == ["x.example", "x.example"]
    assert all(b"host: x.example:8443\r\n" in request.lower() for request in server.requests)


async def test_deliveries_of_the_same_moment_look_their_name_up_once() -> None:
    resolver = FakeResolver(["127.0.0.1"])
    async with serve(responding()) as server, open_client(resolver=resolver) as client:
        for path in ("a", "a", "b"):
            url = f"http://x.example:{server.port}/{path}"
            assert await post_guarded(client, url, egress=EgressRules(allow_hosts=("x.example",))) == 200
        with pytest.raises(UrlBlocked):
            await post_guarded(client, f"http://x.example:{server.port}/a", egress=EgressRules())
    assert resolver.hosts == ["x.example"]


async def test_names_are_looked_up_by_the_system_by_default() -> None:
    async with serve(responding()) as server, open_client() as client:
        response = await fetch(
            client, f"http://localhost:{server.port}/", egress=EgressRules(allow_hosts=("localhost",))
        )
    assert response.body == b"image"


@fetch_and_post
async def test_requests_to_one_host_share_a_connection_and_two_hosts_never_do(call: Callable[..., Any]) -> None:
    egress = EgressRules(allow_hosts=("a.example", "b.example"))
    async with serve(responding()) as server, open_client(resolver=FakeResolver(["127.0.0.1"])) as client:
        for host in ("a.example", "a.example", "b.example", "a.example"):
            await call(client, f"http://{host}:{server.port}/", egress=egress)
    assert server.connections == 2


async def test_a_body_goes_to_the_writer() -> None:
    body = random.randbytes(300_000)
    writer = io.BytesIO()
    async with serve(responding(body)) as server, open_client() as client:
        response = await fetch(client, server.url, writer=writer)
    assert (response.body, writer.getvalue()) == (b"", body)


async def test_only_a_successful_response_is_written() -> None:
    writer = io.BytesIO()
    async with serve(responding(b"x" * 100_000, status=404)) as server, open_client() as client:
        response = await fetch(client, server.url, writer=writer)
    assert (response.status, len(response.body), writer.getvalue()) == (404, 65_536, b"")


@pytest.mark.parametrize("chunked", [False, True])
async def test_memory_stays_flat_while_a_long_body_is_written(chunked: bool, tmp_path: Path) -> None:
    block, blocks = random.randbytes(65_536), 3200

    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(
            response_head("transfer-encoding: chunked" if chunked else f"content-length: {len(block) * blocks}")
        )
        for _ in range(blocks):
            await connection.send(chunk(block) if chunked else block)
        if chunked:
            await connection.send(chunk(b""))

    class MeasuringWriter:
        def __init__(self, path: Path) -> None:
            self.file = path.open("wb")
            self.most = 0

        def write(self, data: bytes) -> None:
            self.file.write(data)
            self.most = max(self.most, psutil.Process().memory_info().rss)

    async with serve(responding()) as warm, serve(script) as server, open_client() as client:
        await fetch(client, warm.url)
        writer = MeasuringWriter(tmp_path / "body")
        before = psutil.Process().memory_info().rss
        response = await fetch(client, server.url, max_bytes=2**31, timeout_seconds=50, writer=writer)
        writer.file.close()
    assert response.status == 200
    assert (tmp_path / "body").stat().st_size == 200 * MIB
    assert writer.most - before <= 16 * MIB


# ----------------------------------------------------------------------------------------------------------- blocking


FORBIDDEN_URLS = [
    "http://x.example/",
    "https://x.example:444/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://localhost/",
    "https://a@x.example/",
    "https://x.example\\@y.example/",
    "https://①②⑦.⓪.⓪.①/",
    "file:///etc/passwd",
    "",
    "https://2130706433/",
    "https://metadata.google.internal/",
    "https://x.example:8443:1/",
]
FORBIDDEN_ADDRESSES = [
    ["127.0.0.1"],
    ["10.0.0.1"],
    ["169.254.169.254"],
    ["192.0.0.192"],
    ["168.63.129.16"],
    ["0.0.0.1"],
    ["::1"],
    ["::ffff:127.0.0.1"],
    ["64:ff9b::7f00:1"],
    ["2002:7f00:1::"],
    ["fe80::1%lo"],
    ["fd00:ec2::254"],
    ["nonsense"],
    [""],
    ["8.8.8.8", "10.0.0.1"],
    ["10.0.0.1", "8.8.8.8"],
    ["8.8.8.8", "2606:4700::1111", "::1"],
]


async def failure_of(sending: Awaitable[object]) -> Exception | None:
    try:
        await sending
    except Exception as error:
        return error
    return None


@fetch_and_post
async def test_the_host_of_a_forbidden_url_is_not_looked_up(call: Callable[..., Any]) -> None:
    resolver = FakeResolver(["127.0.0.1"])
    async with open_client(resolver=resolver) as client:
        failures = {url: await failure_of(call(client, url, egress=EgressRules())) for url in FORBIDDEN_URLS}
    assert [url for url, failure in failures.items() if not isinstance(failure, UrlBlocked)] == []
    assert resolver.hosts == []


@fetch_and_post
async def test_a_name_with_any_forbidden_ip_address_is_blocked(call: Callable[..., Any]) -> None:
    async with open_client(resolver=FakeResolver(*FORBIDDEN_ADDRESSES)) as client:
        for addresses in FORBIDDEN_ADDRESSES:
            failure = await failure_of(call(client, "https://x.example/", egress=EgressRules()))
            assert isinstance(failure, UrlBlocked), addresses
            assert str(failure) == UNREACHABLE
            assert not failure.local


@fetch_and_post
async def test_a_name_that_changes_its_ip_address_is_checked_each_time(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "RECENT_SECONDS", 0.0)
    allowed = random_loopback()
    forbidden = random_loopback()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = server_tls(authority, "x.example")
    resolver = FakeResolver([allowed], [forbidden])
    async with (
        serve(responding(), host=allowed, port=8443, tls=tls) as allowed_server,
        serve(responding(), host=forbidden, port=8443, tls=tls) as forbidden_server,
        open_client(ca_file=tmp_path / "ca.pem", resolver=resolver) as client,
    ):
        egress = EgressRules((f"{allowed}/32",))
        await call(client, "https://x.example:8443/", egress=egress)
        for _ in range(3):
            with pytest.raises(UrlBlocked):
                await call(client, "https://x.example:8443/", egress=egress)
    assert (len(allowed_server.requests), forbidden_server.connections) == (1, 0)
    assert len(resolver.hosts) == 4


@pytest.mark.parametrize("name", ["Authorization", "cookie", "Proxy-Authorization"])
async def test_credentials_are_never_sent(name: str) -> None:
    async with serve(responding()) as server, open_client() as client:
        with pytest.raises(ValueError, match="credentials"):
            await client.post_guarded(server.url, b"", {name: SECRET}, timeout_seconds=5, egress=LOOPBACK)
    assert server.connections == 0


# ------------------------------------------------------------------------------------------------------------ redirects


def redirecting(*locations: str) -> Script:
    """Redirects /0 to the first location, /1 to the second and so on; any other path gives an image."""

    async def script(connection: Connection) -> None:
        while True:
            path = (await connection.read_request()).split()[1].decode()
            hop = int(path[1:] or 0)
            if hop < len(locations):
                await connection.respond(
                    b"moved", f"location: {locations[hop]}", status=(301, 302, 303, 307, 308)[hop % 5]
                )
            else:
                await connection.respond(b"image")

    return script


async def test_redirects_are_followed_up_to_the_limit() -> None:
    writer = io.BytesIO()
    async with serve(redirecting("/1", "2", "?", "x")) as server, open_client() as client:
        stopped = await fetch(client, f"{server.url}/0", max_redirects=1)
        assert (stopped.status, stopped.headers["location"], stopped.body) == (302, "2", b"moved")
        response = await fetch(client, f"{server.url}/9", max_redirects=3, writer=writer)
        assert response.status == 200
    async with serve(redirecting("/1", "2", "./3")) as server, open_client() as client:
        assert (await fetch(client, f"{server.url}/0", max_redirects=3)).body == b"image"
        assert (await fetch(client, f"{server.url}/0", max_redirects=2)).status == 303
        assert (await fetch(client, f"{server.url}/0")).status == 301
    assert writer.getvalue() == b"image"


async def test_a_delivery_follows_no_redirect() -> None:
    async with serve(responding()) as other, open_client() as client:
        for status in (301, 302, 307, 308):
            async with serve(responding(b"", f"location: {other.url}/", status=status)) as server:
                assert await post_guarded(client, server.url) == status
    assert other.connections == 0


@pytest.mark.parametrize("target", ["http://{}:{}/", "//{}:{}/", "https://{}:{}/"])
async def test_a_redirect_to_a_forbidden_ip_address_is_not_followed(target: str) -> None:
    forbidden = random_loopback()
    async with (
        serve(responding(), host=forbidden) as other,
        serve(redirecting(target.format(forbidden, other.port))) as server,
        open_client() as client,
    ):
        with pytest.raises(UrlBlocked):
            await fetch(client, f"{server.url}/0", max_redirects=3, egress=EgressRules(("127.0.0.1/32",)))
    assert other.connections == 0


@pytest.mark.parametrize("location", ["http://[::1", "https://x.example\\@y", "ftp://x.example/", "https://[/"])
async def test_a_redirect_to_a_malformed_url_is_blocked(location: str) -> None:
    async with serve(redirecting(location)) as server, open_client() as client:
        with pytest.raises(UrlBlocked):
            await fetch(client, f"{server.url}/0", max_redirects=3)


async def test_a_redirect_from_https_to_http_is_blocked(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with (
        serve(responding()) as plain,
        serve(redirecting(f"{plain.url}/9"), tls=server_tls(authority, "127.0.0.1")) as server,
        open_client(ca_file=tmp_path / "ca.pem") as client,
    ):
        with pytest.raises(UrlBlocked):
            await fetch(client, f"{server.url}/0", max_redirects=3)
    assert plain.connections == 0


# ---------------------------------------------------------------------------------------------------------- environment


async def test_proxy_variables_and_netrc_are_ignored(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = """
        import asyncio, sys
        from penstock.net.client import HttpClient
        from penstock.net.checked_urls import EgressRules
        from penstock.providers.spec import HttpRequest

        async def main(url):
            client, egress = HttpClient(), EgressRules(("127.0.0.0/8",))
            assert (await client.send(HttpRequest("POST", url), timeout_seconds=10)).status == 200
            assert (await client.fetch(url, egress=egress, max_bytes=100, timeout_seconds=10)).status == 200
            assert await client.post_guarded(url, b"{}", {}, egress=egress, timeout_seconds=10) == 200
            async with client.stream(HttpRequest("GET", url), read_timeout_seconds=10, timeout_seconds=10) as stream:
                assert stream.status == 200
            await client.close()

        asyncio.run(main(sys.argv[1]))
    """
    async with serve(responding()) as other, serve(responding()) as server:
        (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login someone password {SECRET}\n")
        (tmp_path / ".netrc").chmod(0o600)
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        environment = (
            os.environ | dict.fromkeys(names, other.url) | {"HOME": str(tmp_path), "NO_PROXY": "", "no_proxy": ""}
        )
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", textwrap.dedent(program), f"{server.url}/", env=environment
        )
        assert await child.wait() == 0
    assert (len(server.requests), other.connections) == (4, 0)
    assert not any(b"authorization" in request.lower() for request in server.requests)


# ------------------------------------------------------------------------------------------------------ streamed bodies


def streamed(pieces: int, read: list[int], *, length: int | None = None) -> StreamedBody:
    """A body of so many mebibytes, which counts the pieces that were read of it."""

    async def chunks() -> AsyncGenerator[bytes]:
        for number in range(pieces):
            read.append(number)
            yield bytes(MIB)

    return StreamedBody(chunks(), pieces * MIB if length is None else length)


async def test_a_streamed_body_arrives_whole() -> None:
    read: list[int] = []
    async with serve(responding()) as server, open_client() as client:
        request = HttpRequest("PUT", f"{server.url}/x", {}, streamed(3, read))
        reply = await client.send_guarded(request, timeout_seconds=30, egress=LOOPBACK)
        assert (reply.status, reply.body) == (200, b"image")
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        assert b"content-length: 3145728" in head
        assert body == bytes(3 * MIB)


async def test_a_streamed_body_is_read_no_further_than_the_server_takes_it() -> None:
    """A refusal before the end of a large file ends the sending, and the file is never in memory as a whole."""

    async def refuse(connection: Connection) -> None:
        await connection.read_head()
        await connection.respond(b"no", status=403)
        await connection.wait_closed()

    read: list[int] = []
    async with serve(refuse) as server, open_client() as client:
        request = HttpRequest("PUT", f"{server.url}/x", {}, streamed(1000, read))
        reply = await client.send_guarded(request, timeout_seconds=30, egress=LOOPBACK)
    assert (reply.status, reply.body) == (403, b"no")
    assert len(read) < 500


async def test_a_streamed_body_whose_source_fails_closes_the_connection() -> None:
    async def broken() -> AsyncGenerator[bytes]:
        yield bytes(MIB)
        raise OSError("the disk is gone")

    async with serve(responding()) as server, open_client() as client:
        request = HttpRequest("PUT", f"{server.url}/x", {}, StreamedBody(broken(), 2 * MIB))
        with pytest.raises(OSError, match="the disk is gone"):
            await client.send_guarded(request, timeout_seconds=30, egress=LOOPBACK)
        ok = await client.send_guarded(HttpRequest("GET", server.url), timeout_seconds=30, egress=LOOPBACK)
        assert (ok.status, server.connections) == (200, 2)
