"""Measure the processor time of an empty authenticated JSON POST, compared with uvicorn alone.

python -m bench.http_server [--short]
"""

import asyncio
import os
import socket
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

CALLS = 20_000
ROUNDS = 3
CONNECTIONS = 8


class MinimalApp:
    """The least that an ASGI application can do: read the request and respond with as many bytes."""

    draining = False

    def interrupt(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """Nothing is left to do after the last call."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"13")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"made":true}'})


async def serve(kind: str, listener: socket.socket, keys: "Queue[Any]") -> None:
    from penstock.accounts.orgs import create_org
    from penstock.api.asgi import AsgiApp
    from penstock.api.route import Route
    from penstock.app.build import build_gateway
    from penstock.http_server.server import serve as serve_app
    from penstock.schema import Call, Response
    from penstock.settings import Settings

    async def endpoint(gateway: Any, call: Call) -> Response:
        return Response(json={"made": True})

    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        settings = Settings(data=Path(folder))
        gateway = await stack.enter_async_context(build_gateway(settings, environ={}))
        org = await create_org(gateway.store, gateway.clock, "bench", "prepaid")
        key = (await gateway.keys.create_key(org.id)).key
        keys.put(key)
        if kind == "uvicorn":
            app = MinimalApp()
            config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False, http="httptools")
            await uvicorn.Server(config).serve(sockets=[listener])
        else:
            route = Route("POST", "/compat/v1/bench", endpoint, "Bench", takes="json", generation=True, drains=True)
            measured = MinimalApp() if kind == "protocol" else AsgiApp(gateway, [route])
            await serve_app(measured, settings, lambda: None, listener=listener)


def run_server(kind: str, listener: socket.socket, keys: "Queue[Any]") -> None:
    uvloop.run(serve(kind, listener, keys))


async def load(port: int, key: str, calls: int) -> None:
    body = b"{}"
    request = (
        b"POST /compat/v1/bench HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n"
        b"user-agent: OpenAI/Python 3.49.0\r\ncontent-type: application/json\r\naccept-encoding: identity\r\n"
        b"authorization: Bearer " + key.encode() + b"\r\ncontent-length: 2\r\n\r\n" + body
    )

    async def send_requests() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(calls // CONNECTIONS):
            writer.write(request)
            response = await reader.readuntil(b"}")
            assert response.startswith(b"HTTP/1.1 200"), response
        writer.close()

    await asyncio.gather(*(send_requests() for _ in range(CONNECTIONS)))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(kind: str, rounds: int) -> float:
    """Return the microseconds of processor time of the server for one call, in the best of some rounds."""
    listener = socket.create_server(("127.0.0.1", 0))
    keys: Queue[Any] = Queue()
    process = Process(target=run_server, args=(kind, listener, keys), daemon=True)
    process.start()
    port = listener.getsockname()[1]
    key = keys.get(timeout=30)
    time.sleep(0.5)
    results = []
    for _ in range(rounds):
        before = cpu_seconds(process.pid or 0)
        uvloop.run(load(port, key, CALLS))
        results.append((cpu_seconds(process.pid or 0) - before) / CALLS * 1e6)
    process.terminate()
    process.join()
    return min(results)


def main(rounds: int) -> None:
    plain = measure("uvicorn", rounds)
    print(f"uvicorn alone         {plain:6.1f} µs a call")
    for kind in ("protocol", "application"):
        took = measure(kind, rounds)
        print(f"with our {kind:<12} {took:6.1f} µs a call, {took - plain:+.1f}")


if __name__ == "__main__":
    main(1 if "--short" in sys.argv else ROUNDS)
