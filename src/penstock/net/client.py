"""Send HTTP requests and read their responses; every failure says whether the server may have received the request."""

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path
from urllib.parse import urljoin

import msgspec

from penstock.cache import Recent
from penstock.net.addresses import is_ip_address, is_own_address
from penstock.net.checked_urls import NO_EXCEPTIONS, CheckedUrl, EgressRules, check_fetch_url
from penstock.net.errors import NotSent, UrlBlocked
from penstock.net.http1 import CONNECT_SECONDS, Exchange, Http1Client, TimeLimits
from penstock.net.lookups import PLACES, NameLookups, Resolver
from penstock.net.response import MAX_RESPONSE_BYTES, OpenResponse, Writer
from penstock.net.tls import add_certificates
from penstock.providers.spec import HttpRequest, Reply

_MAX_ERROR_BYTES = 64 * 2**10
_MAX_WEBHOOK_RESPONSE_BYTES = 16 * 2**10  # enough to use the connection again; the rest is not read
_LOOKUP_TIMEOUT_SECONDS = 5.0
# Shorter than most servers keep a connection, so that they seldom close one just as we send a paid request over it.
_IDLE_CONNECTION_SECONDS = 20.0
_MAX_ADDRESSES_TRIED = 3
_NO_ADDRESS = "the host name has no IP address"
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})


class HttpClient:
    """Sends every HTTP request of this process; create one and share it."""

    def __init__(self, *, ca_file: Path | None = None, resolver: Resolver | None = None) -> None:
        """Read the certificates; `ca_file` adds to those of the system. Raises ValueError when they cannot be used."""
        ca = ca_file.read_bytes() if ca_file else None
        if ca is not None:
            try:
                add_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ca)
            except ValueError:
                raise ValueError(f"{ca_file} has no certificates in PEM, or damaged ones") from None
        # Lookups have threads of their own: those that hang must not block the default executor.
        self._lookup_threads = ThreadPoolExecutor(PLACES, thread_name_prefix="lookup")
        self._lookups = NameLookups(resolver or self._resolve)
        self._in_loop = Http1Client(self._addresses, ca, idle_seconds=_IDLE_CONNECTION_SECONDS)
        self._recent_addresses: Recent[tuple[str, int, EgressRules], list[str]] = Recent(time.monotonic)
        self._closed = False

    async def close(self) -> None:
        """Close every connection. Requests that are under way fail with MaybeSent."""
        self._closed = True
        self._in_loop.close()
        await self._lookups.close()
        self._lookup_threads.shutdown(wait=False, cancel_futures=True)

    # --------------------------------------------------------------------------------------- to configured providers

    async def send(
        self,
        request: HttpRequest,
        *,
        timeout_seconds: float,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> Reply:
        """Send a request once and read the whole response; redirects and error statuses are returned like any other.

        When it is cancelled, its connection is closed at once.
        """
        response = await self._exchange(request, TimeLimits(timeout_seconds, timeout_seconds)).__aenter__()
        try:
            body = response.take_whole(max_bytes)
            return Reply(response.status, response.headers, await response.read(max_bytes) if body is None else body)
        finally:
            response.close()

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
        return self._exchange(request, TimeLimits(timeout_seconds, read_timeout_seconds))

    def _exchange(self, request: HttpRequest, limits: TimeLimits, address: str = "") -> Exchange:
        if self._closed:
            raise NotSent("the HTTP client is closed")
        return self._in_loop.exchange(request, limits, address)

    async def _addresses(self, host: str, port: int, seconds: float) -> list[str]:
        """Return the IP addresses of a provider's host, which no rule restricts: the operator has configured it."""
        if is_ip_address(host):
            return [host]
        return await self._lookups.look_up(host, port, share=host, seconds=seconds)

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

    async def send_guarded(
        self, request: HttpRequest, *, timeout_seconds: float, egress: EgressRules, share: str = ""
    ) -> Reply:
        """Send a request to a URL that a provider or an organization supplied, checked like `fetch`. Redirects are
        returned like any other response; of its body at most 64 KiB are read.
        """
        deadline = time.monotonic() + timeout_seconds
        target = check_fetch_url(request.url, egress)
        addresses = await self._look_up(target, egress, deadline, share)
        checked = msgspec.structs.replace(request, url=target.url)
        async with aclosing(await self._send_guarded(checked, target, addresses, deadline)) as response:
            return Reply(response.status, response.headers, await response.read_start(_MAX_ERROR_BYTES))

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
                return await self._guarded_exchange(request, target, address, deadline, connect_seconds).__aenter__()
        return await self._guarded_exchange(request, target, last, deadline, connect_seconds).__aenter__()

    def _guarded_exchange(
        self, request: HttpRequest, target: CheckedUrl, address: str, deadline: float, connect_seconds: float
    ) -> Exchange:
        """Prepare to send to this IP address."""
        seconds = max(deadline - time.monotonic(), 0.0)
        exchange = self._exchange(request, TimeLimits(seconds, seconds, connect_seconds), address)
        if exchange.origin.host != target.host:  # another host than the guard has checked
            raise UrlBlocked
        return exchange

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
