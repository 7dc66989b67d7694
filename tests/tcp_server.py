"""A TCP server on loopback that does to each connection exactly what a test says."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

GONE = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)


class Peer:
    """One accepted connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: "Server") -> None:
        self._reader = reader
        self._writer = writer
        self._server = server

    async def request(self) -> bytes:
        """The next whole request, as it came."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        whole = head + await self._reader.readexactly(length)
        self._server.requests.append(whole)
        return whole

    async def begun(self) -> bytes:
        """The head of the next request, whatever becomes of its body."""
        return await self._reader.readuntil(b"\r\n\r\n")

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
        self._server.sent_bytes += len(data)

    async def reply(self, body: bytes = b"", *headers: str, status: int = 200) -> None:
        await self.send(head(f"content-length: {len(body)}", *headers, status=status) + body)

    async def gone(self) -> None:
        """Wait until the other side has closed the connection."""
        try:
            while await self._reader.read(65536):
                pass
        except GONE:
            pass
        self._server.departures.release()

    def reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()


class Server:
    """What happened so far."""

    def __init__(self) -> None:
        self.host = ""
        self.port = 0
        self.scheme = "http"
        self.connections = 0
        self.requests: list[bytes] = []
        self.sent_bytes = 0
        self.departures = asyncio.Semaphore(0)  # how often a script's `gone()` came true

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    async def departed(self) -> None:
        """Wait until one more connection was closed by the other side."""
        async with asyncio.timeout(10):
            await self.departures.acquire()


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serve(
    script: Script, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Run the script for each connection; the connection is closed when it ends, and its failure is the test's."""
    server, tasks, failures = Server(), set[asyncio.Task[None]](), list[BaseException]()

    async def attend(peer: Peer, writer: asyncio.StreamWriter) -> None:
        try:
            if tls:  # here and not in start_server, where a failed handshake would be nobody's
                await writer.start_tls(tls)
            await script(peer)
            writer.close()
        except GONE:
            peer.abort()
        except asyncio.CancelledError:
            peer.abort()
        except BaseException as problem:
            failures.append(problem)
            peer.abort()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        tasks.add(asyncio.get_running_loop().create_task(attend(Peer(reader, writer, server), writer)))

    listener = await asyncio.start_server(accepted, host, port)
    server.host, server.port = listener.sockets[0].getsockname()[:2]
    server.scheme = "https" if tls else "http"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        for _ in range(3):  # transports close on the next turns of the loop
            await asyncio.sleep(0)
    if failures:
        raise failures[0]


def head(*headers: str, status: int = 200) -> bytes:
    """The head of an HTTP/1.1 reply."""
    return "\r\n".join((f"HTTP/1.1 {status} Whatever", *headers, "", "")).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(data), data)
