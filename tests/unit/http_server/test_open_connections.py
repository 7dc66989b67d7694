"""Nobody can keep all connections: not with responses that are not read, not with slow bodies, not from one address."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.api.route import Route
from penstock.clock import Clock
from penstock.gateway import Gateway
from penstock.http_server.open_connections import _SLOW_BYTES_PER_SECOND, OpenConnections
from penstock.schema import Call, Response
from tests.api.accounts import opened
from tests.api.raw_http import RawConnection, Server, pass_windows, request, serving, unread, until

PLACES = 6
LARGE = b"x" * 8 * 1024**2  # more than the buffers of both kernels hold
HOST = b"host: test\r\n"


class Calls:
    """Endpoints that count how often they are reached."""

    def __init__(self) -> None:
        self.count = 0
        self.is_held = asyncio.Event()
        self.released = asyncio.Event()

    async def held(self, gateway: Gateway, call: Call) -> Response:
        self.is_held.set()
        await self.released.wait()
        return Response(json={})

    async def large(self, gateway: Gateway, call: Call) -> Response:
        self.count += 1
        return Response(body=LARGE)

    async def stream(self, gateway: Gateway, call: Call) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0)
                yield b"x" * 65536

        return Response(chunks=chunks())

    async def small(self, gateway: Gateway, call: Call) -> Response:
        self.count += 1
        return Response(json={"address": call.headers.get("x-forwarded-for")})


@asynccontextmanager
async def server(folder: Path, calls: Calls, proxies: tuple[str, ...] = (), **how: Any) -> AsyncIterator[Server]:
    routes = (
        Route("GET", "/held", calls.held, "Held", access="open"),
        Route("GET", "/large", calls.large, "Large", access="open"),
        Route("GET", "/stream", calls.stream, "Stream", access="open"),
        Route("GET", "/healthz", calls.small, "Health", access="open"),
        Route("GET", "/small", calls.small, "Small", access="open"),
        Route("POST", "/json", calls.small, "JSON", access="open", takes="json"),
        Route("POST", "/raw", calls.small, "Raw", access="signed", takes="raw"),
    )
    async with (
        opened(folder, trusted_proxies=proxies) as gateway,
        serving(AsgiApp(gateway, routes), gateway.settings, most=PLACES, **how) as served,
    ):
        yield served


UNREAD = {
    "a whole body": request("GET", "/large"),
    "a whole body and the end of the connection": request("GET", "/large", headers={"connection": "close"}),
    "pipelined whole bodies": request("GET", "/large") * 8,
    "a stream": request("GET", "/stream"),
    "errors": request("GET", "/nowhere") * 8,
    "a malformed request after a whole body": request("GET", "/large") + b"NONSENSE\r\n\r\n",
}


@pytest.mark.parametrize("sent", [*UNREAD.values()], ids=[*UNREAD])
async def test_responses_that_nobody_reads_give_their_connections_back(tmp_path: Path, sent: bytes) -> None:
    async with server(tmp_path, Calls()) as served, AsyncExitStack() as stack:
        for _ in range(PLACES):
            stack.enter_context(await served.connect_silently(sent))
        if sent != UNREAD["errors"]:  # the kernel takes these whole, so the connections are idle
            await until(lambda: unread(served) == PLACES)
            assert (await served.call("GET", "/small")).status in (200, 503)  # they may be called slow by now
            await pass_windows(served)
            assert unread(served) == 0, "the connections are kept"
            assert not served.state.tasks, "the calls go on"
        assert (await served.call("GET", "/small")).status == 200


async def test_a_client_that_reads_slowly_but_steadily_gets_everything(tmp_path: Path) -> None:
    calls = Calls()
    async with server(tmp_path, calls, window_seconds=0.05) as served, await served.connect() as connection:
        await connection.send(request("GET", "/large"))
        await asyncio.sleep(0)
        response = await connection.read_response()
        assert (response.status, len(response.body)) == (200, len(LARGE))


async def test_the_next_request_waits_until_the_response_before_it_was_read(tmp_path: Path) -> None:
    calls = Calls()
    async with server(tmp_path, calls) as served, await served.connect() as connection, asyncio.timeout(60):
        connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await connection.send(request("GET", "/large") + request("GET", "/small") * 5)
        await until(lambda: calls.count)
        for _ in range(50):
            await asyncio.sleep(0)
        assert calls.count == 1
        connection.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len((await connection.read_response()).body) == len(LARGE)
        for _ in range(5):
            assert (await connection.read_response()).status == 200
        assert calls.count == 6


async def test_too_many_pipelined_requests_that_are_parsed_together_are_refused(tmp_path: Path) -> None:
    async with server(tmp_path, Calls()) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(request("POST", "/json", body={}) * 500)
        responses = [await connection.read_response()]
        while responses[-1].headers.get("connection") != "close":
            responses.append(await connection.read_response())
        assert {response.status for response in responses} == {200}
        assert len(responses) < 50
        assert await connection.is_closed()


SLOW = {
    "a body without a key": b"POST /raw HTTP/1.1\r\n" + HOST + b"content-length: 100000\r\n\r\nx",
    "a JSON body": b"POST /json HTTP/1.1\r\n" + HOST + b"content-length: 100000\r\n\r\n{",
    "a chunked body": b"POST /json HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    "a body that no call needs": b"GET /small HTTP/1.1\r\n" + HOST + b"content-length: 100000\r\n\r\nx",
    "a body for an unknown path": b"POST /nowhere HTTP/1.1\r\n" + HOST + b"content-length: 100000\r\n\r\nx",
    "a response": request("GET", "/large"),
}


def is_slow(connection: Any) -> bool:
    """Whether the server would end this transfer for its place."""
    speed: float | None = connection.bytes_per_second(asyncio.get_running_loop().time(), 0.0)
    return speed is not None and speed < _SLOW_BYTES_PER_SECOND


@pytest.mark.parametrize("sent", [*SLOW.values()], ids=[*SLOW])
async def test_when_places_are_short_the_slowest_transfer_is_ended(tmp_path: Path, sent: bytes) -> None:
    # A window of ten minutes, because unread responses end with it, and a busy machine may be slow.
    async with server(tmp_path, Calls(), grace_seconds=0.0, window_seconds=600) as served, AsyncExitStack() as stack:
        for _ in range(PLACES):
            stack.enter_context(await served.connect_silently(sent))
        await until(lambda: len(served.state.connections) == PLACES)
        if sent == SLOW["a response"]:  # the kernel takes a part of it at once, and nothing more
            await until(lambda: all(is_slow(connection) for connection in served.state.connections))
        else:
            await until(lambda: served.state.tasks)
        for _ in range(3):
            assert (await served.call("GET", "/small")).status == 200


async def test_a_running_call_is_never_ended_for_its_place(tmp_path: Path) -> None:
    """Only transfers that wait for their client are slow; a call that the gateway works on is not."""
    reached: list[None] = []
    release = asyncio.Event()

    async def work(gateway: Gateway, call: Call) -> Response:
        reached.append(None)
        await release.wait()
        return Response(json={})

    route = Route("POST", "/work", work, "Work", access="open", takes="json")
    async with (
        opened(tmp_path) as gateway,
        serving(AsgiApp(gateway, (route,)), gateway.settings, most=2, grace_seconds=0.0) as served,
        AsyncExitStack() as stack,
    ):
        busy = [await stack.enter_async_context(await served.connect()) for _ in range(2)]
        for connection in busy:
            await connection.send(request("POST", "/work", body={"a": 1}))
        await until(lambda: len(reached) == 2)
        async with await served.connect() as extra:
            await extra.send(request("GET", "/small"))
            assert (await extra.read_response()).status == 503
        release.set()
        for connection in busy:
            assert (await connection.read_response()).status == 200


# ----------------------------------------------------------------------------------------------------------- addresses


async def occupy(served: Server, stack: AsyncExitStack, count: int, headers: dict[str, str]) -> list[RawConnection]:
    """Keep connections busy with responses that are not read."""
    lines = []
    for _ in range(count):
        connection = await stack.enter_async_context(await served.connect())
        connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await connection.send(request("GET", "/stream", headers=headers))
        lines.append(connection)
    await until(lambda: len(served.state.tasks) >= count)
    return lines


async def test_one_address_cannot_have_more_than_its_share(tmp_path: Path) -> None:
    async with server(tmp_path, Calls(), address_limit=2) as served, AsyncExitStack() as stack:
        await occupy(served, stack, 2, {})
        async with await served.connect() as extra:
            await extra.send(request("GET", "/small"))
            response = await extra.read_response()
            assert (response.status, response.code, response.headers["retry-after"]) == (429, "RATE_LIMITED", "1")
        assert len(served.state.tasks) == 2


async def test_an_address_with_few_connections_takes_a_place_from_one_with_many() -> None:
    """Also while no transfer is called slow yet; and nobody is served at the cost of an equal."""
    connections = OpenConnections(6, 10.0, Clock())
    many = [FreshTransfer(f"198.51.100.{number % 2}") for number in range(6)]
    few = [FreshTransfer("198.51.100.9") for _ in range(3)]
    found = [connections.enter_address(connection) and connections.add(connection) for connection in [*many, *few]]
    assert found == [True] * 6 + [True, True, False]
    assert sum(connection.is_ended for connection in many) == 2
    assert not any(connection.is_ended for connection in few)
    connections.close()


async def test_an_address_with_many_connections_ends_no_head_of_another() -> None:
    """A head that has just begun is a call that would fail; those of an address with many connections end first."""
    connections = OpenConnections(6, 10.0, Clock())

    def opens(connection: FreshTransfer, *, sends_head: bool) -> bool:
        is_open = connections.enter_address(connection) and connections.add(connection)
        if is_open and sends_head:
            connections.start_head(connection)
        return is_open

    many = [FreshTransfer("198.51.100.1") for _ in range(6)]
    assert all(opens(connection, sends_head=False) for connection in many)
    few = [FreshTransfer("198.51.100.2") for _ in range(2)]
    assert all(opens(connection, sends_head=True) for connection in few)
    assert sum(connection.is_ended for connection in many) == 2, "they made room"
    for connection in many:
        if connection.is_ended:
            connections.discard(connection)
    again = [FreshTransfer("198.51.100.1") for _ in range(3)]
    assert [opens(connection, sends_head=True) for connection in again] == [False] * 3
    assert not any(connection.is_ended for connection in few)
    for connection in again:
        connections.discard(connection)
    late = FreshTransfer("198.51.100.1")
    connections.discard(few.pop())
    assert opens(late, sends_head=True)
    assert opens(FreshTransfer("198.51.100.3"), sends_head=True)
    assert late.is_ended, "the head of an address with many connections, not the one that takes longest"
    assert not few[0].is_ended
    connections.close()


async def test_where_no_address_has_many_connections_the_head_that_takes_longest_is_ended() -> None:
    connections = OpenConnections(3, 10.0, Clock())
    heads = [FreshTransfer(f"198.51.100.{number}") for number in range(5)]
    for head in heads:
        assert connections.enter_address(head)
        assert connections.add(head)
        connections.start_head(head)
    assert [head.is_ended for head in heads] == [True, True, False, False, False]
    connections.close()


class FreshTransfer:
    """A connection that has just begun to send or to read something."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_ended = False

    def end(self) -> None:
        self.is_ended = True

    def end_window(self) -> None: ...

    def bytes_per_second(self, now: float, grace_seconds: float) -> float | None:
        return None if grace_seconds or self.is_ended else 5.0


