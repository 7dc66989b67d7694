"""Where providers call when a job has news."""

from penstock.gateway import Gateway
from penstock.schema import Answer, Call


async def receive(gateway: Gateway, call: Call) -> Answer:
    await gateway.callbacks.receive(call.path["provider"], call.path["token"], call.headers, call.body)
    return Answer(status=204)
