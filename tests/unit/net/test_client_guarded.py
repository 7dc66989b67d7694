"""Fetching from and delivering to addresses that somebody else chose: what comes, and what is refused."""

import asyncio
import hashlib
import io
import os
import random
import socket
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import trustme

from penstock.net.client import Refused, is_own
from penstock.net.guard import UNREACHABLE, Egress
from tests.http_client import (
    LOOPBACK,
    MIB,
    SECRET,
    Names,
    answering,
    both_ways,
    certified,
    fetched,
    own_loopback,
    posted,
    wire,
)
from tests.tcp_server import Peer, Script, chunk, head, serve

# ----------------------------------------------------------------------------------------------------------- what comes


async def test_a_fetch_tells_what_it_got() -> None:
    async with serve(answering(b"picture", "content-type: image/png")) as server, wire() as sender:
        got = await fetched(sender, f"{server.url}/a?b=c")
    assert (got.status, got.body, got.size_bytes) == (200, b"picture", 7)
    assert got.sha256 == hashlib.sha256(b"picture").hexdigest()
    assert got.headers["content-type"] == "image/png"
    lines = server.requests[0].decode().lower().split("\r\n")
    assert lines[0] == "get /a?b=c http/1.1"
    assert {line.split(":")[0] for line in lines[1:-2]} == {"host", "accept", "accept-encoding", "user-agent"}
    assert "accept-encoding: identity" in lines


async def test_the_name_is_looked_up_once_and_is_the_one_in_request_and_certificate(tmp_path: Path) -> None:
    authority, address, names = trustme.CA(), own_loopback(), Names(["placeholder"])
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    names = Names([address])
    async with (
        serve(answering(), host=address, port=8443, tls=certified(authority, "x.example")) as server,
        wire(ca_file=tmp_path / "ca.pem", resolver=names) as sender,
    ):
        got = await fetched(sender, "https://x.example:8443/a")
        assert await posted(sender, "https://x.example:8443/b") == 200
    assert got.body == b"picture"
    assert names.asked == ["x.example", "x.example"]
    assert all(b"host: x.example:8443\r\n" in request.lower() for request in server.requests)


async def test_the_systems_name_service_is_asked_by_default() -> None:
    async with serve(answering()) as server, wire() as sender:
        got = await fetched(sender, f"http://localhost:{server.port}/", egress=Egress(allow_hosts=("localhost",)))
    assert got.body == b"picture"


async def test_deliveries_to_one_receiver_share_a_connection_and_hosts_never_do() -> None:
    egress = Egress(allow_hosts=("a.example", "b.example"))
    async with serve(answering()) as server, wire(resolver=Names(["127.0.0.1"])) as sender:
        for host in ("a.example", "a.example", "b.example", "a.example"):
            assert await posted(sender, f"http://{host}:{server.port}/", egress=egress) == 200
    assert server.connections == 2


async def test_of_many_receivers_the_latest_keep_their_connection() -> None:
    hosts = [f"h{number}.example" for number in range(33)]
    egress = Egress(allow_hosts=tuple(hosts))
    async with serve(answering()) as server, wire(resolver=Names(["127.0.0.1"])) as sender:
        for host in (*hosts, hosts[-1], hosts[1]):
            await posted(sender, f"http://{host}:{server.port}/", egress=egress)
        assert server.connections == 33
        await posted(sender, f"http://{hosts[0]}:{server.port}/", egress=egress)
        assert server.connections == 34


async def test_a_body_goes_to_a_file_or_to_something_that_is_awaited() -> None:
    class Slow:
        def __init__(self) -> None:
            self.got = b""

        async def write(self, data: bytes) -> None:
            await asyncio.sleep(0)
            self.got += data

    body = random.randbytes(300_000)
    plain, slow = io.BytesIO(), Slow()
    async with serve(answering(body)) as server, wire() as sender:
        for sink in (plain, slow):
            got = await fetched(sender, server.url, sink=sink)
            assert (got.size_bytes, got.sha256, got.body) == (300_000, hashlib.sha256(body).hexdigest(), b"")
    assert plain.getvalue() == slow.got == body


async def test_only_a_success_reaches_the_sink() -> None:
    sink = io.BytesIO()
    async with serve(answering(b"x" * 100_000, status=404)) as server, wire() as sender:
        got = await fetched(sender, server.url, sink=sink)
    assert (got.status, len(got.body), sink.getvalue()) == (404, 65_536, b"")


