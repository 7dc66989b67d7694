"""Send HTTP requests and read their responses; every failure says whether the server may have received the request."""

import asyncio
import socket
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import urljoin

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import BuilderError, PyreqwestError
from pyreqwest.request import RequestBuilder

from penstock import __version__
from penstock.cache import Recent
from penstock.event_loop import low_priority_threads
from penstock.net.addresses import is_ip_address, is_own_address
from penstock.net.errors import NotSent, UrlBlocked
from penstock.net.form import encode_form
from penstock.net.guard import NO_EXCEPTIONS, CheckedUrl, EgressRules, check_fetch_url
from penstock.net.http1 import CONNECT_SECONDS, Exchange, Http1Client, TimeLimits
from penstock.net.lookups import PLACES, NameLookups, Resolver
from penstock.net.response import MAX_RESPONSE_BYTES, LibraryResponse, OpenResponse, Writer
from penstock.providers.spec import HttpRequest, Reply

_MAX_ERROR_BYTES = 64 * 2**10
_MAX_WEBHOOK_RESPONSE_BYTES = 16 * 2**10  # enough to use the connection again; the rest is not read
_LOOKUP_TIMEOUT_SECONDS = 5.0
# Shorter than most servers keep a connection, so that they seldom close one just as we send a paid request over it.
_IDLE_CONNECTION_SECONDS = 20.0
_MAX_PINNED_CLIENTS = 32
_MAX_ADDRESSES_TRIED = 3
_NO_ADDRESS = "the host name has no IP address"
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})


