"""A gateway in its own process that prints its port and an admin key, with calls that wait until they are released."""

import asyncio
import sys
from pathlib import Path

import uvloop

from penstock.api.asgi import AsgiApp
from penstock.api.route import Route
from penstock.api.routes import ROUTES
from penstock.gateway import Gateway
from penstock.http_server.server import listen, serve
from penstock.schema import Call, Response
from tests.api.accounts import first_account, opened


class Gate:
    """Endpoints of calls that wait until another call releases them."""

    def __init__(self) -> None:
        self._waiting = 0
        self._released = asyncio.Event()

    async def wait(self, gateway: Gateway, call: Call) -> Response:
        self._waiting += 1
        await self._released.wait()
        return Response(json={"waited": True})

    async def count(self, gateway: Gateway, call: Call) -> Response:
        return Response(json={"waiting": self._waiting})

    async def release(self, gateway: Gateway, call: Call) -> Response:
        self._released.set()
        return Response(status=204)


async def main(folder: Path, drain_seconds: float) -> None:
    gate = Gate()
    routes = (
        *ROUTES,
        Route("POST", "/wait", gate.wait, "Wait", access="open", generation=True, drains=True),
        Route("GET", "/waiting", gate.count, "Waiting calls", access="open"),
        Route("GET", "/release", gate.release, "Release", access="open"),
    )
    async with opened(
        folder, works=True, child_processes=True, drain_seconds=drain_seconds, starting_credit_usd="1000"
    ) as gateway:
        account = await first_account(gateway)
        listener = listen("127.0.0.1", 0)

        def ready() -> None:
            sys.stdout.write(f"{listener.getsockname()[1]} {account.admin.key}\n")
            sys.stdout.flush()

        await serve(AsgiApp(gateway, routes), gateway.settings, ready, listener=listener)
    sys.stdout.write("stopped\n")


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), float(sys.argv[2])))
