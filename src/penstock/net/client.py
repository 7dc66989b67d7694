"""The HTTP sender: one request out, one capped reply back, and whether anything was sent."""

import asyncio
import errno
import ipaddress
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Self
from urllib.parse import urljoin

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import BuilderError, PyreqwestError
from pyreqwest.multipart import FormBuilder, PartBuilder
from pyreqwest.request import RequestBuilder, StreamRequest
from pyreqwest.response import Response

from penstock import __version__
from penstock.errors import InvalidRequest
from penstock.event_loop import unobtrusive
from penstock.net.guard import NO_EXCEPTIONS, Egress, Target, check_fetch_url
from penstock.net.reply import Chunks, Fetched, Headers, NotSent, Refused, Sink, TooLarge, Unknown, keep, outcome, read
from penstock.providers.spec import Outgoing, Reply, Upload

__all__ = ["Chunks", "Fetched", "HttpClient", "NotSent", "Refused", "Resolver", "Sink", "Stream", "TooLarge", "Unknown"]

MOST_REPLY_BYTES = 64 * 2**20
_CONNECT_SECONDS = 5.0
_LOOKUP_SECONDS = 5.0
# Shorter than most servers keep a connection, so that they seldom close one just as we send a paid request over it.
_IDLE_CONNECTION_SECONDS = 20.0
_MOST_PINNED_CLIENTS = 32
_MOST_ADDRESSES_TRIED = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie"})

Resolver = Callable[[str, int], Awaitable[list[str]]]

# -------------------------------------------------------------------------------------------------------------- replies


