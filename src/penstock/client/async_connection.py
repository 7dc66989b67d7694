"""Send calls to a gateway from an event loop, over connections that are kept, and read its responses."""

import json
from asyncio import sleep
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

from penstock.client.calls import Call
from penstock.client.connection import LONGEST_CALL_SECONDS, Reply, check_url, decoded, request_headers
from penstock.client.failures import CallFailed, NotConnected, refusal
from penstock.client.retries import retry_pause
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import OpenResponse
from penstock.providers.spec import HttpRequest

_ERROR_BYTES = 1024 * 1024


class AsyncConnection:
    """Sends the calls of one key to one gateway."""

    def __init__(self, url: str, key: str, *, headers: Mapping[str, str] | None, timeout: float) -> None:
        """`headers` go with every call; `timeout` is how many seconds may pass without a byte."""
        self.url = check_url(url)
        self._key = key
        self._headers = headers or {}
        self._timeout = timeout
        self._http = HttpClient()

    async def close(self) -> None:
        await self._http.close()

    async def send(self, call: Call, retries: int = 0) -> Reply:
        """Send a call, again if it may be repeated, and read the JSON of its response. Raises CallFailed."""
        tries = 0
        while True:
            try:
                return await self._send_once(call)
            except CallFailed as failure:
                tries += 1
                pause = retry_pause(call, failure, tries, retries)
                if pause is None:
                    raise
            await sleep(pause)

    async def _send_once(self, call: Call) -> Reply:
        async with self._open(self._request(call)) as response:
            return decoded(self.url, await response.read(), response.headers)

    async def stream(self, call: Call) -> AsyncGenerator[bytes, None]:
        """Send a call once, and yield the bytes of the body as they arrive. Raises CallFailed."""
        async with aclosing(self._stream(self._request(call))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def stream_file(self, url: str) -> AsyncGenerator[bytes, None]:
        """The same for the file at a signed URL, which needs no key and gets none."""
        async with aclosing(self._stream(HttpRequest("GET", check_url(url)))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _stream(self, request: HttpRequest) -> AsyncGenerator[bytes, None]:
        async with self._open(request) as response:
            async for chunk in response:
                yield chunk

    def _request(self, call: Call) -> HttpRequest:
        headers = request_headers(call, self._key, self._headers)
        return HttpRequest(
            call.method, self.url + call.path, headers, b"" if call.body is None else json.dumps(call.body).encode()
        )

    @asynccontextmanager
    async def _open(self, request: HttpRequest) -> AsyncIterator[OpenResponse]:
        stream = self._http.stream(
            request, read_timeout_seconds=self._timeout, timeout_seconds=max(self._timeout, LONGEST_CALL_SECONDS)
        )
        try:
            async with stream as response:
                if response.status >= 300:
                    raise refusal(response.status, await response.read_start(_ERROR_BYTES), response.headers)
                yield response
        except NotSent as problem:
            raise NotConnected(
                f"no gateway answers at {self.url}: {problem}; start one with `penstock serve`, or name another URL"
            ) from None
        except MaybeSent as problem:
            raise NotConnected(f"the call to {self.url} failed: {problem}") from None
