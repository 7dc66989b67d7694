"""A process under abuse: many slow callers and bodies over the limits, while other calls are served."""

import asyncio
import resource
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psutil
import pytest
from uvicorn.server import ServerState

from tests.api.http_calls import form
from tests.api.raw_http import Server, request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[2]
MIB = 1024**2


@asynccontextmanager
async def process(folder: Path) -> AsyncIterator[tuple[Server, str, psutil.Process]]:
    command = (sys.executable, "-m", "tests.api.process", str(folder), "1")
    running = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert running.stdout is not None
    try:
        port, key = (await running.stdout.readline()).decode().split()
        yield Server(int(port), ServerState()), key, psutil.Process(running.pid)
        assert running.returncode is None
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def check_health(served: Server) -> None:
    """Make a call that must be served while others abuse the process; it has a deadline."""
    assert (await served.call("GET", "/healthz")).status == 200


async def test_two_thousand_slow_callers_do_not_block_others(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        async with process(tmp_path) as (served, _, _), AsyncExitStack() as stack:
            for _ in range(2000):
                client = stack.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", served.port))
                await asyncio.sleep(0)
                try:
                    client.send(b"POST /compat/v1/videos HTTP/1.1\r\nhost: t\r\nx: ")
                except OSError:
                    continue
            for _ in range(50):
                await check_health(served)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_bodies_over_the_limits_do_not_stay_in_memory(tmp_path: Path) -> None:
    """Announced or unannounced, in JSON or in forms."""
    async with process(tmp_path) as (served, key, gateway):
        _, multipart = form()
        for path, kind, limit in (
            ("/compat/v1/images/generations", {"content-type": "application/json"}, 32 * MIB),
            ("/compat/v1/images/edits", multipart, 64 * MIB),
        ):
            before = most = gateway.memory_info().rss
            async with await served.connect() as connection, asyncio.timeout(60):
                await connection.send(
                    request("POST", path, key=key, headers={**kind, "content-length": str(limit + 1)})
                )
                assert (await connection.read_response()).status == 413
            assert gateway.memory_info().rss - before < 8 * MIB  # the body was not read
            async with await served.connect() as connection, asyncio.timeout(60):
                await connection.send(request("POST", path, key=key, headers={**kind, "transfer-encoding": "chunked"}))
                start = (
                    form(("image", b"", "x"))[0].removesuffix(b"\r\n--edge--\r\n") if kind is multipart else b'{"a":"'
                )
                await connection.send(b"%x\r\n%s\r\n" % (len(start), start))
                piece = b"%x\r\n%s\r\n" % (MIB, b"x" * MIB)
                for _ in range(limit // MIB + 8):
                    await connection.send(piece)
                    most = max(most, gateway.memory_info().rss)
                await connection.send(b"0\r\n\r\n")
                assert (await connection.read_response()).status == 413
            assert most - before < 2 * limit


def send_and_hear(port: int, sent: bytes) -> bytes:
    """Send bytes and return the start of the response; runs in a thread."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        return connection.recv(12)


async def test_large_and_costly_bodies_do_not_block_the_event_loop(tmp_path: Path) -> None:
    image = b'{"model":"x","prompt":"' + b"A" * (31 * MIB) + b'"}'
    values = b'{"model":"x","prompt":"y","list":[' + b'{"x":1},' * 120_000 + b"1]}"
    deep = b'{"a":' + b"[" * 5_000_000
    async with process(tmp_path) as (served, key, _):
        headers = {"content-type": "application/json"}
        for body in (image, values, deep):
            path = "/compat/v1/images/generations?dryRun=true"
            sent = request("POST", path, key=key, body=body, headers=headers)
            sending = asyncio.create_task(asyncio.to_thread(send_and_hear, served.port, sent))
            while not sending.done():
                await check_health(served)
            assert await sending in (b"HTTP/1.1 400", b"HTTP/1.1 404")
