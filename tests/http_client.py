"""A sender and a scripted server for it, as the tests of the wire need them."""

import asyncio
import random
import ssl
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

from penstock.net.client import HttpClient
from penstock.net.guard import Egress
from penstock.providers.spec import Outgoing
from tests.tcp_server import Peer, Script, Server, chunk, head, serve

SECRET = "sk-canary-4711"


@asynccontextmanager
async def wire(**settings: Any) -> AsyncIterator[HttpClient]:
    sender = HttpClient(**settings)
    try:
        yield sender
    finally:
        await sender.close()


@asynccontextmanager
async def against(script: Script, **settings: Any) -> AsyncIterator[tuple[HttpClient, Server]]:
    async with serve(script) as server, wire(**settings) as sender:
        yield sender, server


def post(server: Server, body: bytes = b'{"a":1}') -> Outgoing:
    headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
    return Outgoing("POST", f"{server.url}/v1/make?key={SECRET}", headers, body)


def certified(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while True:
            if met():
                return
            await asyncio.sleep(0.005)


async def settled(number: Callable[[], int]) -> int:
    """A number once it has stopped growing."""
    async with asyncio.timeout(10):
        before = -1
        while (now := number()) != before:
            before = now
            await asyncio.sleep(0.1)
    return now


def everything_told(problem: BaseException) -> str:
    return "".join(traceback.format_exception(problem)) + repr(problem) + repr(vars(problem))


# -------------------------------------------------------------------------------------------------------------- scripts


async def cuts_a_body_of_known_length(peer: Peer) -> None:
    await peer.request()
    await peer.send(head("content-length: 100") + b"abc")


async def cuts_a_chunked_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(head("transfer-encoding: chunked") + chunk(b"abc"))


async def stalls(peer: Peer) -> None:
    await peer.request()
    await peer.gone()


# -------------------------------------------------------------------------------------------------------------- guarded

LOOPBACK = Egress(("127.0.0.0/8",))
MIB = 2**20


class Names:
    """A name service that answers what the test says, in turn; the last answer stays."""

    def __init__(self, *answers: list[str] | OSError) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer


def own_loopback() -> str:
    """Any of 127/8 is ours, so that tests side by side can all have port 8443."""
    return f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"


def answering(body: bytes = b"picture", *headers: str, status: int = 200) -> Script:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.reply(body, *headers, status=status)

    return script


async def fetched(sender: HttpClient, url: str, **settings: Any) -> Any:
    defaults: dict[str, Any] = {"egress": LOOPBACK, "most_bytes": MIB, "total_seconds": 10}
    return await sender.fetch(url, **defaults | settings)


async def posted(sender: HttpClient, url: str, **settings: Any) -> int:
    defaults: dict[str, Any] = {"egress": LOOPBACK, "total_seconds": 10}
    return await sender.post_guarded(url, b"{}", {"webhook-id": "msg_1"}, **defaults | settings)


# A fetch and a delivery go the same guarded way.
both_ways = pytest.mark.parametrize("go", [fetched, posted])
