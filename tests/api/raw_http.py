"""Raw HTTP: serve an application on a real socket, send bytes to it and read responses."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

from uvicorn.server import ServerState

from penstock.api.asgi import AsgiApp
from penstock.clock import Clock
from penstock.http_server.open_connections import WINDOW_SECONDS, OpenConnections
from penstock.http_server.server import configure
from penstock.settings import Settings
from tests.loop_time import pass_time


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition is true; fail after this many seconds."""
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.002)


@dataclass(frozen=True, slots=True)
class RawResponse:
    """One response, as it was received."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Return the code of an error response, which must have the envelope."""
        assert self.headers["content-type"] == "application/json", self
        assert self.headers["x-request-id"].startswith("req_"), self
        assert self.headers["x-service-request-id"] == self.headers["x-request-id"]
        response = self.json
        assert set(response) == {"error"}, self
        assert set(response["error"]) - {"param"} == {"message", "type", "code"}, self
        assert "Traceback" not in response["error"]["message"]
        return str(response["error"]["code"])


class RawConnection:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    async def send(self, *parts: bytes) -> None:
        """Send each part in its own packet; give the server time to read it before the next one."""
        for part in parts:
            self.writer.write(part)
            with suppress(ConnectionError):
                await self.writer.drain()
            for _ in range(3 if len(parts) > 1 else 0):
                await asyncio.sleep(0)

    async def read_response(self, *, is_head: bool = False) -> RawResponse:
        """Read the next response."""
        first = (await self.reader.readuntil(b"\r\n")).split(b" ", 2)
        headers: dict[str, str] = {}
        while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.decode("latin-1").strip().partition(": ")
            assert name not in headers, f"{name} was sent twice"
            headers[name] = value
        status = int(first[1])
        if is_head or status in (204, 304):
            return RawResponse(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return RawResponse(status, headers, b"".join([chunk async for chunk in self.chunks()]))
        return RawResponse(status, headers, await self.reader.readexactly(int(headers["content-length"])))

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)

    async def is_closed(self, seconds: float = 60.0) -> bool:
        """Return True if the server closes the connection within this time, without sending more."""
        try:
            async with asyncio.timeout(seconds):
                return await self.reader.read(1) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True


@dataclass(frozen=True, slots=True)
class Server:
    """A server to send calls to."""

    port: int
    state: ServerState

    async def connect(self) -> RawConnection:
        return RawConnection(*await asyncio.open_connection("127.0.0.1", self.port, limit=2**20))

    async def connect_silently(self, sent: bytes) -> socket.socket:
        """Connect with a small window, send, and never read."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", self.port))
        await loop.sock_sendall(client, sent)
        return client

    async def call(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        body: bytes | Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> RawResponse:
        """Make one call on a new connection."""
        async with await self.connect() as line:
            await line.send(request(method, path, key=key, body=body, headers=headers))
            async with asyncio.timeout(60):
                return await line.read_response(is_head=method == "HEAD")


def request(
    method: str,
    path: str,
    *,
    key: str | None = None,
    body: bytes | Any = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    lines = {"host": "test", **(headers or {})}
    if key is not None:
        lines["authorization"] = f"Bearer {key}"
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        lines.setdefault("content-type", "application/json")
    if body is not None:
        lines.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b"")


@asynccontextmanager
async def serving(
    edge: AsgiApp, settings: Settings, *, most: int = 100, head_seconds: float = 10.0, **how: Any
) -> AsyncIterator[Server]:
    """Serve an application with our protocol class, but without uvicorn's main loop, which takes time to stop."""
    connections = OpenConnections(most, head_seconds, Clock(), **how)
    config = configure(edge, settings, connections)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: config.http_protocol_class(config, state, {}, loop), "127.0.0.1", 0)  # type: ignore[call-arg]
    try:
        yield Server(listener.sockets[0].getsockname()[1], state)
    finally:
        listener.close()
        connections.close()
        for connection in list(state.connections):
            connection.transport.abort()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # let the aborted connections call connection_lost
        edge.close()


def unread(served: Server) -> int:
    """How many connections have a response that their client does not read."""
    connections: set[Any] = set(served.state.connections)
    return sum(connection.flow.write_paused for connection in connections)


async def pass_windows(served: Server) -> None:
    """Let windows of time pass in which no client reads, until no response is unread; or ten of them, far more than a
    client may leave its response unread.
    """
    for _ in range(10):
        if unread(served) == 0:
            break
        pass_time(WINDOW_SECONDS)
        for _ in range(5):  # the timer, the end of a connection, of its call, and of what the call has begun
            await asyncio.sleep(0)