@pytest.mark.parametrize("chunked", [False, True])
async def test_memory_stays_flat_while_a_long_body_passes(chunked: bool, tmp_path: Path) -> None:
    block, blocks = random.randbytes(65_536), 3200

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("transfer-encoding: chunked" if chunked else f"content-length: {len(block) * blocks}"))
        for _ in range(blocks):
            await peer.send(chunk(block) if chunked else block)
        if chunked:
            await peer.send(chunk(b""))

    class Sink:
        def __init__(self, path: Path) -> None:
            self.file = path.open("wb")
            self.most = 0

        def write(self, data: bytes) -> None:
            self.file.write(data)
            self.most = max(self.most, psutil.Process().memory_info().rss)

    async with serve(answering()) as warm, serve(script) as server, wire() as sender:
        await fetched(sender, warm.url)
        sink, before = Sink(tmp_path / "body"), psutil.Process().memory_info().rss
        got = await fetched(sender, server.url, most_bytes=2**31, total_seconds=50, sink=sink)
        sink.file.close()
    assert got.size_bytes == (tmp_path / "body").stat().st_size == 200 * MIB
    assert sink.most - before <= 16 * MIB


# ---------------------------------------------------------------------------------------------------- what is refused


@both_ways
@pytest.mark.parametrize(
    "url",
    [
        "http://x.example/", "https://x.example:444/", "https://127.0.0.1/", "https://[::1]/", "https://localhost/",
        "https://a@x.example/", "https://x.example\\@y.example/", "https://①②⑦.⓪.⓪.①/", "file:///etc/passwd", "",
        "https://2130706433/", "https://metadata.google.internal/", "https://x.example:8443:1/",
    ],
)  # fmt: skip
async def test_a_forbidden_spelling_is_not_even_looked_up(go: Callable[..., Any], url: str) -> None:
    names = Names(["127.0.0.1"])
    async with wire(resolver=names) as sender:
        with pytest.raises(Refused, match=UNREACHABLE):
            await go(sender, url, egress=Egress())
    assert names.asked == []


@both_ways
@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["192.0.0.192"], ["168.63.129.16"], ["0.0.0.1"],
        ["::1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"], ["2002:7f00:1::"], ["fe80::1%lo"], ["fd00:ec2::254"],
        ["nonsense"], [""], ["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "2606:4700::1111", "::1"],
    ],
    ids=str,
)  # fmt: skip
async def test_a_name_with_any_forbidden_address_is_refused(go: Callable[..., Any], answer: list[str]) -> None:
    async with wire(resolver=Names(answer)) as sender:
        with pytest.raises(Refused) as failure:
            await go(sender, "https://x.example/", egress=Egress())
    assert str(failure.value) == UNREACHABLE
    assert not failure.value.local


@both_ways
async def test_a_name_that_changes_its_answer_gains_nothing(go: Callable[..., Any], tmp_path: Path) -> None:
    authority, allowed, forbidden = trustme.CA(), own_loopback(), own_loopback()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls, names = certified(authority, "x.example"), Names([allowed], [forbidden])
    async with (
        serve(answering(), host=allowed, port=8443, tls=tls) as good,
        serve(answering(), host=forbidden, port=8443, tls=tls) as trap,
        wire(ca_file=tmp_path / "ca.pem", resolver=names) as sender,
    ):
        egress = Egress((f"{allowed}/32",))
        await go(sender, "https://x.example:8443/", egress=egress)
        for _ in range(3):
            with pytest.raises(Refused):
                await go(sender, "https://x.example:8443/", egress=egress)
    assert (len(good.requests), trap.connections) == (1, 0)
    assert len(names.asked) == 4


@pytest.mark.allow_hosts(["0.0.0.0/0", "::/0"])  # asked for the way there; nothing is sent
def test_this_machines_own_addresses_are_known() -> None:
    interfaces = psutil.net_if_addrs().values()
    own = {each.address for found in interfaces for each in found if each.family in (socket.AF_INET, socket.AF_INET6)}
    assert "127.0.0.1" in own
    assert [address for address in own if "%" not in address and not is_own(address)] == []
    assert [address for address in ("192.0.2.77", "8.8.8.8", "2001:4860::1") if is_own(address)] == []


@pytest.mark.parametrize("name", ["Authorization", "cookie", "Proxy-Authorization"])
async def test_credentials_are_never_sent_along(name: str) -> None:
    async with serve(answering()) as server, wire() as sender:
        with pytest.raises(ValueError, match="credentials"):
            await fetched(sender, server.url, headers={name: SECRET})
        with pytest.raises(ValueError, match="credentials"):
            await sender.post_guarded(server.url, b"", {name: SECRET}, total_seconds=5, egress=LOOPBACK)
    assert server.connections == 0


# ------------------------------------------------------------------------------------------------------------ redirects


