"""Attack with many connections."""

import asyncio
import resource
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.attacks.target import IMAGES, JSON_BYTES, MIB, VALID, Begin, Target, attack, json_body
from bench.raw_client import head


async def _hold_connections(
    target: Target,
    begin: Begin,
    count: int,
    use: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]],
) -> None:
    """Open connections from ten addresses, do something with each, and open it again when the gateway closes it."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    await begin()
    until = time.monotonic() + 3 * target.seconds

    async def hold(number: int) -> None:
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    connection = socket.socket()
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    connection.setblocking(False)
                    connection.bind((f"127.0.1.{number % 10 + 1}", 0))
                    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", target.port))
                    reader, writer = await asyncio.open_connection(sock=connection, limit=1024)
                    target.answers["opened"] += 1
                    try:
                        await use(reader, writer)
                    finally:
                        writer.transport.abort()
            except (TimeoutError, OSError, EOFError):
                await asyncio.sleep(0.2)

    await asyncio.gather(*(hold(number) for number in range(count)))


@attack("connections: idle")
async def _stay_idle(target: Target, begin: Begin) -> None:
    await _hold_connections(target, begin, 2500, lambda reader, _: reader.read())


@attack("connections: heads without an end")
async def _send_heads(target: Target, begin: Begin) -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /healthz HTTP/1.1\r\nx: ")
        await _trickle(writer)

    await _hold_connections(target, begin, 2500, use)


@attack("connections: slow bodies")
async def _send_slowly(target: Target, begin: Begin) -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head("POST", "/callbacks/lab/x", "", 100_000))
        await _trickle(writer)

    await _hold_connections(target, begin, 2500, use)


async def _trickle(writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"a" * 600)
        await writer.drain()
        await asyncio.sleep(0.5)


@attack("connections: responses that nobody reads")
async def _read_nothing(target: Target, begin: Begin) -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 30)
        await asyncio.sleep(3600)

    await _hold_connections(target, begin, 2500, use)


@attack("connections: large bodies at once")
async def _send_many_bodies(target: Target, begin: Begin) -> None:
    body = json_body(**{**VALID[IMAGES], "prompt": "a" * (JSON_BYTES - MIB)})
    await begin()
    await target.repeat(lambda: target.call("POST", IMAGES, body), at_once=30)


def _crumbs(path: str, key: str = "") -> bytes:
    """A body in chunks of one byte: six bytes on the wire, and a callback of the parser, for each."""
    return head("POST", path, key, None, {"transfer-encoding": "chunked"}) + b"1\r\nx\r\n" * 200_000


async def _send_crumbs(target: Target, begin: Begin, data: bytes) -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await reader.read()

    await _hold_connections(target, begin, 100, use)


@attack("connections: chunks of one byte without a key")
async def _send_crumbs_without_key(target: Target, begin: Begin) -> None:
    await _send_crumbs(target, begin, _crumbs("/callbacks/lab/x"))


@attack("connections: chunks of one byte that are dropped")
async def _send_crumbs_to_be_dropped(target: Target, begin: Begin) -> None:
    await _send_crumbs(target, begin, _crumbs(IMAGES))


@attack("connections: delayed mocks")
async def _wait_for_mocks(target: Target, begin: Begin) -> None:
    body = json_body(**VALID[IMAGES])
    headers = {"x-service-replay": "mock", "x-service-replay-latency": "60000,60000"}
    data = head("POST", IMAGES, target.key, len(body), headers) + body

    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        status = (await reader.readuntil(b"\r\n"))[9:12].decode()
        target.answers[status] += 1
        await asyncio.sleep(1)

    await _hold_connections(target, begin, 2500, use)
