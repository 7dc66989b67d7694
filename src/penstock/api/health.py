"""Tell whether this process runs, and whether it can take calls."""

from penstock.errors import Unavailable
from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def alive(gateway: Gateway, call: Call) -> Response:
    """Return 200 as long as the process runs."""
    return Response(json={"status": "ok"})


async def ready(gateway: Gateway, call: Call) -> Response:
    """Return 200 if the process can take calls, else raise Unavailable."""
    if not await gateway.ready():
        raise Unavailable("This process cannot take calls now.")
    return Response(json={"status": "ready"})
