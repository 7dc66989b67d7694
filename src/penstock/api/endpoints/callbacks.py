"""Accept the callbacks that providers send about their jobs."""

from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def receive_callback(gateway: Gateway, call: Call) -> Response:
    """Check a callback and have its job polled at once."""
    await gateway.callbacks.receive(call.path["provider"], call.path["token"], call.headers, bytes(call.body))
    return Response(status=204)
