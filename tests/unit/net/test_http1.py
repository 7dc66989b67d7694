"""Requests that the event loop sends itself: when their connections are opened, kept and closed."""

import asyncio
import errno
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
import trustme
import uvloop

from penstock.net.checked_urls import EgressRules
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.http1 import Http1Client, TimeLimits, _reason
from penstock.providers.spec import HttpRequest
from tests.http_client import (
    FakeResolver,
    client_and_server,
    fetch,
    never_respond,
    open_client,
    post_guarded,
    post_request,
    responding,
    server_tls,
    wait_until,
)
from tests.loop_time import pass_time
from tests.ports import unused_port
from tests.tcp_server import Connection, TcpServer, response_head, serve


async def send(client: HttpClient, server: TcpServer, body: bytes = b"{}") -> None:
    await client.send(post_request(server, body), timeout_seconds=60)


async def begin_stream(client: HttpClient, server: TcpServer, body: bytes = b"{}") -> None:
    request = post_request(server, body)
    async with client.stream(request, read_timeout_seconds=60, timeout_seconds=60):
        raise AssertionError


Call = Callable[[HttpClient, TcpServer, bytes], Coroutine[None, None, None]]


@pytest.mark.parametrize("call", [send, begin_stream])
@pytest.mark.parametrize("is_tls", [False, True])
async def test_a_cancelled_request_closes_its_connection_before_any_response(
    call: Call, is_tls: bool, tmp_path: Path
) -> None:
    authority = trustme.CA()
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    tls = server_tls(authority, "127.0.0.1") if is_tls else None
    async with serve(never_respond, tls=tls) as server, open_client(ca_file=ca_file) as client:
        calling = asyncio.create_task(call(client, server, b"{}"))
        await wait_until(lambda: len(server.requests) == 1)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await server.wait_closed_by_client()


async def test_a_cancelled_upload_closes_its_connection() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_head()
        reached.set()
        await released.wait()
        await connection.wait_closed()

    reached = asyncio.Event()
    released = asyncio.Event()
    async with client_and_server(script) as (client, server):
        sending = asyncio.create_task(send(client, server, b"x" * 20_000_000))
        await reached.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        released.set()
        await server.wait_closed_by_client()


async def test_a_long_body_arrives_complete_and_its_connection_is_used_again() -> None:
    body = bytes(range(256)) * 8000
    async with client_and_server(responding(body)) as (client, server):
        for _ in range(2):
            reply = await client.send(post_request(server, body), timeout_seconds=60)
            assert reply.body == body
            assert server.requests[-1].endswith(b"\r\n\r\n" + body)
    assert server.connections == 1


async def test_an_idle_connection_is_closed_after_a_while() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond()
        await connection.wait_closed()

    async with client_and_server(script) as (client, server):
        await send(client, server)
        pass_time(19)
        await asyncio.sleep(0)
        assert server.closed_by_client.locked()
        pass_time(2)
        await server.wait_closed_by_client()


async def test_a_closed_client_closes_connections_that_wait_and_idle_ones() -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        if len(server.requests) == 1:
            await connection.respond()
        await connection.wait_closed()

    async with client_and_server(script) as (client, server):
        await send(client, server)
        waiting = [asyncio.create_task(send(client, server)) for _ in range(2)]
        await wait_until(lambda: len(server.requests) == 2)
        await client.close()
        for task in waiting:
            with pytest.raises(MaybeSent):
                await task
        await server.wait_closed_by_client()
        await server.wait_closed_by_client()


async def test_the_name_is_looked_up_for_each_connection_and_its_addresses_are_tried_in_turn() -> None:
    resolver = FakeResolver(["127.255.255.254", "127.0.0.1"])
    async with serve(responding(b"ok")) as server, open_client(resolver=resolver) as client:
        request = HttpRequest("POST", f"http://provider.test:{server.port}/")
        for _ in range(2):
            reply = await client.send(request, timeout_seconds=60)
            assert reply.body == b"ok"
    assert resolver.hosts == ["provider.test"]
    assert f"host: provider.test:{server.port}\r\n".encode() in server.requests[0]


