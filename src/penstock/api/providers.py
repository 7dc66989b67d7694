"""List providers with the health of their models."""

from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def list_providers(gateway: Gateway, call: Call) -> Response:
    """Return every provider that this gateway knows, on or off, and how the calls to it went."""
    health: dict[object, list[dict[str, object]]] = {}
    for row in gateway.health.report():
        health.setdefault(row["provider"], []).append(row)
    data = [{**provider, "health": health.get(provider["id"], [])} for provider in gateway.catalog.providers()]
    return Response(json={"object": "list", "data": data})
