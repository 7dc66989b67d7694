"""Whether this process lives, and whether it can take calls."""

from penstock.errors import Unavailable
from penstock.gateway import Gateway
from penstock.schema import Answer, Call


async def alive(gateway: Gateway, call: Call) -> Answer:
    return Answer(json={"status": "ok"})


async def ready(gateway: Gateway, call: Call) -> Answer:
    if not await gateway.ready():
        raise Unavailable("This process takes no calls now.")
    return Answer(json={"status": "ready"})