class HttpClient:
    """Sends every HTTP request of this process; create one and share it."""

    def __init__(self, *, ca_file: Path | None = None, resolver: Resolver | None = None) -> None:
        """Read the certificates; `ca_file` adds to those of the system. Raises ValueError when they cannot be used."""
        self._ca = ca_file.read_bytes() if ca_file else None
        self._clients: dict[float | None, Client] = {}
        self._pinned_clients: dict[tuple[str, str, int], Client] = {}
        # Lookups have threads of their own: those that hang must not block the default executor.
        self._lookup_threads = ThreadPoolExecutor(PLACES, thread_name_prefix="lookup")
        self._lookups = NameLookups(resolver or self._resolve)
        self._in_loop = Http1Client(self._addresses, self._ca, idle_seconds=_IDLE_CONNECTION_SECONDS)
        self._recent_addresses: Recent[tuple[str, int, EgressRules], list[str]] = Recent(time.monotonic)
        self._closed = False
        try:
            with low_priority_threads():  # the library starts its thread with the first client
                self._client(None)
        except NotSent:
            raise ValueError(f"the certificates of the system and of {ca_file} could not be read") from None

    async def close(self) -> None:
        """Close every connection. Requests that are under way fail with MaybeSent."""
        self._closed = True
        self._in_loop.close()
        await self._lookups.close()
        self._lookup_threads.shutdown(wait=False, cancel_futures=True)
        for client in (*self._clients.values(), *self._pinned_clients.values()):
            await client.close()
        self._clients.clear()
        self._pinned_clients.clear()
        # The library's thread takes a moment to drop unfinished uploads, and an interpreter that exits in that moment
        # aborts.
        await asyncio.sleep(0.01)

    # --------------------------------------------------------------------------------------- to configured providers

    async def send(
        self,
        request: HttpRequest,
        *,
        timeout_seconds: float,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> Reply:
        """Send a request once and read the whole response; redirects and error statuses are returned like any other.

        When it is cancelled, its connection is closed at once. Only for a request of an unusual kind, which the library
        sends, the connection is held until the response begins or the timeout has passed.
        """
        exchange = self._exchange(request, TimeLimits(timeout_seconds, timeout_seconds))
        async with exchange or self._through_library(request, timeout_seconds, None) as response:
            return Reply(response.status, response.headers, await response.read(max_bytes))

    def stream(
        self,
        request: HttpRequest,
        *,
        read_timeout_seconds: float,
        timeout_seconds: float,
    ) -> OpenResponse:
        """Send a request once and read the response chunk by chunk.

        `read_timeout_seconds` limits the wait for the response to begin and for each chunk.
        """
        exchange = self._exchange(request, TimeLimits(timeout_seconds, read_timeout_seconds))
        return exchange or self._through_library(request, timeout_seconds, read_timeout_seconds)

    def _exchange(self, request: HttpRequest, limits: TimeLimits, address: str = "") -> Exchange | None:
        """Prepare an exchange in the event loop; None if it must go through the library."""
        if self._closed:
            raise NotSent("the HTTP client is closed")
        return self._in_loop.exchange(request, limits, address)

    async def _addresses(self, host: str, port: int, seconds: float) -> list[str]:
        """Return the IP addresses of a provider's host, which no rule restricts: the operator has configured it."""
        if is_ip_address(host):
            return [host]
        return await self._lookups.look_up(host, port, share=host, seconds=seconds)

    def _through_library(
        self, request: HttpRequest, timeout_seconds: float, read_timeout_seconds: float | None
    ) -> LibraryResponse:
        try:
            builder = self._client(read_timeout_seconds).request(request.method, request.url).headers(request.headers)
            if request.form:
                content_type, form = encode_form(request.form)
                builder = builder.header("content-type", content_type).body_bytes(bytes(form))
            elif request.body:
                builder = builder.body_bytes(request.whole_body)
            elif request.method != "GET":  # some servers require it, and the library leaves it out
                builder = builder.header("content-length", "0")
            return _library_response(builder, timeout_seconds)
        except (ValueError, PyreqwestError):
            # The library's message would quote the URL or the header.
            raise NotSent("the request has a URL or a header that cannot be sent") from None

    def _client(self, read_timeout_seconds: float | None) -> Client:
        """Return the client with this read timeout: in the library it is a property of the client."""
        client = self._clients.get(read_timeout_seconds)
        if client is None:
            builder = self._client_builder()
            if read_timeout_seconds is not None:
                builder = builder.read_timeout(timedelta(seconds=read_timeout_seconds))
            client = self._clients[read_timeout_seconds] = _build_client(builder)
        return client

    def _client_builder(self) -> ClientBuilder:
        builder = (
            ClientBuilder()
            .no_proxy()  # proxy variables of the environment must not redirect credentials
            .follow_redirects(False)
            .referer(False)
            .gzip(False)
            .brotli(False)
            .zstd(False)
            .deflate(False)
            .default_headers({"accept-encoding": "identity"})
            .user_agent(f"penstock/{__version__}")
            .connect_timeout(timedelta(seconds=CONNECT_SECONDS))
            .pool_idle_timeout(timedelta(seconds=_IDLE_CONNECTION_SECONDS))
            .tcp_keepalive(timedelta(seconds=30))
        )
        return builder.add_root_certificate_pem(self._ca) if self._ca else builder

    # ------------------------------------------------------------------------------------ to URLs that others supplied

    async def fetch(
        self,
        url: str,
        *,
        max_bytes: int,
        timeout_seconds: float,
        egress: EgressRules = NO_EXCEPTIONS,
        max_redirects: int = 0,
        writer: Writer | None = None,
        share: str = "",
    ) -> Reply:
        """GET a URL without credentials; a redirect beyond `max_redirects` is returned as the response.

        The URL, each redirect and every IP address must pass the egress rules, or UrlBlocked is raised. Only the body
        of a 2xx response goes to the writer; when this raises, the writer may have received a part of it. Of any other
        body at most 64 KiB are read.

        `share` is the organization that this is done for: its lookups have a share of the places. Without one, the host
        has a share.
        """
        deadline = time.monotonic() + timeout_seconds
        target = check_fetch_url(url, egress)
        for redirects_left in range(max_redirects, -1, -1):
            request = HttpRequest("GET", target.url)
            addresses = await self._look_up(target, egress, deadline, share)
            async with aclosing(await self._send_guarded(request, target, addresses, deadline)) as response:
                location = response.headers.get("location")
                if redirects_left == 0 or location is None or response.status not in REDIRECT_STATUSES:
                    body = await _read_fetched(response, max_bytes, writer)
                    return Reply(response.status, response.headers, body)
            target = _redirect_target(target, location, egress)
        raise AssertionError("the last round returns")

    async def post_guarded(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout_seconds: float,
        egress: EgressRules = NO_EXCEPTIONS,
        share: str = "",
    ) -> int:
        """POST to a webhook receiver, checked like `fetch`, and return the status; the response body is dropped.

        IP addresses that were looked up and checked within the last second are used again.
        """
        deadline = time.monotonic() + timeout_seconds
        target = check_fetch_url(url, egress)
        if not _CREDENTIAL_HEADERS.isdisjoint(map(str.lower, headers)):
            raise ValueError("credentials are never sent to a URL that somebody else supplied")
        request = HttpRequest("POST", target.url, headers, body)
        place = (target.host, target.port, egress)
        addresses = self._recent_addresses.get(place)
        if addresses is None:
            addresses = await self._look_up(target, egress, deadline, share)
            self._recent_addresses.put(place, addresses)
        # Perhaps hundreds of receivers are connected to at once, so half of the time may pass.
        connect_seconds = max(CONNECT_SECONDS, timeout_seconds / 2)
        response = await self._send_guarded(request, target, addresses, deadline, connect_seconds)
        async with aclosing(response):
            await response.read_start(_MAX_WEBHOOK_RESPONSE_BYTES)
            return response.status

    async def put_guarded(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float, egress: EgressRules
    ) -> Reply:
        """PUT a file to a URL that a provider supplied, checked like `fetch`; the response body is dropped."""
        deadline = time.monotonic() + timeout_seconds
        target = check_fetch_url(url, egress)
        addresses = await self._look_up(target, egress, deadline, "")
        request = HttpRequest("PUT", target.url, headers, body)
        async with aclosing(await self._send_guarded(request, target, addresses, deadline)) as response:
            return Reply(response.status, response.headers)

    async def _send_guarded(
        self,
        request: HttpRequest,
        target: CheckedUrl,
        addresses: list[str],
        deadline: float,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> OpenResponse:
        """Send to the host's first IP address; to the next one only while nothing was sent. The caller closes the
        response.
        """
        if not addresses:
            raise NotSent(_NO_ADDRESS)
        *others, last = addresses[:_MAX_ADDRESSES_TRIED]
        for address in others:
            with suppress(NotSent):
                response = await self._guarded_response(request, target, address, deadline, connect_seconds)
                return await response.__aenter__()
        response = await self._guarded_response(request, target, last, deadline, connect_seconds)
        return await response.__aenter__()

    async def _guarded_response(
        self, request: HttpRequest, target: CheckedUrl, address: str, deadline: float, connect_seconds: float
    ) -> OpenResponse:
        """Prepare to send to this IP address: from the event loop if that is possible, because the library needs a
        client for each host, which takes ten milliseconds and several megabytes.
        """
        seconds = max(deadline - time.monotonic(), 0.0)
        exchange = self._exchange(request, TimeLimits(seconds, seconds, connect_seconds), address)
        if exchange is not None and exchange.origin.host == target.host:
            return exchange
        client = await self._pinned_client(target, address)
        return _guarded_through_library(client, request, target, max(deadline - time.monotonic(), 0.0))

    async def _look_up(self, target: CheckedUrl, egress: EgressRules, deadline: float, share: str) -> list[str]:
        """Return the host's IP addresses; raise UrlBlocked when the egress rules forbid any of them."""
        if self._closed:
            raise NotSent("the HTTP client is closed")
        if is_ip_address(target.host):
            addresses = [target.host]
        else:
            seconds = min(_LOOKUP_TIMEOUT_SECONDS, deadline - time.monotonic())
            addresses = await self._lookups.look_up(
                target.host, target.port, share=share or target.host, seconds=seconds
            )
        for address in addresses:
            if not egress.permits(target.host, address):
                raise UrlBlocked
        for address in addresses:  # only public ones are left, but this machine may have one of them
            if not egress.permits(target.host, address, own=True) and is_own_address(address):
                raise UrlBlocked
        return addresses

    async def _resolve(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        entries = await loop.run_in_executor(
            self._lookup_threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in entries))

    async def _pinned_client(self, target: CheckedUrl, address: str) -> Client:
        """Return a client that connects to this IP address and does not look the name up again."""
        key = (target.host, address, target.port)
        client = self._pinned_clients.pop(key, None)
        if client is None:
            builder = self._client_builder()
            if not is_ip_address(target.host):
                builder = builder.resolve(target.host, address, target.port)
            client = await asyncio.to_thread(_build_client, builder)  # takes milliseconds
        self._pinned_clients[key] = client
        if len(self._pinned_clients) > _MAX_PINNED_CLIENTS:
            del self._pinned_clients[next(iter(self._pinned_clients))]  # its requests under way are not disturbed
        return client


def _build_client(builder: ClientBuilder) -> Client:
    try:
        return builder.build()
    except BuilderError:  # each new client reads the certificates of the system
        raise NotSent("the trusted certificates could not be read", local=True) from None


def _redirect_target(target: CheckedUrl, location: str, egress: EgressRules) -> CheckedUrl:
    try:
        following = check_fetch_url(urljoin(target.url, location), egress)
    except ValueError:
        raise UrlBlocked from None
    if target.scheme == "https" and following.scheme == "http":
        raise UrlBlocked  # an encrypted request must not become a plain one
    return following


async def _read_fetched(response: OpenResponse, max_bytes: int, writer: Writer | None) -> bytes | bytearray:
    if not 200 <= response.status < 300:
        return await response.read_start(_MAX_ERROR_BYTES)
    if writer is None:
        return await response.read(max_bytes)
    await response.write_to(writer, max_bytes)
    return b""


def _library_response(builder: RequestBuilder, seconds: float) -> LibraryResponse:
    # Without the limit the library collects chunks for up to a second before it returns them.
    return LibraryResponse(builder.timeout(timedelta(seconds=seconds)).streamed_read_buffer_limit(0).build_streamed())


def _guarded_through_library(
    client: Client, request: HttpRequest, target: CheckedUrl, seconds: float
) -> LibraryResponse:
    try:
        builder = client.request(request.method, request.url).headers(request.headers)
    except ValueError:
        raise UrlBlocked from None
    if request.body:
        builder = builder.body_bytes(request.whole_body)
    response = _library_response(builder, seconds)
    if response.host != target.host:
        raise UrlBlocked  # the library reads another host from the URL than the guard checked
    return response
