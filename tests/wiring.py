"""A sender and a scripted server for it, as the tests of the wire need them."""

import asyncio
import ssl
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trustme

from penstock.providers.spec import Outgoing
from penstock.wire import Wire
from tests.scripted import Peer, Script, Server, chunk, head, serve

SECRET = "sk-canary-4711"


@asynccontextmanager
async def wire(**settings: Any) -> AsyncIterator[Wire]:
    sender = Wire(**settings)
    try:
        yield sender
    finally:
        await sender.close()


@asynccontextmanager
async def against(script: Script, **settings: Any) -> AsyncIterator[tuple[Wire, Server]]:
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
