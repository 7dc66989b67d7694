"""The server as a process: starting, stopping on a signal, and running out of file descriptors."""

import asyncio
import resource
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from uvicorn.server import ServerState

from penstock.api.asgi import AsgiApp
from penstock.http_server import server
from penstock.http_server.open_connections import OpenConnections, ServedConnection
from tests.api.accounts import opened
from tests.api.raw_http import RawResponse, Server, request, until

ROOT = Path(__file__).parents[3]


class Running:
    """The process and its port."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.served = Server(port, ServerState())

    async def wait_for_call(self) -> None:
        """Wait until a call of `/wait` is running."""
        while (await self.served.call("GET", "/waiting")).json["waiting"] == 0:
            pass

    async def wait_until_draining(self) -> RawResponse:
        """Wait until the process is not ready any more, and return that response."""
        while (response := await self.served.call("GET", "/readyz")).status == 200:
            pass
        return response

    async def ended(self) -> tuple[int | None, str]:
        """Wait for the end of the process; return its exit status and what it printed last."""
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
        async with asyncio.timeout(50):
            yield Running(process, int((await process.stdout.readline()).split()[0]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_sigterm_finishes_running_calls_refuses_new_ones_and_exits_with_0(tmp_path: Path) -> None:
    async with running(tmp_path, 3600) as here, await here.served.connect() as connection:
        assert (await here.served.call("GET", "/readyz")).status == 200
        await connection.send(request("POST", "/wait"))
        await here.wait_for_call()
        here.process.send_signal(signal.SIGTERM)
        response = await here.wait_until_draining()
        assert (response.status, response.code) == (503, "UNAVAILABLE")
        refused = await here.served.call("POST", "/wait")
        assert (refused.status, refused.headers["x-should-retry"]) == (503, "true")
        assert (await here.served.call("GET", "/healthz")).status == 200
        assert (await here.served.call("GET", "/release")).status == 204
        assert (await connection.read_response()).json == {"waited": True}
        status, printed = await here.ended()
        assert (status, printed.splitlines()[-1]) == (0, "stopped")
        assert "stopping" in printed
        # The second may be the call that asks whether the process drains.
        assert "unfinished_calls=1" in printed or "unfinished_calls=2" in printed


async def test_a_process_without_running_calls_stops_without_waiting(tmp_path: Path) -> None:
    """It would wait for an hour if it waited for the drain."""
    for number in (signal.SIGTERM, signal.SIGINT):
        async with running(tmp_path / number.name, 3600) as here, await here.served.connect() as idle:
            await idle.send(request("GET", "/healthz"))
            assert (await idle.read_response()).status == 200
            here.process.send_signal(number)
            status, printed = await here.ended()
            assert (status, printed.splitlines()[-1]) == (0, "stopped")
            assert await idle.is_closed()


async def test_calls_that_outlast_the_drain_are_ended(tmp_path: Path) -> None:
    async with running(tmp_path, 0.3) as here, await here.served.connect() as connection:
        await connection.send(request("POST", "/wait"))
        await here.wait_for_call()
        here.process.send_signal(signal.SIGTERM)
        status, printed = await here.ended()
        assert (status, printed.splitlines()[-1]) == (0, "stopped")


async def test_a_second_signal_stops_the_process_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, 3600) as here, await here.served.connect() as connection:
        await connection.send(request("POST", "/wait"))
        await here.wait_for_call()
        here.process.send_signal(signal.SIGTERM)
        await here.wait_until_draining()  # two signals at the same moment would arrive as one
        here.process.send_signal(signal.SIGTERM)
        code, _ = await here.ended()
        assert code == 0


async def test_the_server_recovers_after_running_out_of_descriptors(tmp_path: Path) -> None:
    async with running(tmp_path, descriptors=128) as here:
        crowd: list[socket.socket] = []
        for _ in range(400):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", here.served.port))
            crowd.append(client)
        assert (await here.served.call("GET", "/readyz")).status in (200, 503)
        for client in crowd:
            client.close()

        async def is_up() -> bool:
            try:
                return (await here.served.call("GET", "/readyz")).status == 200
            except (OSError, asyncio.IncompleteReadError):
                return False

        async with asyncio.timeout(40):
            while not await is_up():
                pass
        assert here.process.returncode is None


def test_an_address_in_use_is_an_error() -> None:
    with server.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=rf"^port {port} of 127\.0\.0\.1 is in use .* with --port$"):
            server.listen("127.0.0.1", port)


def test_the_server_listens_on_ipv6() -> None:
    with server.listen("::1", 0) as listener:
        assert listener.family == socket.AF_INET6


@pytest.mark.parametrize(
    ("limits", "expected", "raised_to"),
    [
        ((1024, 1_048_576), 2000, 4000),
        ((1024, 2048), 1504, 2048),
        ((128, 128), 64, None),
        ((1024, resource.RLIM_INFINITY), 2000, 4000),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 2000, None),
        ((100_000, 100_000), 2000, None),
    ],
)
def test_the_limit_of_connections_follows_the_limit_of_descriptors(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], expected: int, raised_to: int | None
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: raised.append(pair))
    assert server._max_connections() == expected
    assert raised == ([] if raised_to is None else [(raised_to, limits[1])])


async def test_forwarded_headers_are_used_only_from_trusted_proxies(tmp_path: Path) -> None:
    for proxies, trusts in (((), False), (("10.0.0.1",), True)):
        async with opened(tmp_path / str(trusts), trusted_proxies=proxies) as gateway:
            connections = OpenConnections(1, 1, gateway.clock)
            config = server.configure(AsgiApp(gateway), gateway.settings, connections)
            assert (config.proxy_headers, config.forwarded_allow_ips) == (trusts, list(proxies))
            assert config.server_header is False


async def test_the_server_runs_in_a_thread_without_signals(tmp_path: Path) -> None:
    """Signals cannot be handled outside the main thread, as when a program embeds the gateway."""
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
        assert (await Server(port, ServerState()).call("GET", "/healthz")).status == 200
    finally:
        is_down.set()
        await asyncio.to_thread(thread.join)


def test_several_connections_are_accepted_in_each_round_of_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one that comes after many others waits for as many rounds, and each may start calls of the others."""
    count = 80
    accepted: list[ServedConnection] = []

    class Counted(OpenConnections):
        def add(self, connection: ServedConnection) -> bool:
            accepted.append(connection)
            return super().add(connection)

    async def count_rounds(listener: socket.socket) -> int:
        async with opened(tmp_path) as gateway:
            is_up = asyncio.Event()
            stop = signal.SIGUSR2
            serving = server.serve(AsgiApp(gateway), gateway.settings, is_up.set, listener=listener, signals=[stop])
            task = asyncio.create_task(serving)
            await is_up.wait()
            rounds = 0
            while len(accepted) < count and rounds < 100 * count:
                rounds += 1
                await asyncio.sleep(0)
            signal.raise_signal(stop)
            await task
            return rounds

    monkeypatch.setattr(server, "OpenConnections", Counted)
    listener = server.listen("127.0.0.1", 0)
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for _ in range(count):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        assert runner.run(count_rounds(listener)) <= count / 4
