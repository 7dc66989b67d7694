"""Tell whether this process runs, and whether it can take calls."""

from penstock.errors import Unavailable
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.store.database_time import describe_difference


async def alive(gateway: Gateway, call: Call) -> Response:
    """Return 200 as long as the process runs."""
    return Response(json={"status": "ok"})


async def ready(gateway: Gateway, call: Call) -> Response:
    """Return 200 if the process can take calls, else raise Unavailable. A clock that differs from the database's is a
    warning: calls work, but the times that callers see are wrong.
    """
    if not await gateway.ready():
        raise Unavailable("This process cannot take calls now.")
    difference = describe_difference(gateway.store, gateway.clock)
    return Response(json={"status": "ready", "warnings": [difference]} if difference else {"status": "ready"})
