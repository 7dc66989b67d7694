"""List the settings in force, for operators."""

from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.settings.description import in_force


async def list_settings(gateway: Gateway, call: Call) -> Response:
    return Response(json={"object": "list", "data": in_force(gateway.settings)})
