"""Whether this process lives, and whether it can take calls."""

from penstock.errors import Unavailable
from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def alive(gateway: Gateway, call: Call) -> Response:
    return Response(json={"status": "ok"})


async def ready(gateway: Gateway, call: Call) -> Response:
    if not await gateway.ready():
        raise Unavailable("This process takes no calls now.")
    return Response(json={"status": "ready"})