class Unstarted(FreshTransfer):
    """A connection whose request has arrived; nothing is sent to it yet."""

    def bytes_per_second(self, now: float, grace_seconds: float) -> float | None:
        return None


async def test_the_calls_of_an_address_with_many_connections_start_a_few_at_a_time() -> None:
    """So that others need not wait until all of them, which may arrive together, have begun."""
    connections = OpenConnections(2000, 10.0, Clock())
    crowd = [FreshTransfer("198.51.100.1") for _ in range(200)]
    for connection in [*crowd, FreshTransfer("198.51.100.2")]:
        assert connections.enter_address(connection)
    assert not connections.is_in_crowd(FreshTransfer("198.51.100.2"))
    started: list[int] = []
    now = 0
    for connection in crowd:
        assert connections.is_in_crowd(connection)
        connections.start_in_turn(connection, lambda: started.append(now))
    for connection in crowd[:150]:
        connections.discard(connection)  # it was closed before its turn
    while len(started) < 50:
        now += 1
        await asyncio.sleep(0)
    for connection in crowd[:2]:  # as many at a time also after there were none
        connections.start_in_turn(connection, lambda: started.append(now))
        connections.discard(connection)
    for connection in crowd[100:]:
        connections.start_in_turn(connection, lambda: started.append(now))
    while len(started) < 150:
        now += 1
        await asyncio.sleep(0)
    assert max(started.count(turn) for turn in set(started)) <= 4
    assert len(started) == 150
    connections.close()


