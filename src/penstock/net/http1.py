"""Send requests over HTTP/1.1 from the event loop, so that giving one up closes its connection at once."""

import asyncio
import errno
import os
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import zip_longest
from typing import NamedTuple, Self

from penstock.long_bodies.long_body import LongBody, StreamedBody
from penstock.net.connection import PIECE_BYTES, Connection
from penstock.net.connection_queue import ConnectionQueue
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge
from penstock.net.form import encode_form
from penstock.net.request_start import FixedHeaders, Origin, request_start
from penstock.net.response import MAX_RESPONSE_BYTES, OpenResponse
from penstock.net.tls import tls_context
from penstock.providers.spec import HttpRequest

CONNECT_SECONDS = 5.0
_MAX_ADDRESSES_TRIED = 3
_KEEP_ALIVE_SECONDS = 30
_MAX_IDLE = 512
# A request to one IP address waits for a connection, if so many are in use: opening another one, with TLS, takes more
# processor time than sending a webhook.
_CONNECTIONS_BEFORE_WAIT = 8

_BODILESS = ("GET", "HEAD")  # need no length; some servers require that of others

Lookup = Callable[[str, int, float], Awaitable[list[str]]]


class TimeLimits(NamedTuple):
    """How many seconds an exchange may take in all, and parts of it."""

    total: float
    read: float  # until the response begins, and until each chunk of it
    connect: float = CONNECT_SECONDS


