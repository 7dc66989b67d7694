"""Show the settings in force, for operators."""

from penstock import settings
from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def list_settings(gateway: Gateway, call: Call) -> Response:
    """Return each setting, its value unless it may be secret, and where the value comes from."""
    return Response(json={"object": "list", "data": settings.in_force(gateway.settings)})
