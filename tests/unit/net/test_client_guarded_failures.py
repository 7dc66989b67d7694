"""What fetching and delivering tell when the other side, the name service or this machine fails."""

import asyncio
import io
import resource
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from penstock.net.client import NotSent, Refused, TooLarge, Unknown
from penstock.net.guard import Egress
from tests.http_client import (
    MIB,
    SECRET,
    Names,
    answering,
    both_ways,
    certified,
    everything_told,
    fetched,
    own_loopback,
    posted,
    settled,
    wire,
)
from tests.ports import unused_port
from tests.tcp_server import Peer, chunk, head, serve


@both_ways
@pytest.mark.parametrize("answer", [socket.gaierror(-2, "Name or service not known"), []], ids=str)
async def test_a_name_without_an_address_was_not_sent(go: Callable[..., Any], answer: Any) -> None:
    async with wire(resolver=Names(answer)) as sender:
        with pytest.raises(NotSent) as failure:
            await go(sender, "https://x.example/")
    assert not isinstance(failure.value, Refused)


@both_ways
async def test_a_name_service_that_hangs_is_not_waited_for(go: Callable[..., Any]) -> None:
    async def hanging(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with wire(resolver=hanging) as sender, asyncio.timeout(4):
        with pytest.raises(NotSent):
            await go(sender, "https://x.example/", total_seconds=0.1)


async def test_the_next_address_is_tried_while_nothing_was_sent() -> None:
    egress, dead, alive = Egress(allow_hosts=("x.example",)), own_loopback(), own_loopback()
    async with serve(answering(), host=alive) as server, wire(resolver=Names([dead, alive])) as sender:
        assert (await fetched(sender, f"http://x.example:{server.port}/", egress=egress)).body == b"picture"


@both_ways
async def test_the_next_address_is_not_tried_once_something_was_sent(go: Callable[..., Any]) -> None:
    async def closes(peer: Peer) -> None:
        await peer.request()

    egress, first, second = Egress(allow_hosts=("x.example",)), own_loopback(), own_loopback()
    async with (
        serve(closes, host=first) as server,
        serve(answering(), host=second, port=server.port) as spare,
        wire(resolver=Names([first, second])) as sender,
    ):
        with pytest.raises(Unknown):
            await go(sender, f"http://x.example:{server.port}/", egress=egress)
    assert (len(server.requests), spare.connections) == (1, 0)


@both_ways
async def test_a_silent_or_dripping_server_is_left_at_the_deadline(go: Callable[..., Any]) -> None:
    async def hangs(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async def drips_a_head(peer: Peer) -> None:
        await peer.request()
        for byte in b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000:
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.01)

    async def drips_a_body(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-length: 1000"))
        while True:
            await peer.send(b"x")
            await asyncio.sleep(0.01)

    for script in (hangs, drips_a_head, drips_a_body):
        async with serve(script) as server, wire() as sender:
            with pytest.raises(Unknown) as failure:
                await go(sender, server.url, total_seconds=0.3)
            assert failure.value.timeout
            assert await settled(lambda: server.sent_bytes) < 1000


@pytest.mark.parametrize("announced", [True, False])
async def test_what_is_too_large_is_left_at_the_limit(announced: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-length: 10000000000" if announced else "transfer-encoding: chunked"))
        block = b"x" * 65_536
        while True:
            await peer.send(block if announced else chunk(block))

    sink = io.BytesIO()
    async with serve(script) as server, wire() as sender:
        with pytest.raises(TooLarge):
            await fetched(sender, server.url, most_bytes=3 * MIB, sink=sink)
        assert await settled(lambda: server.sent_bytes) < 20 * MIB
    assert len(sink.getvalue()) <= 3 * MIB


async def test_a_receiver_that_talks_without_end_is_answered_by_its_status() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-length: 10000000000") + b"x" * 20_000)
        await peer.gone()

    async with serve(script) as server, wire() as sender:
        assert await posted(sender, server.url) == 200  # without waiting for more than the 16 KiB that it reads
        await server.departed()


@both_ways
async def test_a_server_that_cuts_its_answer_leaves_the_outcome_unknown(go: Callable[..., Any]) -> None:
    async def mid_head(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nconte")

    async def mid_body(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-length: 10") + b"abc")

    for script in (mid_head, mid_body):
        async with serve(script) as server, wire() as sender:
            with pytest.raises(Unknown) as failure:
                await go(sender, server.url)
            assert not failure.value.timeout


@both_ways
async def test_certificates_are_checked(go: Callable[..., Any], tmp_path: Path) -> None:
    ours, stranger = trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(tmp_path / "ca.pem")
    past = datetime(2020, 1, 1, tzinfo=UTC)
    expired = ours.issue_cert("x.example", not_after=past)
    names, egress = Names(["127.0.0.1"]), Egress(allow_hosts=("x.example",))
    async with wire(ca_file=tmp_path / "ca.pem", resolver=names) as sender:
        for tls, accepted in (
            (certified(ours, "x.example"), True),
            (certified(stranger, "x.example"), False),
            (certified(ours, "y.example"), False),
            (certified(ours, "127.0.0.1"), False),
            (holding(expired), False),
        ):
            async with serve(answering(), tls=tls) as server:
                if accepted:
                    await go(sender, f"https://x.example:{server.port}/", egress=egress)
                else:
                    with pytest.raises(NotSent):
                        await go(sender, f"https://x.example:{server.port}/", egress=egress)
            assert len(server.requests) == accepted


def holding(certificate: trustme.LeafCert) -> Any:
    context = certified(trustme.CA(), "x.example")
    certificate.configure_cert(context)
    return context


@both_ways
@pytest.mark.parametrize("known", [True, False])
async def test_running_out_of_files_is_told_apart_from_the_other_sides_faults(
    go: Callable[..., Any], known: bool
) -> None:
    async def once(peer: Peer) -> None:
        await peer.request()
        await peer.reply(b"", "connection: close")

    async with serve(once) as server, wire() as sender:
        await go(sender, f"http://127.0.0.1:{server.port}/")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # new ones only; those that are open stay
            with pytest.raises(NotSent) as failure:
                await go(sender, f"http://{'127.0.0.1' if known else '127.0.0.2'}:{server.port}/")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert failure.value.local


@both_ways
async def test_failures_quote_no_address(go: Callable[..., Any]) -> None:
    async with wire() as sender:
        with pytest.raises(NotSent) as failure:
            await go(sender, f"http://127.0.0.1:{unused_port()}/{SECRET}?key={SECRET}")
    assert SECRET not in everything_told(failure.value)
