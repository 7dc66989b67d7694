"""A TCP server on loopback that does to each connection exactly what a test says."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

CONNECTION_ERRORS = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)


class Connection:
    """One accepted connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: "TcpServer") -> None:
        self._reader = reader
        self._writer = writer
        self._server = server

    async def read_request(self) -> bytes:
        """Read the next whole request, and add it to the server's `requests`."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        request = head + await self._reader.readexactly(length)
        self._server.requests.append(request)
        return request

    async def read_head(self) -> bytes:
        """Read the head of the next request and leave its body unread."""
        return await self._reader.readuntil(b"\r\n\r\n")

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
        self._server.sent_bytes += len(data)

    async def respond(self, body: bytes = b"", *headers: str, status: int = 200) -> None:
        await self.send(response_head(f"content-length: {len(body)}", *headers, status=status) + body)

    async def wait_closed(self) -> None:
        """Wait until the other side has closed the connection."""
        try:
            while await self._reader.read(65536):
                pass
        except CONNECTION_ERRORS:
            pass
        self._server.closed_by_client.release()

    def reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()


class TcpServer:
    """Where the server listens, and what has happened so far."""

    def __init__(self) -> None:
        self.host = ""
        self.port = 0
        self.scheme = "http"
        self.connections = 0
        self.requests: list[bytes] = []
        self.sent_bytes = 0
        self.tasks: set[asyncio.Task[None]] = set()  # one for each connection, running its script
        self.closed_by_client = asyncio.Semaphore(0)  # released whenever a script's `wait_closed` returns

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    async def wait_closed_by_client(self) -> None:
        """Wait until one more connection was closed by the other side."""
        async with asyncio.timeout(60):
            await self.closed_by_client.acquire()

    async def wait_ended(self) -> None:
        """Wait until the script of every connection has ended: by itself, or because the other side was gone."""
        async with asyncio.timeout(60):
            await asyncio.wait(self.tasks)


Script = Callable[[Connection], Awaitable[None]]


@asynccontextmanager
async def serve(
    script: Script, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[TcpServer]:
    """Run the script for each connection, close the connection when it ends, and raise its failure at the end."""
    server = TcpServer()
    failures: list[BaseException] = []

    async def run_script(connection: Connection, writer: asyncio.StreamWriter) -> None:
        try:
            if tls:  # not in start_server, which would swallow a failed handshake
                await writer.start_tls(tls)
            await script(connection)
            writer.close()
        except CONNECTION_ERRORS:
            connection.abort()
        except asyncio.CancelledError:
            connection.abort()
        except BaseException as error:
            failures.append(error)
            connection.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.tasks.add(asyncio.get_running_loop().create_task(run_script(Connection(reader, writer, server), writer)))

    listener = await asyncio.start_server(accept, host, port)
    server.host, server.port = listener.sockets[0].getsockname()[:2]
    server.scheme = "https" if tls else "http"
    try:
        yield server
    finally:
        listener.close()
        for task in server.tasks:
            task.cancel()
        await asyncio.gather(*server.tasks)
        for _ in range(3):  # transports close on the next turns of the event loop
            await asyncio.sleep(0)
    if failures:
        raise failures[0]


def response_head(*headers: str, status: int = 200) -> bytes:
    """The head of an HTTP/1.1 response."""
    return "\r\n".join((f"HTTP/1.1 {status} Whatever", *headers, "", "")).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; an empty one ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def endless_response(*, announced: bool) -> Script:
    """Respond to a request with a body that does not end, with a length that says so, or in chunks."""

    async def respond(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(
            response_head("content-length: 10000000000" if announced else "transfer-encoding: chunked")
        )
        block = b"x" * 65_536
        while True:
            await connection.send(block if announced else chunk(block))

    return respond