async def test_calls_that_have_not_been_started_make_room_for_other_addresses() -> None:
    connections = OpenConnections(200, 10.0, Clock())
    crowd = [Unstarted("198.51.100.1") for _ in range(200)]
    started: list[Unstarted] = []
    for connection in crowd:
        assert connections.enter_address(connection)
        assert connections.add(connection)
        connections.start_in_turn(connection, partial(started.append, connection))
    other = Unstarted("198.51.100.2")
    assert connections.enter_address(other)
    assert connections.add(other)
    (ended,) = (connection for connection in crowd if connection.is_ended)
    for _ in range(200):
        await asyncio.sleep(0)
    assert {*started, ended} == {*crowd}
    assert ended not in started
    connections.close()


async def test_an_address_over_its_share_loses_its_own_idle_connection(tmp_path: Path) -> None:
    async with server(tmp_path, Calls(), address_limit=2) as served, AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(await served.connect()) for _ in range(2)]
        await until(lambda: len(served.state.connections) == 2)
        assert (await served.call("GET", "/small")).status == 200
        assert await idle[0].is_closed()
        assert not await idle[1].is_closed(0.05)


async def test_connections_of_a_trusted_proxy_count_for_the_address_it_names(tmp_path: Path) -> None:
    def named(address: str) -> dict[str, str]:
        return {"x-forwarded-for": address}

    async with (
        server(tmp_path, Calls(), proxies=("127.0.0.1",), address_limit=2) as served,
        AsyncExitStack() as stack,
    ):
        await occupy(served, stack, 2, named("203.0.113.9"))
        assert (await served.call("GET", "/small", headers=named("203.0.113.9"))).status == 429
        assert (await served.call("GET", "/small", headers=named("203.0.113.8"))).status == 200
        kept = [await stack.enter_async_context(await served.connect()) for _ in range(3)]
        for _ in range(2):  # a place is given back with each response, so none of them is closed for another
            for connection in kept:
                await connection.send(request("GET", "/small", headers=named("203.0.113.8")))
                assert (await connection.read_response()).status == 200


