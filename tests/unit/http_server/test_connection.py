"""Malformed HTTP gets a 400, slow heads get a 408, and connections over the limit are closed."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.api.route import Route
from penstock.gateway import Gateway
from penstock.http_server.connection import CallerConnection
from penstock.http_server.response_cycle import ResponseCycle
from penstock.schema import Call, Response
from tests.api.accounts import opened
from tests.api.raw_http import RawConnection, Server, request, serving, until
from tests.loop_time import pass_time

POST = b"POST /echo HTTP/1.1\r\nhost: test\r\n"
JSON = b"content-type: application/json\r\n"
GOOD = POST + JSON + b'content-length: 7\r\n\r\n{"a":1}'


async def echo(gateway: Gateway, call: Call) -> Response:
    return Response(json={"received": call.json, "path": dict(call.path)})


class Gate:
    """An endpoint that waits until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, gateway: Gateway, call: Call) -> Response:
        self.reached.set()
        await self.open.wait()
        return Response(json={"waited": True})


@asynccontextmanager
async def server(folder: Path, *more: Route, **how: Any) -> AsyncIterator[Server]:
    routes = (
        Route("POST", "/echo", echo, "Echo", access="open", takes="json"),
        Route("GET", "/echo", echo, "Echo", access="open"),
        *more,
    )
    async with opened(folder) as gateway, serving(AsgiApp(gateway, routes), gateway.settings, **how) as served:
        yield served


def chunked(body: bytes, *, head: bytes = POST + JSON) -> bytes:
    return head + b"transfer-encoding: chunked\r\n\r\n" + body