class Http1Client:
    """Keeps connections to servers and sends requests over them, one at a time over each."""

    def __init__(self, look_up: Lookup, ca: bytes | None, *, idle_seconds: float) -> None:
        """`look_up` returns the IP addresses of a host name; `ca` has certificates in addition to the system's."""
        self._look_up = look_up
        self._ca = ca
        self._idle_seconds = idle_seconds
        self._tls: ssl.SSLContext | None = None
        self._tls_lock = asyncio.Lock()
        self._connections: set[Connection] = set()
        self._idle: dict[Origin, list[Connection]] = {}  # the one that was used last is at the end
        self._in_use: Counter[Origin] = Counter()  # of one IP address; with those that are being opened
        self._waiting: dict[Origin, ConnectionQueue] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    def exchange(self, request: HttpRequest, limits: TimeLimits, address: str = "") -> "Exchange":
        """Prepare to send a request, to this IP address if one is given. Raises NotSent if it cannot be sent."""
        headers = request.headers
        start = headers.start if isinstance(headers, FixedHeaders) else None
        if start is None or start.url != request.url or start.method != request.method:
            start = request_start(request)
            if isinstance(headers, FixedHeaders):
                headers.start = start
        body = request.body
        lines = start.lines
        if request.form:
            content_type, body = encode_form(request.form)
            lines += f"content-type: {content_type}\r\n"
        length = f"content-length: {len(body)}\r\n\r\n" if body or request.method not in _BODILESS else "\r\n"
        origin = start.origin
        if address:
            origin = Origin(origin.is_tls, origin.host, origin.port, address)
        return Exchange(self, origin, (lines + length).encode(), body, limits, is_head=request.method == "HEAD")

    def close(self) -> None:
        """Close every connection. Requests that are under way fail with MaybeSent."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in tuple(self._connections):
            connection.abort()
        self._idle.clear()
        for origin in list(self._waiting):
            while self._pass_on(origin, None):
                pass

    # ---------------------------------------------------------------------------------------------------- connections

    def take_idle(self, origin: Origin) -> Connection | None:
        """Return an idle connection that its server has not closed, if there is one; call `give_back` or `drop`
        afterwards.
        """
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.is_fresh():
                if origin.address:
                    self._in_use[origin] += 1
                return connection
            connection.abort()
        return None

    async def open(self, origin: Origin, deadline: float, connect_seconds: float) -> Connection:
        """Open a connection, or wait for one that another request gives back; call `give_back` or `drop` afterwards.

        Raises NotSent.
        """
        loop = asyncio.get_running_loop()
        connection = None
        if origin.address and self._in_use[origin] >= _CONNECTIONS_BEFORE_WAIT:
            connection = await self._wait_for_idle(origin, deadline - loop.time())
        if origin.address:
            self._in_use[origin] += 1
        if connection is not None:
            return connection
        try:
            return await self._connect(origin, min(connect_seconds, deadline - loop.time()))
        except BaseException:
            if origin.address:
                self._end_use(origin)
            raise

    def drop(self, origin: Origin, connection: Connection) -> None:
        """Close a connection that cannot be used again."""
        connection.abort()
        if origin.address:
            self._end_use(origin)
        self._pass_on(origin, None)

    def give_back(self, origin: Origin, connection: Connection) -> None:
        """Hand a connection to the next request, or keep it for a while."""
        if origin.address:
            self._end_use(origin)
        self._hand_over(origin, connection)

    def _hand_over(self, origin: Origin, connection: Connection) -> None:
        if not self._waiting or not self._pass_on(origin, connection):
            self._keep(origin, connection)

    def _end_use(self, origin: Origin) -> None:
        self._in_use[origin] -= 1
        if not self._in_use[origin]:
            del self._in_use[origin]

    async def _wait_for_idle(self, origin: Origin, seconds: float) -> Connection | None:
        """Wait for a connection that another request gives back; None when it is time to open one."""
        queue = self._waiting.setdefault(origin, ConnectionQueue())
        try:
            return await queue.wait(seconds, lambda connection: self._hand_over(origin, connection))
        finally:
            if not queue and self._waiting.get(origin) is queue:
                del self._waiting[origin]

    def _pass_on(self, origin: Origin, connection: Connection | None) -> bool:
        """Give a connection, or None to have one opened, to the request that waits longest; False if none waits."""
        queue = self._waiting.get(origin)
        return queue is not None and queue.pass_on(connection)

    def _keep(self, origin: Origin, connection: Connection) -> None:
        """Keep a connection for the next request, unless there are many already."""
        if self._is_closed or (len(self._connections) > _MAX_IDLE and not self._make_room(origin)):
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_until = loop.time() + self._idle_seconds
        self._idle.setdefault(origin, []).append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(self._idle_seconds, self._close_idle)

    def _make_room(self, origin: Origin) -> bool:
        """Whether one more connection may be kept. One to a provider takes the place of one to an IP address that was
        checked before, such as those of URLs of callers: otherwise callers who name many servers could have each call
        to a provider open a new one.
        """
        if len(self._connections) <= _MAX_IDLE or sum(map(len, self._idle.values())) < _MAX_IDLE:
            return True
        named = [] if origin.address else [idle for other, idle in self._idle.items() if other.address and idle]
        if not named:
            return False
        min(named, key=lambda idle: idle[0].idle_until).pop(0).abort()
        return True

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = None
        for origin, idle in list(self._idle.items()):
            kept = [connection for connection in idle if connection.idle_until > loop.time()]
            for connection in idle:
                if connection.idle_until <= loop.time():
                    connection.abort()
            if kept:
                self._idle[origin] = kept
            else:
                del self._idle[origin]
        if self._idle:
            self._sweep = loop.call_later(self._idle_seconds, self._close_idle)

    async def _connect(self, origin: Origin, seconds: float) -> Connection:
        """Open a connection to the first IP address of a server that takes one. Raises NotSent."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        failure, is_local = "the host name has no IP address", False
        addresses = [origin.address] if origin.address else await self._look_up(origin.host, origin.port, seconds)
        addresses = _alternate(addresses)[:_MAX_ADDRESSES_TRIED]
        for number, address in enumerate(addresses):
            if self._is_closed:
                raise NotSent("the HTTP client is closed")
            try:
                async with asyncio.timeout((deadline - loop.time()) / (len(addresses) - number)):
                    return await self._connect_to(address, origin)
            except TimeoutError:
                failure, is_local = "connecting timed out", False
            except OSError as error:  # includes those of TLS
                failure, is_local = f"connecting failed: {_reason(error)}", error.errno in (errno.EMFILE, errno.ENFILE)
        raise NotSent(failure, local=is_local)

    async def _connect_to(self, address: str, origin: Origin) -> Connection:
        loop = asyncio.get_running_loop()
        tls = await self._load_tls() if origin.is_tls else None
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if sys.platform == "linux":
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_SECONDS)
            await loop.sock_connect(sock, (address, origin.port))
            _, connection = await loop.create_connection(
                lambda: Connection(self._connections, sock),
                sock=sock,
                ssl=tls,
                server_hostname=origin.host if tls else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    async def _load_tls(self) -> ssl.SSLContext:
        async with self._tls_lock:  # loading it takes milliseconds, and many connections may be opened at once
            if self._tls is None:
                self._tls = await asyncio.to_thread(_tls_context, self._ca)
            return self._tls


def _reason(error: OSError) -> str:
    """Why a connection could not be opened, in the words of the system or of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError) or not error.errno:
        return type(error).__name__
    return os.strerror(error.errno).lower()


def _alternate(addresses: list[str]) -> list[str]:
    """Let IPv6 and IPv4 addresses take turns: in some networks the connections of one of them lead nowhere."""
    families = [[each for each in addresses if (":" in each) is is_ipv6] for is_ipv6 in (True, False)]
    if addresses and ":" not in addresses[0]:
        families.reverse()
    return [address for pair in zip_longest(*families) for address in pair if address]


def _tls_context(ca: bytes | None) -> ssl.SSLContext:
    context = tls_context(ca)
    context.set_alpn_protocols(["http/1.1"])
    return context


class Exchange(OpenResponse):
    """A request and its response. Leaving the context closes the connection also while the response has not begun."""

    def __init__(
        self,
        client: Http1Client,
        origin: Origin,
        head: bytes,
        body: bytes | LongBody | StreamedBody,
        limits: TimeLimits,
        *,
        is_head: bool = False,
    ) -> None:
        self._client = client
        self.origin = origin
        self._head = head
        self._body = body
        self._limits = limits
        self._is_head = is_head
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        limits = self._limits
        deadline = asyncio.get_running_loop().time() + limits.total
        connection = self._client.take_idle(self.origin)
        if connection is None:
            connection = await self._client.open(self.origin, deadline, limits.connect)
        try:
            connection.begin(deadline, limits.read, is_head=self._is_head)
            body = self._body
            if isinstance(body, bytes) and len(body) <= PIECE_BYTES:
                connection.write(self._head + body)
            else:
                await connection.write_long(self._head, body)
            while not connection.has_head:
                await connection.next_data()
        except BaseException:
            self._client.drop(self.origin, connection)
            raise
        self._connection = connection
        self._begin(connection.status, connection.headers)
        return self

    def take_whole(self, max_bytes: int) -> bytes | None:
        """Return the whole body if it has arrived together with its head, as most have; None otherwise."""
        body = None if self._is_compressed or self._connection is None else self._connection.take_whole_body()
        if body is not None and len(body) > max_bytes:
            raise ResponseTooLarge(max_bytes)
        return body

    async def read(self, max_bytes: int = MAX_RESPONSE_BYTES) -> bytes | bytearray:
        body = self.take_whole(max_bytes)
        return await super().read(max_bytes) if body is None else body

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """Do what leaving the context does."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.release():
            self._client.give_back(self.origin, connection)
        else:
            self._client.drop(self.origin, connection)

    def _read_chunk(self) -> Awaitable[bytes | None]:
        if self._connection is None:
            raise MaybeSent("the response was closed before its end")
        return self._connection.read_chunk()
