"""List and retrieve models."""

from penstock.api import query
from penstock.api.route import Query
from penstock.gateway import Gateway
from penstock.schema import Call, Response

MODELS_QUERY = (
    Query(name="schema", type="boolean", default=False, about="Add each model's parameters as a JSON Schema."),
)


async def list_models(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODELS_QUERY, call.query)
    return Response(json={"object": "list", "data": gateway.catalog.list(asked["schema"])})


async def retrieve_model(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODELS_QUERY, call.query)
    return Response(json=gateway.catalog.describe(call.path["model"], asked["schema"]))
