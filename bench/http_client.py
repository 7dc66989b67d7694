"""Measure the processor time of a request by the HTTP client, and compare it with aiohttp.

    python -m bench.http_client [--rounds 15] [--tls]

A server in another process responds; 64 requests are under way at a time. `loop` is the time of the event loop's
thread, which limits a gateway; `all` includes the library's own thread. Rounds alternate between the ways of sending,
and the median is shown, because other work on the machine disturbs single rounds. `send` and `stream` are those of the
gateway's client, which sends from the event loop itself, and aiohttp is there to compare them with.
"""

import argparse
import asyncio
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import trustme
import uvloop

from penstock.net.checked_urls import EgressRules
from penstock.net.client import HttpClient
from penstock.providers.spec import HttpRequest

CONCURRENCY = 64
SERVER = r"""
import asyncio, ssl, sys, uvloop

SMALL = b'{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}'
LARGE = bytes(2_700_000)
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: abc\r\nserver: bench\r\n"
    b"date: Sun, 15 Nov 2026 01:52:40 GMT\r\n"
)

def with_length(body):
    return HEAD + b"content-length: %d\r\n\r\n" % len(body) + body

def chunked(body, times):
    return HEAD + b"transfer-encoding: chunked\r\n\r\n" + (b"%x\r\n%b\r\n" % (len(body), body)) * times + b"0\r\n\r\n"

RESPONSES = {b"/small": with_length(SMALL), b"/chunked": chunked(SMALL, 1), b"/large": with_length(LARGE)}

class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        if data.startswith((b"POST ", b"GET ")):
            self.transport.write(RESPONSES[data.split(b" ", 2)[1]])

async def main():
    tls = None
    if len(sys.argv) > 1:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[1])
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, ssl=tls)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(3600)

uvloop.run(main())
"""
BODY = b'{"model":"m","messages":[{"role":"user","content":"How are you doing today, my friend?"}]}'
HEADERS = {"authorization": "Bearer sk-0123456789", "content-type": "application/json"}

Call = Callable[[], Awaitable[object]]


class NullWriter:
    """Drops what it is given."""

    def write(self, data: bytes) -> None:
        pass


def ways_to_send(
    origin: str, client: HttpClient, session: aiohttp.ClientSession, ca: Path | None
) -> dict[str, tuple[Call, int]]:
    """Each way of sending by its label, and how many requests make a round."""

    async def with_aiohttp(path: str) -> object:
        async with session.post(f"{origin}{path}", data=BODY, headers=HEADERS, allow_redirects=False) as response:
            return await response.read()

    async def send(path: str) -> object:
        request = HttpRequest("POST", f"{origin}{path}", HEADERS, BODY)
        return await client.send(request, timeout_seconds=60)

    async def stream(path: str) -> None:
        request = HttpRequest("POST", f"{origin}{path}", HEADERS, BODY)
        async with client.stream(request, read_timeout_seconds=30, timeout_seconds=60) as response:
            async for _ in response:
                pass

    async def fetch(path: str) -> object:
        return await client.fetch(
            f"{origin}{path}",
            egress=EgressRules(("127.0.0.0/8",)),
            max_bytes=2**30,
            timeout_seconds=60,
            writer=NullWriter(),
        )

    return {
        "send, small": (lambda: send("/small"), 3200),
        "aiohttp, small": (lambda: with_aiohttp("/small"), 3200),
        "send, chunked": (lambda: send("/chunked"), 3200),
        "stream, one chunk": (lambda: stream("/chunked"), 3200),
        "fetch, small": (lambda: fetch("/small"), 1280),
        "send, 2.7 MB": (lambda: send("/large"), 128),
        "fetch to a writer, 2.7 MB": (lambda: fetch("/large"), 128),
    }


async def measure(call: Call, calls: int) -> tuple[float, float, float]:
    """Return the microseconds for each call: of the event loop's thread, of the whole process, and of wall time."""

    async def repeat() -> None:
        for _ in range(calls // concurrency):
            await call()

    concurrency = min(CONCURRENCY, calls // 16)
    started = time.thread_time(), time.process_time(), time.perf_counter()
    await asyncio.gather(*(repeat() for _ in range(concurrency)))
    ended = time.thread_time(), time.process_time(), time.perf_counter()
    loop, whole, wall = ((after - before) / calls * 1e6 for before, after in zip(started, ended, strict=True))
    return loop, whole, wall


async def main(origin: str, rounds: int, ca: Path | None) -> None:
    client = HttpClient(ca_file=ca)
    trusted = ssl.create_default_context(cafile=ca) if ca else True
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=trusted), auto_decompress=False)
    ways = ways_to_send(origin, client, session, ca)
    if ca:  # fetches go to port 443 only
        ways = {name: way for name, way in ways.items() if not name.startswith("fetch")}
    results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, (call, calls) in ways.items():
            result = await measure(call, calls)
            if number:  # the first round opens connections
                results[name].append(result)
    print(f"{'µs a call':34}{'loop':>9}{'all':>9}{'wall':>9}")
    for name, rows in results.items():
        print(f"{name:34}" + "".join(f"{statistics.median(column):9.1f}" for column in zip(*rows, strict=True)))
    await session.close()
    await client.close()


def create_certificate(folder: Path) -> tuple[Path, Path]:
    """Create an authority and a certificate of it for this machine; return the file of each."""
    authority = trustme.CA()
    ca = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    certificate = folder / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    return ca, certificate


def run(rounds: int, is_tls: bool) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        ca, certificate = create_certificate(folder) if is_tls else (None, None)
        command = [sys.executable, "-c", SERVER, *([str(certificate)] if certificate else [])]
        server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(server.kill)
        assert server.stdout
        port = server.stdout.readline().strip()
        uvloop.run(main(f"{'https' if is_tls else 'http'}://127.0.0.1:{port}", rounds, ca))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tls", action="store_true", help="Encrypt the connections.")
    options = parser.parse_args()
    run(options.rounds, options.tls)
