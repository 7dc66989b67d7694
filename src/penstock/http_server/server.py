"""Listen, serve, and on SIGTERM finish running calls before stopping.

`_Server` extends `uvicorn.Server`, whose inner methods are not documented; see `make test-uvicorn`.
"""

import asyncio
import errno
import resource
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import structlog
import uvicorn

from penstock.clock import Clock
from penstock.http_server.addresses import Proxies
from penstock.http_server.connection import CallerConnection
from penstock.http_server.open_connections import OpenConnections
from penstock.settings import Settings

log = structlog.get_logger()
MAX_CONNECTIONS = 2000
HEAD_SECONDS = 10.0
_BACKLOG = 2048
# Copies of the listening socket, which several processes divide, so that none takes all connections of a moment. uvloop
# accepts one connection per socket and round of the event loop: with a single socket, a new connection waits for as
# many rounds as there are others before it. Each copy costs two microseconds per new connection.
_LISTENERS = 8
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Application(Protocol):
    """An ASGI application that can be told to refuse new work, to end the work that still runs, and that there will be
    no more calls.
    """

    draining: bool

    def interrupt(self) -> None: ...

    def close(self) -> None: ...

    def __call__(self, scope: Any, receive: Any, send: Any, /) -> Awaitable[object]: ...


async def serve(
    app: Application,
    settings: Settings,
    ready: Callable[[], None],
    *,
    listener: socket.socket | None = None,
    head_seconds: float = HEAD_SECONDS,
    signals: Sequence[signal.Signals] = _SIGNALS,
) -> None:
    """Serve until one of the signals. `ready` is called once connections are accepted."""
    listener = listener or listen(settings.host, settings.port)
    listeners = [listener, *(listener.dup() for _ in range(_LISTENERS // max(1, settings.processes) - 1))]
    limit = settings.connections_per_address
    connections = OpenConnections(_max_connections(), head_seconds, Clock(), address_limit=limit)
    try:
        server = _Server(configure(app, settings, connections), app, settings.drain_seconds, ready, signals)
        await server.serve(sockets=listeners)
    finally:
        connections.close()
        for copy in listeners:
            copy.close()
        app.close()


def configure(app: Application, settings: Settings, connections: OpenConnections) -> uvicorn.Config:
    """Return the configuration of uvicorn."""
    shared = {"open_connections": connections, "proxies": Proxies(settings.trusted_proxies)}
    return uvicorn.Config(
        app,
        http=type("ServedConnection", (CallerConnection,), shared),
        interface="asgi3",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # `asgi` logs what is needed, without anything that a caller sent
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_graceful_shutdown=1,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise ValueError if the port is taken, OSError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as problem:
        if problem.errno != errno.EADDRINUSE:
            raise
        message = f"port {port} of {host} is in use by another program: stop it, or choose another port with --port"
        raise ValueError(message) from None


def _max_connections() -> int:
    """Return how many connections to allow: a quarter of the file descriptors stays free for everything else, and some
    more for the listeners, and for connections that are accepted in a round while others are still being closed.

    Raises the limit of descriptors of this process if it may and if that allows more connections.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * MAX_CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft * 3 // 4 - 4 * _LISTENERS)


class _Server(uvicorn.Server):
    """Stops in two steps: first new work is refused while running calls finish, then calls are interrupted."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: Application,
        drain_seconds: float,
        ready: Callable[[], None],
        signals: Sequence[signal.Signals],
    ) -> None:
        super().__init__(config)
        self._signals = signals
        self._app = app
        self._drain_seconds = drain_seconds
        self._ready = ready
        self._stop_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        if self._stop_at is not None:
            is_late = asyncio.get_running_loop().time() >= self._stop_at
            self.should_exit = self.should_exit or is_late or not self.server_state.tasks
            if is_late:
                self._app.interrupt()  # then there is `timeout_graceful_shutdown` to send the last bytes
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but does not raise the signal again at the end: the process exits with status 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in self._signals:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """On the first call finish running calls, on the second stop at once."""
        if self._stop_at is not None:
            log.info("stopping at once")
            self._app.interrupt()
            self.should_exit = self.force_exit = True
            return
        log.info("stopping", unfinished_calls=len(self.server_state.tasks), drain_seconds=self._drain_seconds)
        self._app.draining = True
        self._stop_at = asyncio.get_running_loop().time() + self._drain_seconds
