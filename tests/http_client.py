"""An HTTP client, scripted servers for it, and a fake name service."""

import asyncio
import random
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trustme

from penstock.net.checked_urls import EgressRules
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.spec import HttpRequest, Reply
from tests.tcp_server import Connection, Script, TcpServer, chunk, response_head, serve

SECRET = "sk-canary-4711"


@asynccontextmanager
async def open_client(**settings: Any) -> AsyncIterator[HttpClient]:
    client = HttpClient(**settings)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def client_and_server(script: Script, **settings: Any) -> AsyncIterator[tuple[HttpClient, TcpServer]]:
    async with serve(script) as server, open_client(**settings) as client:
        yield client, server


def post_request(server: TcpServer, body: bytes = b'{"a":1}') -> HttpRequest:
    headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
    return HttpRequest("POST", f"{server.url}/v1/make?key={SECRET}", headers, body)


def server_tls(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    """The TLS context of a server with a certificate for these names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


def full_text(error: BaseException) -> str:
    """Everything that a log could show of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


# -------------------------------------------------------------------------------------------------------------- scripts


async def cut_body_of_known_length(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("content-length: 100") + b"abc")


async def cut_chunked_body(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("transfer-encoding: chunked") + chunk(b"abc"))


async def never_respond(connection: Connection) -> None:
    await connection.read_request()
    await connection.wait_closed()


def responding(body: bytes = b"image", *headers: str, status: int = 200) -> Script:
    async def script(connection: Connection) -> None:
        while True:
            await connection.read_request()
            await connection.respond(body, *headers, status=status)

    return script


# -------------------------------------------------------------------------------------------------------- guarded calls

LOOPBACK = EgressRules(("127.0.0.0/8",))
MIB = 2**20


class FakeResolver:
    """A name service that returns the given results in turn; the last one is repeated."""

    def __init__(self, *results: list[str] | OSError) -> None:
        self._results = list(results)
        self.hosts: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.hosts.append(host)
        result = self._results.pop(0) if len(self._results) > 1 else self._results[0]
        if isinstance(result, OSError):
            raise result
        return result


def random_loopback() -> str:
    """A random address of 127.0.0.0/8, so that tests that run at the same time can all use port 8443."""
    return f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"


async def fetch(client: HttpClient, url: str, **settings: Any) -> Reply:
    defaults: dict[str, Any] = {"egress": LOOPBACK, "max_bytes": MIB, "timeout_seconds": 10}
    return await client.fetch(url, **defaults | settings)


async def post_guarded(client: HttpClient, url: str, **settings: Any) -> int:
    defaults: dict[str, Any] = {"egress": LOOPBACK, "timeout_seconds": 10}
    return await client.post_guarded(url, b"{}", {"webhook-id": "msg_1"}, **defaults | settings)


# Both are guarded by the same rules.
fetch_and_post = pytest.mark.parametrize("call", [fetch, post_guarded])


async def timeout_of(call: Callable[[], Awaitable[object]]) -> MaybeSent:
    """The failure of a call that is sent to a silent server and has a short limit of time.

    On a busy machine that time may pass before there is a connection; such a call is made again.
    """
    for _ in range(20):
        with suppress(NotSent):
            with pytest.raises(MaybeSent) as failure:
                await call()
            assert failure.value.timeout
            return failure.value
    raise AssertionError("nothing was sent")
