"""Where providers call when a job has news."""

from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def receive(gateway: Gateway, call: Call) -> Response:
    await gateway.callbacks.receive(call.path["provider"], call.path["token"], call.headers, call.body)
    return Response(status=204)