def hopping(*locations: str) -> Script:
    """Answers /0 with the first location, /1 with the second and so on, then with a picture."""

    async def script(peer: Peer) -> None:
        while True:
            path = (await peer.request()).split()[1].decode()
            hop = int(path[1:] or 0)
            if hop < len(locations):
                await peer.reply(b"moved", f"location: {locations[hop]}", status=(301, 302, 303, 307, 308)[hop % 5])
            else:
                await peer.reply(b"picture")

    return script


async def test_redirects_are_followed_by_hand_up_to_the_limit() -> None:
    sink = io.BytesIO()
    async with serve(hopping("/1", "2", "?", "x")) as server, wire() as sender:
        stopped = await fetched(sender, f"{server.url}/0", redirects=1)
        assert (stopped.status, stopped.headers["location"], stopped.body) == (302, "2", b"moved")
        got = await fetched(sender, f"{server.url}/9", redirects=3, sink=sink)
        assert got.status == 200
    async with serve(hopping("/1", "2", "./3")) as server, wire() as sender:
        assert (await fetched(sender, f"{server.url}/0", redirects=3)).body == b"picture"
        assert (await fetched(sender, f"{server.url}/0", redirects=2)).status == 303
        assert (await fetched(sender, f"{server.url}/0")).status == 301
    assert sink.getvalue() == b"picture"


async def test_a_delivery_follows_nothing() -> None:
    async with serve(answering()) as trap, wire() as sender:
        for status in (301, 302, 307, 308):
            async with serve(answering(b"", f"location: {trap.url}/", status=status)) as server:
                assert await posted(sender, server.url) == status
    assert trap.connections == 0


@pytest.mark.parametrize("target", ["http://{}:{}/", "//{}:{}/", "https://{}:{}/"])
async def test_a_redirect_to_a_forbidden_address_is_not_followed(target: str) -> None:
    forbidden = own_loopback()
    async with (
        serve(answering(), host=forbidden) as trap,
        serve(hopping(target.format(forbidden, trap.port))) as server,
        wire() as sender,
    ):
        with pytest.raises(Refused):
            await fetched(sender, f"{server.url}/0", redirects=3, egress=Egress(("127.0.0.1/32",)))
    assert trap.connections == 0


@pytest.mark.parametrize("location", ["http://[::1", "https://x.example\\@y", "ftp://x.example/", "https://[/"])
async def test_a_redirect_to_nonsense_is_refused(location: str) -> None:
    async with serve(hopping(location)) as server, wire() as sender:
        with pytest.raises(Refused):
            await fetched(sender, f"{server.url}/0", redirects=3)


async def test_a_redirect_never_leaves_encryption(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with (
        serve(answering()) as plain,
        serve(hopping(f"{plain.url}/9"), tls=certified(authority, "127.0.0.1")) as server,
        wire(ca_file=tmp_path / "ca.pem") as sender,
    ):
        with pytest.raises(Refused):
            await fetched(sender, f"{server.url}/0", redirects=3)
    assert plain.connections == 0


async def test_headers_stay_with_the_host_they_were_meant_for() -> None:
    async with serve(answering()) as other, serve(hopping("/1", f"{other.url}/9")) as server, wire() as sender:
        await fetched(sender, f"{server.url}/0", redirects=3, headers={"x-token": SECRET})
    assert [SECRET.encode() in request for request in (*server.requests, *other.requests)] == [True, True, False]


# ---------------------------------------------------------------------------------------------------------- environment


async def test_the_environment_has_no_say_in_where_requests_go(tmp_path: Path) -> None:
    program = """
        import asyncio, sys
        from penstock.net.guard import Egress
        from penstock.providers.spec import Outgoing
        from penstock.net.client import HttpClient

        async def main(url):
            wire, egress = HttpClient(), Egress(("127.0.0.0/8",))
            assert (await wire.send(Outgoing("POST", url), total_seconds=10)).status == 200
            assert (await wire.fetch(url, egress=egress, most_bytes=100, total_seconds=10)).status == 200
            assert await wire.post_guarded(url, b"{}", {}, egress=egress, total_seconds=10) == 200
            async with wire.stream(Outgoing("GET", url), idle_seconds=10, total_seconds=10) as stream:
                assert stream.status == 200
            await wire.close()

        asyncio.run(main(sys.argv[1]))
    """
    async with serve(answering()) as trap, serve(answering()) as server:
        (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login someone password {SECRET}\n")
        (tmp_path / ".netrc").chmod(0o600)
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        environment = (
            os.environ | dict.fromkeys(names, trap.url) | {"HOME": str(tmp_path), "NO_PROXY": "", "no_proxy": ""}
        )
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", textwrap.dedent(program), f"{server.url}/", env=environment
        )
        assert await child.wait() == 0
    assert (len(server.requests), trap.connections) == (4, 0)
    assert not any(b"authorization" in request.lower() for request in server.requests)
