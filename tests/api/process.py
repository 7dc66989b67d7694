"""A gateway in a process of its own, with an endpoint that takes its time; it writes its port and an admin key."""

import asyncio
import sys
from pathlib import Path

import uvloop

from penstock.api.asgi import AsgiApp
from penstock.api.route import Route
from penstock.api.routes import ROUTES
from penstock.api.server import listen, serve
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from tests.api.accounts import first_account, opened


async def slow(gateway: Gateway, call: Call) -> Response:
    await asyncio.sleep(float(call.query["seconds"]))
    return Response(json={"slept": True})


async def main(folder: Path, drain_seconds: float) -> None:
    routes = (*ROUTES, Route("POST", "/slow", slow, "Slow", access="open", generation=True, drains=True))
    async with opened(folder, drain_seconds=drain_seconds, starting_credit_usd="1000", works=True) as gateway:
        account = await first_account(gateway)
        listener = listen("127.0.0.1", 0)

        def ready() -> None:
            sys.stdout.write(f"{listener.getsockname()[1]} {account.admin.key}\n")
            sys.stdout.flush()

        await serve(AsgiApp(gateway, routes), gateway.settings, ready, listener=listener)
    sys.stdout.write("left in peace\n")


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), float(sys.argv[2])))