class Stream:
    """A reply read while it arrives. Leaving the context closes the connection at once, whatever is left of it."""

    status: int
    headers: Headers

    def __init__(self, request: StreamRequest) -> None:
        self._request = request

    async def __aenter__(self) -> Self:
        try:
            response = await self._request.__aenter__()
        except PyreqwestError as problem:
            raise outcome(problem) from None
        self.status, self.headers, self._reader = response.status, Headers(response.headers), response.body_reader
        self._compressed = bool(self.headers.encoding)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._request.__aexit__(None, None, None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._compressed:
            raise Unknown("the stream is compressed, which was not asked for")
        try:
            chunk = await self._reader.read_chunk()
        except PyreqwestError as problem:
            raise outcome(problem) from None
        if chunk is None:
            raise StopAsyncIteration
        return chunk.to_bytes()

    async def read(self, most_bytes: int = MOST_REPLY_BYTES) -> bytes:
        """The whole rest, for replies that turn out to be no stream."""
        try:
            return await read(self._reader, self.headers, most_bytes)
        except PyreqwestError as problem:
            raise outcome(problem) from None


# ----------------------------------------------------------------------------------------------------------------- wire


class HttpClient:
    """Every HTTP request that this process makes; one object for all of them."""

    def __init__(
        self, *, ca_file: Path | None = None, connections: int | None = None, resolver: Resolver | None = None
    ) -> None:
        self._ca = ca_file.read_bytes() if ca_file else None
        self._connections = connections
        self._clients: dict[float | None, Client] = {}
        self._pinned: dict[tuple[str, str, int], Client] = {}
        # Lookups that hang must not take the threads that the rest of the process waits for.
        self._lookups = ThreadPoolExecutor(8, thread_name_prefix="lookup")
        self._resolver = resolver or self._resolve
        self._closed = False
        try:
            with unobtrusive():  # the library begins its thread with the first client
                self._client(None)
        except NotSent:
            raise ValueError(f"no certificates to trust could be read, also from {ca_file}") from None

    async def close(self) -> None:
        """Drop every connection. What is under way ends as Unknown."""
        self._closed = True
        self._lookups.shutdown(wait=False, cancel_futures=True)
        for client in (*self._clients.values(), *self._pinned.values()):
            await client.close()
        self._clients.clear()
        self._pinned.clear()
        # The library's thread takes a moment to drop uploads that were cut short, and an interpreter that ends in that
        # very moment aborts.
        await asyncio.sleep(0.01)

    # ------------------------------------------------------------------------------------------ to configured origins

    async def send(
        self,
        request: Outgoing,
        *,
        total_seconds: float,
        first_byte_seconds: float | None = None,
        most_bytes: int = MOST_REPLY_BYTES,
    ) -> Reply:
        """One attempt; redirects and error statuses are replies like any other.

        A cancelled call returns at once, but the library holds its connection until the reply has begun to come, or a
        limit has passed.
        """
        exchange = self._prepared(request, total_seconds, first_byte_seconds).build_streamed()
        try:
            response = await exchange.__aenter__()
            headers = Headers(response.headers)
            try:
                return Reply(response.status, headers, await read(response.body_reader, headers, most_bytes))
            except BaseException:
                # Of a reply that was read to its end nothing is left to close, and each step there costs a call dearly.
                await exchange.__aexit__(None, None, None)
                raise
        except PyreqwestError as problem:
            raise outcome(problem) from None

    def stream(self, request: Outgoing, *, idle_seconds: float, total_seconds: float) -> Stream:
        """One attempt whose reply is read chunk by chunk; `idle_seconds` bounds each silence, the first included."""
        prepared = self._prepared(request, total_seconds, idle_seconds)
        # Without this the library gathers chunks for up to a second before it hands them on.
        return Stream(prepared.streamed_read_buffer_limit(0).build_streamed())

    def _prepared(self, request: Outgoing, total_seconds: float, silence_seconds: float | None) -> RequestBuilder:
        if self._closed:
            raise NotSent("the sender is closed")
        try:
            builder = self._client(silence_seconds).request(request.method, request.url).headers(request.headers)
            if request.form:
                builder = builder.multipart(_form(request.form))
            elif request.body:
                builder = builder.body_bytes(request.body)
            elif request.method != "GET":  # some servers insist on it, and the library leaves it out
                builder = builder.header("content-length", "0")
            return builder.timeout(_span(total_seconds))
        except (ValueError, PyreqwestError):
            # The library's words would quote the address or the header.
            raise NotSent("the request has an address or a header that cannot be sent") from None

    def _client(self, silence_seconds: float | None) -> Client:
        """The library knows a limit of silence only per client; the few limits in use get one each."""
        client = self._clients.get(silence_seconds)
        if client is None:
            builder = self._builder()
            if silence_seconds is not None:
                builder = builder.read_timeout(timedelta(seconds=silence_seconds))
            client = self._clients[silence_seconds] = _built(builder)
        return client

    def _builder(self) -> ClientBuilder:
        builder = (
            ClientBuilder()
            .no_proxy()  # the environment of the process has no say in where credentials go
            .follow_redirects(False)
            .referer(False)
            .gzip(False).brotli(False).zstd(False).deflate(False)
            .default_headers({"accept-encoding": "identity"})
            .user_agent(f"penstock/{__version__}")
            .connect_timeout(timedelta(seconds=_CONNECT_SECONDS))
            .pool_idle_timeout(timedelta(seconds=_IDLE_CONNECTION_SECONDS))
            .pool_timeout(timedelta(seconds=_CONNECT_SECONDS))
            .tcp_keepalive(timedelta(seconds=30))
        )  # fmt: skip
        if self._connections is not None:
            builder = builder.max_connections(self._connections)
        return builder.add_root_certificate_pem(self._ca) if self._ca else builder

    # ---------------------------------------------------------------------------------- to addresses that others chose

    async def fetch(
        self,
        url: str,
        *,
        most_bytes: int,
        total_seconds: float,
        egress: Egress = NO_EXCEPTIONS,
        redirects: int = 0,
        headers: Mapping[str, str] | None = None,
        sink: Sink | None = None,
    ) -> Fetched:
        """GET without credentials, following up to `redirects` of them by hand; a further one is returned as the reply.

        Only a 2xx reply goes to the sink. When this raises, the sink may hold a part.
        """
        deadline = time.monotonic() + total_seconds
        target, headers = _checked(url, egress), _without_credentials(headers or {})
        for hops_left in range(redirects, -1, -1):
            async with self._opened(Outgoing("GET", target.url, headers), target, egress, deadline) as response:
                location = Headers(response.headers).get("location")
                if hops_left == 0 or location is None or response.status not in _REDIRECTS:
                    return await keep(response, most_bytes, sink)
            following = _redirected(target, location, egress)
            if (target.host, target.port) != (following.host, following.port):
                headers = {}
            target = following
        raise AssertionError("the last hop returns")

    async def post_guarded(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        total_seconds: float,
        egress: Egress = NO_EXCEPTIONS,
        most_bytes: int = 16 * 2**10,
    ) -> int:
        """The status that a receiver answers; of its words no more is read than keeps the connection usable."""
        deadline = time.monotonic() + total_seconds
        target, headers = _checked(url, egress), _without_credentials(headers)
        async with self._opened(Outgoing("POST", target.url, headers, body), target, egress, deadline) as response:
            await response.body_reader.read(most_bytes)
            return response.status

    @asynccontextmanager
    async def _opened(
        self, outgoing: Outgoing, target: Target, egress: Egress, deadline: float
    ) -> AsyncIterator[Response]:
        """A reply from one of the addresses that passed the guard; the next is tried only while nothing was sent."""
        failure: NotSent | Unknown = NotSent("the name has no address")
        for address in (await self._addresses(target, egress, deadline))[:_MOST_ADDRESSES_TRIED]:
            request = _to(await self._client_for(target, address), outgoing, target, deadline)
            try:
                async with request as response:
                    yield response
                    return
            except PyreqwestError as problem:
                failure = outcome(problem)
            if not isinstance(failure, NotSent):
                break
        raise failure

    async def _addresses(self, target: Target, egress: Egress, deadline: float) -> list[str]:
        """Every address that the name has, each of them checked: one bad one among good ones is an attack."""
        if self._closed:
            raise NotSent("the sender is closed")
        if _is_literal(target.host):
            addresses = [target.host]
        else:
            try:
                async with asyncio.timeout(min(_LOOKUP_SECONDS, deadline - time.monotonic())):
                    addresses = await self._resolver(target.host, target.port)
            except OSError:  # TimeoutError among them
                raise NotSent("the name could not be looked up") from None
        for address in addresses:
            if not egress.permits(target.host, address):
                raise Refused
        for address in addresses:  # public ones are left; one of them may be this machine's
            if not egress.permits(target.host, address, own=True) and is_own(address):
                raise Refused
        return addresses

    async def _resolve(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        answers = await loop.run_in_executor(
            self._lookups, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(answer[4][0]) for answer in answers))

    async def _client_for(self, target: Target, address: str) -> Client:
        """A client that knows one name and one address for it, so that nothing is looked up a second time."""
        key = (target.host, address, target.port)
        client = self._pinned.pop(key, None)
        if client is None:
            builder = self._builder()
            if not _is_literal(target.host):
                builder = builder.resolve(target.host, address, target.port)
            client = await asyncio.to_thread(_built, builder)  # takes milliseconds
        self._pinned[key] = client
        if len(self._pinned) > _MOST_PINNED_CLIENTS:
            del self._pinned[next(iter(self._pinned))]  # requests under way on it are not disturbed
        return client


@lru_cache(64)
def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _built(builder: ClientBuilder) -> Client:
    try:
        return builder.build()
    except BuilderError:  # each client reads the system's certificates anew
        raise NotSent("the certificates to trust could not be read", local=True) from None


def _form(fields: tuple[tuple[str, str | Upload], ...]) -> FormBuilder:
    form = FormBuilder()
    for name, value in fields:
        if isinstance(value, str):
            form = form.text(name, value)
        else:
            part = PartBuilder.from_bytes(value.data).mime(value.content_type).file_name(value.filename)
            form = form.part(name, part)
    return form


def _checked(url: str, egress: Egress) -> Target:
    try:
        return check_fetch_url(url, egress)
    except InvalidRequest:
        raise Refused from None


def _redirected(target: Target, location: str, egress: Egress) -> Target:
    try:
        following = _checked(urljoin(target.url, location), egress)
    except ValueError:
        raise Refused from None
    if target.scheme == "https" and following.scheme == "http":
        raise Refused  # what was promised in private is not told in public
    return following


def _to(client: Client, outgoing: Outgoing, target: Target, deadline: float) -> StreamRequest:
    try:
        builder = client.request(outgoing.method, outgoing.url).headers(outgoing.headers)
    except ValueError:
        raise Refused from None
    if outgoing.body:
        # Of a receiver's words hardly any are wanted, so nothing is read ahead.
        builder = builder.body_bytes(outgoing.body).streamed_read_buffer_limit(0)
    request = builder.timeout(timedelta(seconds=max(deadline - time.monotonic(), 0.0))).build_streamed()
    if (request.url.host_str or "").strip("[]") != target.host:
        raise Refused  # two parsers that disagree are how guards are evaded
    return request


def _without_credentials(headers: Mapping[str, str]) -> Mapping[str, str]:
    if _CREDENTIALS & {name.lower() for name in headers}:
        raise ValueError("credentials never go to an address that somebody else chose")
    return headers


def _is_literal(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def is_own(address: str) -> bool:
    """Whether an IP address is this machine's: then the kernel would talk to it from that same address.

    Connecting a datagram socket only asks for the way there; nothing is sent.
    """
    parsed = ipaddress.ip_address(address)
    try:
        with socket.socket(socket.AF_INET if parsed.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect((str(parsed), 9))
            return ipaddress.ip_address(probe.getsockname()[0]) == parsed
    except OSError as problem:
        if problem.errno in (errno.EMFILE, errno.ENFILE):
            raise NotSent("out of file descriptors", local=True) from None
        return False  # there is no way there
