"""A gateway in a process of its own, with an endpoint that takes its time."""

import asyncio
import sys
from pathlib import Path

import uvloop

from penstock.api.edge import Edge
from penstock.api.routes import ROUTES
from penstock.api.server import listen, serve
from penstock.api.spec import Route
from penstock.gateway import Gateway
from penstock.schema import Answer, Call
from tests.api.gateways import opened


async def slow(gateway: Gateway, call: Call) -> Answer:
    await asyncio.sleep(float(call.query["seconds"]))
    return Answer(json={"slept": True})


async def main(folder: Path, drain_seconds: float) -> None:
    routes = (*ROUTES, Route("POST", "/slow", slow, "Slow", access="open", generation=True, drains=True))
    async with opened(folder, drain_seconds=drain_seconds) as gateway:
        await gateway.auth.begin("prepaid", _no_credit)
        listener = listen("127.0.0.1", 0)

        def ready() -> None:
            sys.stdout.write(f"{listener.getsockname()[1]}\n")
            sys.stdout.flush()

        await serve(Edge(gateway, routes), gateway.settings, ready, listener=listener)
    sys.stdout.write("left in peace\n")


async def _no_credit(tx: object, org_id: str) -> None:
    return None


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), float(sys.argv[2])))
