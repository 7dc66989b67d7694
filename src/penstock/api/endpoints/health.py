"""Tell whether this process runs, and whether it can take calls."""

from penstock.errors import Unavailable
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.store.database_time import describe_difference

_CANNOT_STORE = "Files cannot be stored: images are refused, and finished videos wait."


async def alive(gateway: Gateway, call: Call) -> Response:
    """Return 200 as long as the process runs."""
    return Response(json={"status": "ok"})


async def ready(gateway: Gateway, call: Call) -> Response:
    """Return 200 if the process can take calls, else raise Unavailable.

    Warnings are of what does not keep all calls from working: a storage that takes no files, while chats go on, and a
    clock that differs from the database's, which callers see.
    """
    if not await gateway.ready():
        raise Unavailable("This process cannot take calls now.")
    warnings = [_CANNOT_STORE] if not await gateway.storage_writes.succeed() else []
    if difference := describe_difference(gateway.store, gateway.clock):
        warnings.append(difference)
    return Response(json={"status": "ready", "warnings": warnings} if warnings else {"status": "ready"})
