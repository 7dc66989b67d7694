"""What is known after each way a request can fail."""

import asyncio

import pytest

from penstock.net.client import HttpClient, NotSent, Unknown
from penstock.providers.spec import Outgoing, Upload
from tests.http_client import (
    SECRET,
    against,
    cuts_a_body_of_known_length,
    cuts_a_chunked_body,
    everything_told,
    post,
    settled,
    stalls,
    until,
    wire,
)
from tests.ports import unused_port
from tests.tcp_server import Peer, Script, head

# ------------------------------------------------------------------------------------------------- nothing was sent


async def test_a_port_nobody_listens_on_proves_that_nothing_was_sent() -> None:
    async with wire() as sender:
        with pytest.raises(NotSent) as failure:
            await sender.send(Outgoing("POST", f"http://127.0.0.1:{unused_port()}/"), total_seconds=5)
    assert not failure.value.local


async def test_a_name_that_does_not_resolve_proves_that_nothing_was_sent() -> None:
    too_long_to_be_looked_up = "a" * 64
    async with wire() as sender:
        with pytest.raises(NotSent):
            await sender.send(Outgoing("POST", f"http://{too_long_to_be_looked_up}.invalid/"), total_seconds=5)


async def test_no_free_connection_proves_that_nothing_was_sent() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await release.wait()
        await peer.reply(b"late")

    release = asyncio.Event()
    async with against(script, connections=1) as (sender, server):
        first = asyncio.create_task(sender.send(post(server), total_seconds=10))
        await until(lambda: len(server.requests) == 1)
        with pytest.raises(NotSent):
            await sender.send(post(server), total_seconds=0.1)
        release.set()
        assert (await first).body == b"late"
    assert server.connections == 1


@pytest.mark.parametrize(
    "request_", [
        Outgoing("POST", "http://127.0.0.1:1/", {"authorization": f"Bearer {SECRET}\n"}),
        Outgoing("POST", "http://127.0.0.1:1/", {"bad name": SECRET}),
        Outgoing("POST", f"http://[::1/{SECRET}"),
        Outgoing("POST", f"ftp://127.0.0.1/{SECRET}"),
        Outgoing("PO ST", f"http://127.0.0.1:1/{SECRET}"),
        Outgoing("POST", "http://127.0.0.1:1/", form=(("file", Upload(b"", SECRET, "x")),)),
    ],
)  # fmt: skip
async def test_what_cannot_be_built_is_not_sent_and_not_quoted(request_: Outgoing) -> None:
    async with wire() as sender:
        with pytest.raises(NotSent) as failure:
            await sender.send(request_, total_seconds=5)
    assert SECRET not in everything_told(failure.value)


async def test_a_closed_sender_sends_nothing() -> None:
    sender = HttpClient()
    await sender.close()
    with pytest.raises(NotSent):
        await sender.send(Outgoing("GET", "http://127.0.0.1:1/"), total_seconds=5)
    with pytest.raises(NotSent):
        sender.stream(Outgoing("GET", "http://127.0.0.1:1/"), idle_seconds=5, total_seconds=5)
    with pytest.raises(NotSent):
        await sender.fetch("https://x.example/", most_bytes=1, total_seconds=5)


# -------------------------------------------------------------------------------------------------- nobody knows


async def closes_without_reading(peer: Peer) -> None:
    pass


async def reads_then_closes(peer: Peer) -> None:
    await peer.request()


async def reads_then_resets(peer: Peer) -> None:
    await peer.request()
    peer.reset()


