"""Listen, serve, and on SIGTERM let calls under way finish."""

import asyncio
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import uvicorn

from penstock.api.connection import Connection, Doorkeeper
from penstock.clock import Clock
from penstock.settings import Settings

MOST_CONNECTIONS = 2000
HEAD_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 75  # longer than load balancers keep an idle connection, so that they are the ones to close it
_BACKLOG = 2048
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Application(Protocol):
    """An ASGI application that can be told to take no more work."""

    draining: bool

    async def __call__(self, scope: Any, receive: Any, send: Any, /) -> None: ...


async def serve(
    app: Application,
    settings: Settings,
    ready: Callable[[], None],
    *,
    listener: socket.socket | None = None,
    head_seconds: float = HEAD_SECONDS,
) -> None:
    """Serve until a signal says stop. `ready` is called once connections are accepted."""
    listener = listener or listen(settings.host, settings.port)
    doorkeeper = Doorkeeper(_most_connections(), head_seconds, Clock())
    try:
        server = _Server(configure(app, settings, doorkeeper), app, settings.drain_seconds, ready)
        await server.serve(sockets=[listener])
    finally:
        doorkeeper.close()
        listener.close()


def configure(app: Application, settings: Settings, doorkeeper: Doorkeeper) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=type("ServedConnection", (Connection,), {"doorkeeper": doorkeeper}),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # what deserves a line is logged by the edge, without anybody's words in it
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or an OSError that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def _most_connections() -> int:
    """As many as there are descriptors for, with a quarter left for files, the database and providers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * MOST_CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft * 3 // 4)


class _Server(uvicorn.Server):
    """Stops in two steps: no new work while calls under way finish, then no more connections."""

    def __init__(
        self, config: uvicorn.Config, app: Application, drain_seconds: float, ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds
        self._ready = ready
        self._give_up_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        if self._give_up_at is not None:
            is_late = asyncio.get_running_loop().time() >= self._give_up_at
            self.should_exit = self.should_exit or is_late or not self.server_state.tasks
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's own, does not raise the signal again at the end: a stop that was asked for is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for one in _SIGNALS:
            loop.add_signal_handler(one, self.stop)
        try:
            yield
        finally:
            for one in _SIGNALS:
                loop.remove_signal_handler(one)

    def stop(self) -> None:
        """Once: finish what is under way. Twice: at once."""
        if self._give_up_at is not None:
            self.should_exit = self.force_exit = True
            return
        self._app.draining = True
        self._give_up_at = asyncio.get_running_loop().time() + self._drain_seconds