async def test_addresses_of_both_families_are_tried() -> None:
    """The first ones of a list may all be of a family that this network does not have."""
    resolver = FakeResolver(["::1", "::1", "::1", "127.0.0.1"])
    async with serve(responding(b"ok")) as server, open_client(resolver=resolver) as client:
        request = HttpRequest("POST", f"http://provider.test:{server.port}/")
        assert (await client.send(request, timeout_seconds=60)).body == b"ok"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_only_a_request_that_may_have_a_body_states_its_length(method: str) -> None:
    async with client_and_server(responding(b"ok")) as (client, server):
        request = HttpRequest(method, f"{server.url}/job?id=1", {"x-key": "k"})
        for _ in range(2):
            assert (await client.send(request, timeout_seconds=60)).body == b"ok"
        heads = [sent.decode() for sent in server.requests]
    assert server.connections == 1
    assert [head.partition("\r\n")[0] for head in heads] == [f"{method} /job?id=1 HTTP/1.1"] * 2
    assert {("content-length: 0" in head, "x-key: k" in head) for head in heads} == {(method == "POST", True)}


async def look_up(host: str, port: int, seconds: float) -> list[str]:
    raise AssertionError


# ------------------------------------------------------------------------------------- many requests to one IP address


def wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests wait for a connection for as long as the test lasts, however busy the machine is."""
    monkeypatch.setattr("penstock.net.connection_queue._LOOK_SECONDS", 3600)


async def test_many_requests_to_one_address_share_a_few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_long(monkeypatch)
    async with client_and_server(responding()) as (client, server):
        calls = [asyncio.create_task(post_guarded(client, server.url)) for _ in range(40)]
        for call in calls[1::2]:  # whether they wait, send, or have just been given a connection
            await asyncio.sleep(0)
            call.cancel()
        statuses = await asyncio.gather(*calls, return_exceptions=True)
        assert statuses[::2] == [200] * 20
        assert await asyncio.gather(*(post_guarded(client, server.url) for _ in range(40))) == [200] * 40
    assert server.connections <= 2 * 8, "those of cancelled requests are closed, and replaced"


async def test_a_server_that_closes_its_connections_gets_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_long(monkeypatch)
    async with client_and_server(responding(b"", "connection: close")) as (client, server):
        assert await asyncio.gather(*(post_guarded(client, server.url) for _ in range(40))) == [200] * 40
    assert server.connections == 40


async def test_requests_do_not_wait_long_for_a_slow_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.net.connection_queue._LOOK_SECONDS", 0.01)
    async with client_and_server(never_respond) as (client, server):
        calls = [asyncio.create_task(post_guarded(client, server.url, timeout_seconds=600)) for _ in range(20)]
        await wait_until(lambda: len(server.requests) == 20)
        await client.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {MaybeSent}


async def test_a_closed_client_lets_nothing_wait_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_long(monkeypatch)
    async with client_and_server(never_respond) as (client, server):
        calls = [asyncio.create_task(post_guarded(client, server.url, timeout_seconds=600)) for _ in range(20)]
        await wait_until(lambda: len(server.requests) == 8)
        await client.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        kinds = [type(outcome) for outcome in outcomes]
        assert (kinds.count(MaybeSent), kinds.count(NotSent)) == (8, 12)


async def test_a_limited_number_of_connections_is_kept_for_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.net.http1._MAX_IDLE", 2)
    hosts = ("a.example", "b.example", "c.example")
    egress = EgressRules(allow_hosts=hosts)
    async with serve(responding()) as server, open_client(resolver=FakeResolver(["127.0.0.1"])) as client:
        for host in hosts * 2:
            await post_guarded(client, f"http://{host}:{server.port}/", egress=egress)
    assert server.connections == 4, "the third host gets a new one each time"


async def test_connections_to_servers_that_callers_name_leave_room_for_those_to_providers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.net.http1._MAX_IDLE", 2)
    hosts = ("a.example", "b.example")
    async with serve(responding()) as server, open_client(resolver=FakeResolver(["127.0.0.1"])) as client:
        for host in hosts:
            await post_guarded(client, f"http://{host}:{server.port}/", egress=EgressRules(allow_hosts=hosts))
        for _ in range(3):
            await send(client, server)
    assert server.connections == 3, "all calls to the provider share one"


async def take_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_fetches_connect_for_five_seconds_at_most_and_deliveries_for_half_of_their_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hang(*_: object) -> Connection:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(Http1Client, "_connect_to", hang)
    async with open_client() as client:
        for call, seconds in ((fetch, 5), (post_guarded, 30)):
            calling = asyncio.create_task(call(client, "http://127.0.0.1:9/", timeout_seconds=60))
            await take_turns()  # until it waits
            pass_time(seconds - 1)
            await take_turns()
            assert not calling.done(), call
            pass_time(1)
            with pytest.raises(NotSent, match="timed out"):
                await calling


URL = "http://provider.test/v1"


@pytest.mark.parametrize(
    "request_",
    [
        HttpRequest("CONNECT", URL),
        HttpRequest("GET\r\nx: y", URL),
        HttpRequest("POST", "http://provider.test:99999/"),
        HttpRequest("POST", "http://provider.test\\@other.test/"),
        HttpRequest("POST", "ftp://provider.test/"),
        HttpRequest("POST", "http://provider.test/\r\nx-injected: 1"),
        HttpRequest("POST", URL, {"Host": "other.test"}),
        HttpRequest("POST", URL, {"Content-Length": "3"}),
        HttpRequest("POST", URL, {"transfer-encoding": "chunked"}),
        HttpRequest("POST", URL, {"x-name": "a\r\nx-injected: 1"}),
        HttpRequest("POST", URL, {"x-name": "\u00fc"}),
        HttpRequest("POST", URL, {"x name": "a"}),
    ],
)
def test_what_cannot_be_sent_is_refused_without_its_words(request_: HttpRequest) -> None:
    client = Http1Client(look_up, None, idle_seconds=20)
    with pytest.raises(NotSent, match=r"^the request has a URL or a header that cannot be sent$"):
        client.exchange(request_, TimeLimits(1, 1))


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
async def test_every_method_is_sent(method: str) -> None:
    async def script(connection: Connection) -> None:
        while True:
            await connection.read_request()
            await connection.send(response_head("content-length: 2") + (b"" if method == "HEAD" else b"ok"))

    async with client_and_server(script) as (client, server):
        for _ in range(2):
            reply = await client.send(HttpRequest(method, f"{server.url}/a"), timeout_seconds=60)
            assert (reply.status, bytes(reply.body)) == (200, b"" if method == "HEAD" else b"ok")
    assert [request.split(b" ")[0] for request in server.requests] == [method.encode()] * 2
    assert (b"content-length: 0" in server.requests[0]) == (method not in ("GET", "HEAD"))


async def test_an_odd_url_is_sent_in_its_plain_form() -> None:
    async with client_and_server(responding(b"ok")) as (client, server):
        url = f"HTTP://some%20one:pass@127.0.0.1:{server.port}?a=\u00fc b#part"
        assert (await client.send(HttpRequest("GET", url), timeout_seconds=60)).body == b"ok"
    assert server.requests[0].startswith(b"GET /?a=%C3%BC%20b HTTP/1.1\r\n")
    assert b"\r\nauthorization: Basic c29tZSBvbmU6cGFzcw==\r\n" in server.requests[0]


@pytest.mark.parametrize(
    "test",
    [
        test_a_cancelled_upload_closes_its_connection,
        test_a_long_body_arrives_complete_and_its_connection_is_used_again,
        test_a_closed_client_closes_connections_that_wait_and_idle_ones,
        test_the_name_is_looked_up_for_each_connection_and_its_addresses_are_tried_in_turn,
    ],
)
def test_it_works_on_the_event_loop_of_the_gateway(test: Callable[[], Coroutine[None, None, None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())


@pytest.mark.parametrize("is_tls", [False, True])
def test_it_is_cancelled_on_the_event_loop_of_the_gateway(is_tls: bool, tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test_a_cancelled_request_closes_its_connection_before_any_response(send, is_tls, tmp_path))


async def test_a_refused_connection_says_so_in_plain_words() -> None:
    async with open_client() as client:
        request = HttpRequest("GET", f"http://127.0.0.1:{unused_port()}/")
        with pytest.raises(NotSent, match=r"^connecting failed: connection refused$"):
            await client.send(request, timeout_seconds=60)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 80)"), "connection refused"),
        (OSError(errno.EHOSTUNREACH, "x"), "no route to host"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "SSLError"),
        (OSError("without a number"), "OSError"),
    ],
)
def test_reasons_of_failed_connections_name_no_address(error: OSError, words: str) -> None:
    assert _reason(error) == words