MALFORMED = {
    "length and coding": POST + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": POST + b"transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n",
    "two equal lengths": POST + b"content-length: 4\r\ncontent-length: 4\r\n\r\nabcd",
    "two different lengths": POST + b"content-length: 4\r\ncontent-length: 5\r\n\r\nabcd",
    "listed lengths": POST + b"content-length: 4, 4\r\n\r\nabcd",
    "length with plus": POST + b"content-length: +4\r\n\r\nabcd",
    "negative length": POST + b"content-length: -1\r\n\r\nabcd",
    "hexadecimal length": POST + b"content-length: 0x4\r\n\r\nabcd",
    "empty length": POST + b"content-length:\r\n\r\nabcd",
    "huge length": POST + b"content-length: 99999999999999999999999\r\n\r\n",
    "unknown coding": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked first": POST + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "compressed transfer": POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": b"POST /echo HTTP/1.0\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk without end": chunked(b"4\r\nabcdXX\r\n0\r\n\r\n"),
    "chunk size with prefix": chunked(b"0x4\r\nabcd\r\n0\r\n\r\n"),
    "chunk size too large": chunked(b"FFFFFFFFFFFFFFFFFF\r\nabcd\r\n0\r\n\r\n"),
    "chunk size with space": chunked(b"4 \r\nabcd\r\n0\r\n\r\n"),
    "chunks with bare line feeds": chunked(b"4\nabcd\n0\n\n"),
    "line feed in chunk extension": chunked(b"4;a\nb\r\nabcd\r\n0\r\n\r\n"),
    "length in trailer": chunked(b"4\r\nabcd\r\n0\r\ncontent-length: 5\r\n\r\n"),
    "space before colon": b"POST /echo HTTP/1.1\r\nhost : test\r\n\r\n",
    "space before colon of length": POST + b"content-length : 4\r\n\r\nabcd",
    "folded header": POST + b"x-a: b\r\n c\r\n\r\n",
    "folded header with tab": POST + b"x-a: b\r\n\tc\r\n\r\n",
    "folded first header": b"POST /echo HTTP/1.1\r\n host: test\r\n\r\n",
    "bare line feeds": b"POST /echo HTTP/1.1\nhost: test\n\n",
    "one bare line feed": b"POST /echo HTTP/1.1\r\nhost: test\nx: y\r\n\r\n",
    "bare carriage return": b"POST /echo HTTP/1.1\r\nhost: test\rx: y\r\n\r\n",
    "no host": b"POST /echo HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
    "two hosts": POST + b"host: other\r\n\r\n",
    "NUL in value": POST + b"x: a\x00b\r\n\r\n",
    "NUL in name": POST + b"x\x00: ab\r\n\r\n",
    "NUL in target": b"GET /echo\x00 HTTP/1.1\r\nhost: test\r\n\r\n",
    "control character": POST + b"x: a\x01\r\n\r\n",
    "no name": POST + b": b\r\n\r\n",
    "no colon": POST + b"nonsense\r\n\r\n",
    "HTTP/2 in words": b"GET /echo HTTP/2.0\r\nhost: test\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /echo\r\n\r\n",
    "unknown version": b"GET /echo HTTP/1.2\r\nhost: test\r\n\r\n",
    "unknown method": b"STEAL /echo HTTP/1.1\r\nhost: test\r\n\r\n",
    "lower-case method": b"post /echo HTTP/1.1\r\nhost: test\r\n\r\n",
    "tunnel": b"CONNECT test:443 HTTP/1.1\r\nhost: test\r\n\r\n",
    "fragment": b"GET /echo#x HTTP/1.1\r\nhost: test\r\n\r\n",
    "bytes beyond ASCII in target": b"GET /\xff HTTP/1.1\r\nhost: test\r\n\r\n",
    "absolute target without a path": b"GET http://test HTTP/1.1\r\nhost: test\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


async def test_malformed_http_gets_one_400_and_the_connection_is_closed(tmp_path: Path) -> None:
    async with server(tmp_path) as served:
        for name, sent in MALFORMED.items():
            for parts in ([sent + GOOD], [sent[at : at + 1] for at in range(len(sent))]):
                async with await served.connect() as connection, asyncio.timeout(60):
                    await connection.send(*parts)
                    response = await connection.read_response()
                    assert (response.status, response.code) == (400, "INVALID_REQUEST"), (name, response)
                    assert response.headers["connection"] == "close"
                    assert response.headers["cache-control"] == "no-store"
                    assert await connection.is_closed(), f"{name}: a pipelined request got a response"


async def test_a_client_that_goes_on_sending_after_a_refusal_is_disconnected(tmp_path: Path) -> None:
    async with server(tmp_path) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(MALFORMED["two hosts"])
        assert (await connection.read_response()).status == 400
        while served.state.connections:
            await connection.send(b"more and more")
            await asyncio.sleep(0.05)


async def test_well_formed_http_is_served_in_one_piece_and_byte_by_byte(tmp_path: Path) -> None:
    clean = {
        "with a length": GOOD,
        "in chunks": chunked(b'3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n'),
        "in chunks with an extension and a trailer": chunked(b'7;x=y\r\n{"a":1}\r\n0\r\nx-sum: 1\r\n\r\n'),
        "after empty lines": b"\r\n\r\n" + GOOD,
        "with an absolute target": GOOD.replace(b"/echo", b"http://elsewhere.example/echo"),
        "with upper-case names": GOOD.replace(b"host", b"HOST").replace(b"content-length", b"CONTENT-LENGTH"),
    }
    async with server(tmp_path) as served:
        for name, sent in clean.items():
            async with await served.connect() as connection, asyncio.timeout(60):
                await connection.send(sent)
                assert (await connection.read_response()).json["received"] == {"a": 1}, name
                for at in range(len(sent)):  # the connection was kept
                    await connection.send(sent[at : at + 1])
                assert (await connection.read_response()).json["received"] == {"a": 1}, name


async def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    async with server(tmp_path) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(*(GOOD.replace(b'"a":1', b'"a":%d' % number) for number in range(5)))
        assert [(await connection.read_response()).json["received"]["a"] for _ in range(5)] == [0, 1, 2, 3, 4]


async def test_requests_wait_unparsed_until_the_one_before_them_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing thirty requests of each of two thousand clients at once held up the event loop for a second and more."""
    parsed: list[CallerConnection] = []
    begin = CallerConnection.begin_request

    def note(connection: CallerConnection, scope: dict[str, Any], **how: Any) -> None:
        parsed.append(connection)
        begin(connection, scope, **how)

    monkeypatch.setattr(CallerConnection, "begin_request", note)
    gate = Gate()
    async with (
        server(tmp_path, Route("GET", "/gate", gate, "Gate", access="open")) as served,
        await served.connect() as connection,
        asyncio.timeout(60),
    ):
        following = b"GET /nowhere HTTP/1.1\r\nhost: test\r\n\r\n" * 29 + GOOD
        await connection.send(request("GET", "/gate") + following)
        await gate.reached.wait()
        assert len(parsed) == 1
        gate.open.set()
        statuses = [(await connection.read_response()).status for _ in range(31)]
        assert statuses == [200, *[404] * 29, 200]


async def test_more_than_may_wait_ends_the_connection_after_the_first_response(tmp_path: Path) -> None:
    gate = Gate()
    route = Route("GET", "/gate", gate, "Gate", access="open")
    async with server(tmp_path, route) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(request("GET", "/gate"))
        await gate.reached.wait()
        await connection.send(request("GET", "/gate") * 10_000)
        held: Any = next(iter(served.state.connections))
        await until(lambda: not held.unanswered[-1].keep_alive)
        gate.open.set()
        response = await connection.read_response()
        assert (response.status, response.headers["connection"]) == (200, "close")


async def test_a_running_call_gets_its_response_before_a_malformed_one_after_it(tmp_path: Path) -> None:
    gate = Gate()
    route = Route("GET", "/gate", gate, "Gate", access="open")
    async with server(tmp_path, route) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(request("GET", "/gate"), MALFORMED["two hosts"])
        await gate.reached.wait()
        gate.open.set()
        response = await connection.read_response()
        assert (response.status, response.json) == (200, {"waited": True})
        assert (await connection.read_response()).code == "INVALID_REQUEST"
        assert await connection.is_closed()


async def test_no_more_of_a_body_is_read_than_its_call_takes(tmp_path: Path) -> None:
    gate = Gate()
    route = Route("POST", "/gate", gate, "Gate", access="open", takes="unread")
    async with server(tmp_path, route) as served, await served.connect() as connection, asyncio.timeout(60):
        connection.writer.write(request("POST", "/gate", body=b"x" * 8 * 1024**2))
        await gate.reached.wait()
        held: Any = next(iter(served.state.connections))
        await until(lambda: held.flow.read_paused, 10)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(held.unanswered[-1].body) < 1024**2
        gate.open.set()
        assert (await connection.read_response()).json == {"waited": True}


async def test_a_malformed_chunk_ends_the_call_that_waits_for_it(tmp_path: Path) -> None:
    async with server(tmp_path) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(chunked(b'3\r\n{"a\r\n'))
        await until(lambda: served.state.tasks)
        await connection.send(b"nonsense\r\n")
        assert (await connection.read_response()).code == "INVALID_REQUEST"
        assert await connection.is_closed()
        await until(lambda: not served.state.tasks)


# ----------------------------------------------------------------------------------------------------------- pipelining


GATE = request("POST", "/gate", body={})  # it has a body, so what follows in the same piece is parsed at once


def gate_route(gate: Gate) -> Route:
    return Route("POST", "/gate", gate, "Gate", access="open", takes="json")


@pytest.mark.parametrize("between", [b"", GOOD], ids=["next", "after another"])
async def test_a_running_call_gets_its_response_before_a_malformed_body_after_it(
    tmp_path: Path, between: bytes
) -> None:
    gate = Gate()
    async with (
        server(tmp_path, gate_route(gate)) as served,
        await served.connect() as connection,
        asyncio.timeout(60),
    ):
        await connection.send(GATE + between + chunked(b"nonsense\r\n"))
        await gate.reached.wait()
        gate.open.set()
        assert (await connection.read_response()).json == {"waited": True}
        if between:
            assert (await connection.read_response()).json["received"] == {"a": 1}
        assert (await connection.read_response()).code == "INVALID_REQUEST"
        assert await connection.is_closed()
        await until(lambda: not served.state.tasks)


async def test_a_malformed_body_does_not_get_into_the_stream_before_it(tmp_path: Path) -> None:
    gate = Gate()

    async def stream(gateway: Gateway, call: Call) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"one "
            await gate(gateway, call)
            yield b"two"

        return Response(chunks=chunks(), media_type="text/plain")

    async with (
        server(tmp_path, Route("POST", "/stream", stream, "Stream", access="open", takes="json")) as served,
        await served.connect() as connection,
        asyncio.timeout(60),
    ):
        await connection.send(request("POST", "/stream", body={}) + chunked(b"7\r\n"))
        await gate.reached.wait()
        await connection.send(b"{nonsense")
        held: Any = next(iter(served.state.connections))
        await until(lambda: held._ignores_input)
        gate.open.set()
        assert (await connection.read_response()).body == b"one two"
        assert (await connection.read_response()).code == "INVALID_REQUEST"
        assert await connection.is_closed()


# ------------------------------------------------------------------------------------------------------------- upgrades


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
async def test_an_offer_to_upgrade_is_declined_and_the_call_served(tmp_path: Path, protocol: bytes) -> None:
    """Java's HTTP client offers HTTP/2 with every request, and sends the body along."""
    offer = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: " + protocol + b"\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n"
    for sent in (
        POST + JSON + offer + b'content-length: 7\r\n\r\n{"a":1}',
        chunked(b'3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n', head=POST + JSON + offer),
    ):
        async with server(tmp_path) as served:
            for parts in ([sent], [sent[at : at + 1] for at in range(len(sent))]):
                async with await served.connect() as connection, asyncio.timeout(60):
                    await connection.send(*parts)
                    response = await connection.read_response()
                    assert response.json["received"] == {"a": 1}
                    assert response.headers["connection"] == "close"
            async with await served.connect() as connection, asyncio.timeout(60):
                await connection.send(b"GET /echo HTTP/1.1\r\nhost: test\r\n" + offer + b"\r\n")
                assert (await connection.read_response()).status == 200


@pytest.mark.parametrize("follows", [GOOD, b'{"b":2}', b"\r\n"], ids=["a request", "more of the body", "an empty line"])
async def test_what_follows_a_request_with_an_offer_to_upgrade_is_not_a_part_of_its_body(
    tmp_path: Path, follows: bytes
) -> None:
    offer = b"connection: Upgrade\r\nupgrade: h2c\r\n"
    async with server(tmp_path) as served:
        for sent in (
            POST + JSON + offer + b'content-length: 7\r\n\r\n{"a":1}',
            chunked(b'7\r\n{"a":1}\r\n0\r\n\r\n', head=POST + JSON + offer),
        ):
            async with await served.connect() as connection, asyncio.timeout(60):
                await connection.send(sent + follows)
                response = await connection.read_response()
                assert (response.status, response.json.get("received")) == (200, {"a": 1})
                assert await connection.is_closed()


# ---------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nhost: test\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: test\r\nx: " + b"a" * 33_000 + b"\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: test\r\n" + b"".join(b"x-%d: y\r\n" % n for n in range(120)) + b"\r\n",
        b"GET /echo HTTP/1.1\r\nhost: test\r\nx: " + b"a" * 2_000_000,
    ],
    ids=["target", "header", "lines", "endless"],
)
async def test_a_head_that_is_too_large_is_a_431(tmp_path: Path, head: bytes) -> None:
    async with server(tmp_path) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(head)
        response = await connection.read_response()
        assert (response.status, response.code) == (431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize("trailer", [b"x: " + b"a" * 2_000_000, b"x: y\r\n" * 300_000], ids=["value", "lines"])
async def test_a_trailer_that_is_too_large_is_a_431(tmp_path: Path, trailer: bytes) -> None:
    """The parser keeps a value until its end, and copies it for each piece that arrives."""
    async with server(tmp_path) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(chunked(b'7\r\n{"a":1}\r\n0\r\n'), trailer + b"\r\n\r\n")
        response = await connection.read_response()
        assert (response.status, response.code) == (431, "HEADERS_TOO_LARGE")


async def test_trailers_are_not_headers(tmp_path: Path) -> None:
    """A proxy that sets or removes headers may let trailers pass."""
    seen: list[Call] = []

    async def note(gateway: Gateway, call: Call) -> Response:
        seen.append(call)
        return Response(json={})

    route = Route("POST", "/note", note, "Note", access="open", takes="json")
    head = POST.replace(b"/echo", b"/note") + JSON
    sent = chunked(b'7\r\n{"a":1}\r\n0\r\nx-forwarded-for: 192.0.2.1\r\nhost: other\r\n\r\n', head=head)
    async with server(tmp_path, route) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(sent)
        assert (await connection.read_response()).status == 200
    assert (seen[0].headers["host"], "x-forwarded-for" in seen[0].headers) == ("test", False)


# ----------------------------------------------------------------------------------------------------------------- time


async def test_a_slow_head_times_out(tmp_path: Path) -> None:
    async with server(tmp_path, head_seconds=0.3) as served, await served.connect() as connection, asyncio.timeout(60):
        trickle = asyncio.create_task(_trickle(connection, GOOD))
        response = await connection.read_response()
        trickle.cancel()
        assert (response.status, response.code) == (408, "REQUEST_TIMEOUT")
        assert await connection.is_closed()
        await asyncio.gather(trickle, return_exceptions=True)


async def test_a_slow_second_head_times_out_too(tmp_path: Path) -> None:
    async with server(tmp_path, head_seconds=0.3) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(GOOD)
        assert (await connection.read_response()).status == 200
        trickle = asyncio.create_task(_trickle(connection, GOOD))
        assert (await connection.read_response()).status == 408
        trickle.cancel()
        await asyncio.gather(trickle, return_exceptions=True)


@pytest.mark.parametrize("first", [request("GET", "/echo"), GOOD], ids=["without a body", "with a body"])
async def test_a_slow_second_head_times_out_also_if_it_begins_together_with_the_request_before_it(
    tmp_path: Path, first: bytes
) -> None:
    async with server(tmp_path, head_seconds=0.3) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(first + GOOD[:9])
        await connection.read_response()
        await let_timers_run(1)
        assert (await connection.read_response()).status == 408


async def test_a_silent_connection_is_closed_without_a_response(tmp_path: Path) -> None:
    async with server(tmp_path, head_seconds=0.1) as served, await served.connect() as connection:
        assert await connection.is_closed()


async def let_timers_run(seconds: float) -> None:
    """Let so much time pass, and the server do what it does then."""
    pass_time(seconds)
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_idle_connection_outlives_the_timeout_of_heads(tmp_path: Path) -> None:
    async with server(tmp_path, head_seconds=0.1) as served, await served.connect() as connection, asyncio.timeout(60):
        await connection.send(GOOD)
        assert (await connection.read_response()).status == 200
        await let_timers_run(1)
        await connection.send(GOOD)
        assert (await connection.read_response()).status == 200


async def test_a_slow_call_keeps_its_connection_although_an_empty_line_follows_it(tmp_path: Path) -> None:
    """Some clients send an empty line after a body; it is not the start of a head and must not end the call."""
    gate = Gate()
    route = Route("GET", "/gate", gate, "Gate", access="open")
    async with (
        server(tmp_path, route, head_seconds=0.1) as served,
        await served.connect() as connection,
        asyncio.timeout(60),
    ):
        await connection.send(request("GET", "/gate"), b"\r\n")
        await gate.reached.wait()
        await let_timers_run(1)
        gate.open.set()
        response = await connection.read_response()
        assert (response.json, response.headers.get("connection")) == ({"waited": True}, None)


async def _trickle(connection: RawConnection, sent: bytes) -> None:
    for at in range(len(sent)):
        await connection.send(sent[at : at + 1])
        await asyncio.sleep(0.05)


# --------------------------------------------------------------------------------------------------- connection limits


async def test_over_the_limit_the_connection_that_waited_longest_is_closed(tmp_path: Path) -> None:
    async with server(tmp_path, most=3) as served, asyncio.timeout(60):
        lines = [await served.connect() for _ in range(3)]
        await lines[0].send(b"POST /echo HTTP/1.1\r\n")
        response = await served.call("GET", "/echo")
        assert response.status == 200
        assert (await lines[0].read_response()).status == 408
        assert not await lines[1].is_closed(0.05)
        for connection in lines:
            connection.writer.close()


async def test_over_the_limit_an_idle_connection_is_closed_before_a_sending_one(tmp_path: Path) -> None:
    async with server(tmp_path, most=2) as served, asyncio.timeout(60):
        speaking, idle = await served.connect(), await served.connect()
        await speaking.send(GOOD[:10])
        await idle.send(GOOD)
        assert (await idle.read_response()).status == 200
        assert (await served.call("GET", "/echo")).status == 200
        assert await idle.is_closed()
        await speaking.send(GOOD[10:])
        assert (await speaking.read_response()).status == 200
        for connection in (speaking, idle):
            connection.writer.close()


async def test_over_the_limit_of_running_calls_a_new_connection_gets_a_503(tmp_path: Path) -> None:
    gate = Gate()
    route = Route("GET", "/gate", gate, "Gate", access="open")
    async with server(tmp_path, route, most=2) as served, asyncio.timeout(60):
        busy = [await served.connect() for _ in range(2)]
        for connection in busy:
            await connection.send(request("GET", "/gate"))
        await until(lambda: len(served.state.tasks) == 2)
        async with await served.connect() as extra:
            await extra.send(GOOD)
            response = await extra.read_response()
            assert (response.status, response.code, response.headers["retry-after"]) == (503, "UNAVAILABLE", "1")
        gate.open.set()
        for connection in busy:
            assert (await connection.read_response()).status == 200
            connection.writer.close()


async def test_responses_have_no_server_header(tmp_path: Path) -> None:
    async with server(tmp_path) as served:
        for sent in (GOOD, MALFORMED["two hosts"]):
            async with await served.connect() as connection:
                await connection.send(sent)
                assert "server" not in (await connection.read_response()).headers


# ------------------------------------------------------------------------------------------------------------ versions


async def test_a_call_in_http_1_0_needs_no_host(tmp_path: Path) -> None:
    """As load balancers may check whether a server is alive."""
    async with server(tmp_path) as served, await served.connect() as line:
        await line.send(b"GET /echo HTTP/1.0\r\n\r\n")
        assert (await line.read_response()).status == 200
        assert await line.is_closed()


async def test_a_stream_to_http_1_0_ends_with_the_connection(tmp_path: Path) -> None:
    """HTTP/1.0 has no chunks: its clients would take their sizes for a part of the body."""

    async def count(gateway: Gateway, call: Call) -> Response:
        return Response(chunks=numbers(), media_type="text/plain")

    async def numbers() -> AsyncIterator[bytes]:
        for number in (b"one ", b"two ", b"three"):
            yield number

    head = b"\r\nhost: test\r\nconnection: close\r\n\r\n"
    async with server(tmp_path, Route("GET", "/count", count, "Count", access="open")) as served:
        async with await served.connect() as line:
            await line.send(b"GET /count HTTP/1.0" + head)
            received_head, _, body = (await line.reader.read()).partition(b"\r\n\r\n")
        assert body == b"one two three"
        assert b"transfer-encoding" not in received_head
        assert b"connection: close" in received_head
        async with await served.connect() as line:
            await line.send(b"GET /echo HTTP/1.0" + head)
            response = await line.read_response()
        assert (response.status, "content-length" in response.headers) == (200, True)
        assert response.json["received"] is None
        async with await served.connect() as line:
            await line.send(b"GET /count HTTP/1.1" + head)
            assert (await line.read_response()).body == b"one two three"


async def test_a_head_request_gets_the_head_only(tmp_path: Path) -> None:
    async with server(tmp_path) as served, await served.connect() as connection:
        await connection.send(b"HEAD /echo HTTP/1.1\r\nhost: test\r\n\r\n")
        assert (await connection.read_response(is_head=True)).headers["content-length"] == "27"


async def test_expect_100_continue_is_answered_at_once(tmp_path: Path) -> None:
    async with server(tmp_path) as served, await served.connect() as connection:
        await connection.send(POST + JSON + b"content-length: 7\r\nexpect: 100-continue\r\n\r\n")
        assert await connection.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await connection.send(b'{"a":1}')
        assert (await connection.read_response()).status == 200


async def test_http_1_0_has_no_100_continue(tmp_path: Path) -> None:
    """Its clients would take it for the response."""
    async with server(tmp_path) as served, await served.connect() as connection, asyncio.timeout(60):
        head = POST.replace(b"1.1", b"1.0") + JSON
        await connection.send(head + b"content-length: 7\r\nexpect: 100-continue\r\n\r\n")
        await until(lambda: served.state.tasks)
        await connection.send(b'{"a":1}')
        assert (await connection.read_response()).status == 200


# --------------------------------------------------------------------------------------------------------------- memory


async def test_requests_leave_nothing_for_the_garbage_collector(tmp_path: Path) -> None:
    """Neither those that were answered, nor those whose client left."""
    gate = Gate()
    async with server(tmp_path, Route("GET", "/gate", gate, "Gate", access="open")) as served, asyncio.timeout(60):
        gc.collect()
        gc.disable()
        try:
            async with await served.connect() as connection:
                for _ in range(3):
                    await connection.send(GOOD)
                    assert (await connection.read_response()).status == 200
                await connection.send(request("GET", "/gate"))
                await gate.reached.wait()
            await until(lambda: not served.state.connections)
            gate.open.set()
            await until(lambda: not served.state.tasks)
            left = [thing for thing in gc.get_objects() if isinstance(thing, ResponseCycle)]
        finally:
            gc.enable()
    assert left == []