async def test_a_header_from_elsewhere_changes_nothing(tmp_path: Path) -> None:
    async with server(tmp_path, Calls(), address_limit=2) as served, AsyncExitStack() as stack:
        await occupy(served, stack, 2, {"x-forwarded-for": "203.0.113.9"})
        async with await served.connect() as extra:
            await extra.send(request("GET", "/small"))
            assert (await extra.read_response()).status == 429


async def test_the_place_of_a_closed_connection_is_given_back(tmp_path: Path) -> None:
    async with server(tmp_path, Calls(), address_limit=2) as served:
        for _ in range(10):
            assert (await served.call("GET", "/small")).status == 200
            await until(lambda: not served.state.connections)


async def test_a_connection_without_requests_is_closed_after_a_while(tmp_path: Path) -> None:
    """And not while a request waits for its response, however long that takes."""
    calls = Calls()
    async with (
        server(tmp_path, calls, window_seconds=0.02, idle_seconds=0.05) as served,
        await served.connect() as idle,
        await served.connect() as busy,
        asyncio.timeout(60),
    ):
        await busy.send(request("GET", "/held"))
        await calls.is_held.wait()
        await idle.send(request("GET", "/small"))
        assert (await idle.read_response()).status == 200
        assert await idle.reader.read() == b""
        calls.released.set()
        assert (await busy.read_response()).status == 200


# -------------------------------------------------------------------------------------------------------------- health


async def _hold_all(served: Server) -> list[RawConnection]:
    """Connections that cannot be ended, in all places."""
    held = [await served.connect() for _ in range(PLACES)]
    for connection in held:
        await connection.send(request("GET", "/held"))
    await until(lambda: len(served.state.tasks) == PLACES)
    return held


async def test_the_health_always_has_a_place(tmp_path: Path) -> None:
    calls = Calls()
    async with server(tmp_path, calls) as served, asyncio.timeout(60):
        held = await _hold_all(served)
        for _ in range(30):
            async with await served.connect() as connection:
                await connection.send(request("GET", "/healthz") * 2)
                response = await connection.read_response()
                assert (response.status, response.headers["connection"]) == (200, "close")
                assert await connection.is_closed()
        assert (await served.call("GET", "/small")).status == 503
        calls.released.set()
        for connection in held:
            assert (await connection.read_response()).status == 200
            connection.writer.close()


async def test_the_health_has_a_place_also_for_an_address_with_too_many_connections(tmp_path: Path) -> None:
    calls = Calls()
    async with server(tmp_path, calls, address_limit=2) as served, asyncio.timeout(60):
        held = [await served.connect() for _ in range(2)]
        for connection in held:
            await connection.send(request("GET", "/held"))
        await until(lambda: len(served.state.tasks) == 2)
        assert (await served.call("GET", "/healthz")).status == 200
        assert (await served.call("GET", "/small")).status == 429
        calls.released.set()
        for connection in held:
            connection.writer.close()


async def test_silent_connections_do_not_keep_the_places_of_the_health(tmp_path: Path) -> None:
    calls = Calls()
    async with server(tmp_path, calls) as served, asyncio.timeout(60):
        held = await _hold_all(served)
        silent = [await served.connect() for _ in range(40)]
        assert (await silent[0].read_response()).status == 503
        assert (await served.call("GET", "/healthz")).status == 200
        await until(lambda: len(served.state.connections) <= PLACES + 16)
        calls.released.set()
        for connection in (*held, *silent):
            connection.writer.close()


async def test_places_of_the_health_are_not_counted_as_others(tmp_path: Path) -> None:
    calls = Calls()
    async with server(tmp_path, calls) as served, asyncio.timeout(60):
        held = await _hold_all(served)
        silent = [await served.connect() for _ in range(3)]
        await until(lambda: len(served.state.connections) == PLACES + 3)
        held[0].writer.close()
        await until(lambda: len(served.state.connections) == PLACES + 2)
        assert (await served.call("GET", "/small")).status == 200
        calls.released.set()
        for connection in (*held, *silent):
            connection.writer.close()
