"""Every provider that this gateway knows, and how the calls to it went."""

from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def list_providers(gateway: Gateway, call: Call) -> Response:
    health: dict[object, list[dict[str, object]]] = {}
    for row in gateway.health.report():
        health.setdefault(row["provider"], []).append(row)
    data = [{**one, "health": health.get(one["id"], [])} for one in gateway.catalog.providers()]
    return Response(json={"object": "list", "data": data})