async def sends_half_a_head(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\ncontent-le")


async def speaks_no_http(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")


async def cuts_a_long_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(head("content-length: 200000") + b"a" * 199_999)


async def announces_two_lengths(peer: Peer) -> None:
    await peer.request()
    await peer.send(head("content-length: 3", "content-length: 4") + b"abc")


@pytest.mark.parametrize(
    "script",
    [
        closes_without_reading,
        reads_then_closes,
        reads_then_resets,
        sends_half_a_head,
        speaks_no_http,
        cuts_a_body_of_known_length,
        cuts_a_chunked_body,
        cuts_a_long_body,
        announces_two_lengths,
    ],
)
async def test_a_connection_that_fails_after_it_came_about_leaves_the_outcome_unknown(script: Script) -> None:
    async with against(script) as (sender, server):
        with pytest.raises(Unknown) as failure:
            await sender.send(post(server), total_seconds=5)
        assert not failure.value.timeout
        # The word "timeout" in an address must not make a timeout of it.
        with pytest.raises(Unknown) as failure:
            await sender.send(
                Outgoing("POST", f"{server.url}/timeout/timed out/client error (Connect)"), total_seconds=5
            )
        assert not failure.value.timeout
    assert server.connections == 2
    assert SECRET not in everything_told(failure.value)


async def test_a_request_lost_on_a_reused_connection_is_not_sent_again() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reply(b"ok")
        await peer.request()

    async with against(script) as (sender, server):
        await sender.send(post(server), total_seconds=5)
        with pytest.raises(Unknown):
            await sender.send(post(server), total_seconds=5)
    assert (server.connections, len(server.requests)) == (1, 2)


async def stalls_in_the_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(head("content-length: 100") + b"abc")
    await peer.gone()


async def never_reads(peer: Peer) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("limits", [{"total_seconds": 0.2}, {"total_seconds": 60, "first_byte_seconds": 0.2}], ids=str)
@pytest.mark.parametrize("script", [stalls, stalls_in_the_body])
async def test_silence_ends_as_an_unknown_outcome_and_frees_the_connection(
    script: Script, limits: dict[str, float]
) -> None:
    async with against(script) as (sender, server):
        with pytest.raises(Unknown) as failure:
            await sender.send(post(server), **limits)  # type: ignore[arg-type]
        assert failure.value.timeout
        await server.departed()
    assert SECRET not in everything_told(failure.value)


async def test_a_server_that_does_not_read_ends_as_an_unknown_outcome() -> None:
    async with against(never_reads) as (sender, server):
        with pytest.raises(Unknown) as failure:
            await sender.send(post(server, b"x" * 20_000_000), total_seconds=0.3)
    assert failure.value.timeout


async def test_an_answer_given_before_the_upload_is_through_is_heard() -> None:
    heard = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.begun()
        await peer.reply(b"too large", "connection: close", status=413)
        await heard.wait()  # whoever closes with bytes unread resets the connection, which may undo the answer

    async with against(script) as (sender, server):
        reply = await sender.send(post(server, b"x" * 20_000_000), total_seconds=30)
        heard.set()
    assert (reply.status, reply.body) == (413, b"too large")


async def test_a_slow_drip_does_not_outlive_the_total_limit() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head("content-length: 1000000"))
        while True:
            await peer.send(b"x")
            await asyncio.sleep(0.01)

    async with against(script) as (sender, server):
        with pytest.raises(Unknown) as failure:
            await sender.send(post(server), total_seconds=0.3, first_byte_seconds=5)
        assert failure.value.timeout
        sent = await settled(lambda: server.sent_bytes)
    assert 1 < sent < 1000


async def test_a_long_wait_for_the_reply_is_no_silence_when_no_limit_is_given() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(0.3)
        await peer.reply(b"slow")

    async with against(script) as (sender, server):
        assert (await sender.send(post(server), total_seconds=5)).body == b"slow"


async def test_a_cancelled_send_lets_go_when_the_reply_comes() -> None:
    """The library cannot abort a request that waits for its reply; this pins how long it holds on."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await release.wait()
        await peer.send(head("content-length: 1000000") + b"x" * 200_000)
        await peer.gone()

    release = asyncio.Event()
    async with against(script) as (sender, server):
        sending = asyncio.create_task(sender.send(post(server), total_seconds=60))
        await until(lambda: len(server.requests) == 1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        release.set()
        await server.departed()
