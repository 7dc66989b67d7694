"""A process that serves: how it starts, what it does when it is told to stop, and what it does without descriptors."""

import asyncio
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from uvicorn.server import ServerState

from penstock.api import server
from penstock.api.asgi import AsgiApp
from penstock.api.connection import WaitingConnections
from tests.api.accounts import opened
from tests.api.raw_http import Server, request, until

ROOT = Path(__file__).parents[3]


class Running:
    """The process and its address."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.served = Server(port, ServerState())

    async def ended(self) -> tuple[int | None, str]:
        assert self.process.stdout is not None
        rest = await self.process.stdout.read()
        return await self.process.wait(), rest.decode()


@asynccontextmanager
async def running(
    folder: Path, drain_seconds: float = 10.0, *, descriptors: int | None = None
) -> AsyncIterator[Running]:
    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.api.process",
        str(folder),
        str(drain_seconds),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=limit,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            yield Running(process, int((await process.stdout.readline()).split()[0]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_sigterm_lets_calls_finish_takes_no_others_and_ends_well(tmp_path: Path) -> None:
    async with running(tmp_path) as here, await here.served.line() as line:
        assert (await here.served.ask("GET", "/readyz")).status == 200
        await line.send(request("POST", "/slow?seconds=1"))
        assert (await here.served.ask("POST", "/slow?seconds=0")).status == 200
        here.process.send_signal(signal.SIGTERM)
        before = time.monotonic()
        said = await here.served.ask("GET", "/readyz")
        while said.status == 200 and time.monotonic() - before < 0.5:  # the signal is on its way
            said = await here.served.ask("GET", "/readyz")
        assert (said.status, said.code) == (503, "UNAVAILABLE")
        refused = await here.served.ask("POST", "/slow?seconds=0")
        assert (refused.status, refused.headers["x-should-retry"]) == (503, "true")
        assert (await here.served.ask("GET", "/healthz")).status == 200
        assert (await line.hear()).json == {"slept": True}
        assert await here.ended() == (0, "left in peace\n")


async def test_who_has_nothing_to_finish_leaves_at_once(tmp_path: Path) -> None:
    for one in (signal.SIGTERM, signal.SIGINT):
        async with running(tmp_path / one.name) as here, await here.served.line() as idle:
            await idle.send(request("GET", "/healthz"))
            assert (await idle.hear()).status == 200
            here.process.send_signal(one)
            before = time.monotonic()
            assert await here.ended() == (0, "left in peace\n")
            assert time.monotonic() - before < 5
            assert await idle.is_closed()


async def test_calls_that_outlast_the_drain_are_cut(tmp_path: Path) -> None:
    async with running(tmp_path, 0.3) as here, await here.served.line() as line:
        await line.send(request("POST", "/slow?seconds=3600"))
        assert (await here.served.ask("GET", "/healthz")).status == 200
        here.process.send_signal(signal.SIGTERM)
        code, said = await here.ended()
        assert (code, said) == (0, "left in peace\n")


async def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    async with running(tmp_path, 3600) as here, await here.served.line() as line:
        await line.send(request("POST", "/slow?seconds=3600"))
        assert (await here.served.ask("GET", "/healthz")).status == 200
        here.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.3)  # two signals in one instant are one
        here.process.send_signal(signal.SIGTERM)
        code, _ = await here.ended()
        assert code == 0


async def test_without_descriptors_it_goes_on_and_recovers(tmp_path: Path) -> None:
    async with running(tmp_path, descriptors=128) as here:
        crowd: list[socket.socket] = []
        for _ in range(400):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", here.served.port))
            crowd.append(one)
        assert (await here.served.ask("GET", "/readyz")).status in (200, 503)
        for one in crowd:
            one.close()

        async def answers() -> bool:
            try:
                return (await here.served.ask("GET", "/readyz")).status == 200
            except (OSError, asyncio.IncompleteReadError):
                return False

        async with asyncio.timeout(5):
            while True:
                if await answers():
                    break
        assert here.process.returncode is None


def test_an_address_in_use_is_an_error_that_says_so() -> None:
    with server.listen("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        server.listen("127.0.0.1", taken.getsockname()[1])


def test_ipv6_is_listened_on() -> None:
    with server.listen("::1", 0) as listener:
        assert listener.family == socket.AF_INET6


@pytest.mark.parametrize(
    ("limits", "expected", "raised_to"),
    [
        ((1024, 1_048_576), 2000, 4000),
        ((1024, 2048), 1536, 2048),
        ((128, 128), 96, None),
        ((1024, resource.RLIM_INFINITY), 2000, 4000),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 2000, None),
        ((100_000, 100_000), 2000, None),
    ],
)
def test_there_are_as_many_connections_as_descriptors_allow(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], expected: int, raised_to: int | None
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: raised.append(pair))
    assert server._max_connections() == expected
    assert raised == ([] if raised_to is None else [(raised_to, limits[1])])


async def test_forwarded_headers_are_believed_only_from_trusted_proxies(tmp_path: Path) -> None:
    for proxies, trusts in (((), False), (("10.0.0.1",), True)):
        async with opened(tmp_path / str(trusts), trusted_proxies=proxies) as gateway:
            waiting = WaitingConnections(1, 1, gateway.clock)
            config = server.configure(AsgiApp(gateway), gateway.settings, waiting)
            assert (config.proxy_headers, config.forwarded_allow_ips) == (trusts, list(proxies))
            assert config.server_header is False


async def test_serving_works_where_signals_cannot_be_caught(tmp_path: Path) -> None:
    """In a thread that is not the main one, as when somebody embeds the gateway."""
    listener = server.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]

    def run() -> None:
        async def main() -> None:
            async with opened(tmp_path) as gateway:
                task = asyncio.create_task(
                    server.serve(AsgiApp(gateway), gateway.settings, is_up.set, listener=listener)
                )
                await until(is_down.is_set, 30)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        asyncio.run(main())

    is_up, is_down = threading.Event(), threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        await until(is_up.is_set)
        assert (await Server(port, ServerState()).ask("GET", "/healthz")).status == 200
    finally:
        is_down.set()
        await asyncio.to_thread(thread.join)
