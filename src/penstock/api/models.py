"""List and retrieve models."""

import asyncio
from functools import lru_cache
from typing import Any

from penstock.api import query
from penstock.api.responses import encode
from penstock.api.route import Query
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.upstream.catalog import Catalog

MODELS_QUERY = (
    Query(name="schema", type="boolean", default=False, about="Add each model's parameters as a JSON Schema."),
)


async def list_models(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODELS_QUERY, call.query)
    # All callers but those with a list of models get the same, and writing the schemas takes many milliseconds.
    if call.caller.models is None:
        return Response(body=await asyncio.to_thread(_encoded_list, gateway.catalog, asked["schema"]))
    listed = await asyncio.to_thread(_list, gateway.catalog, asked["schema"])
    return Response(json={"object": "list", "data": [model for model in listed if call.caller.may_use(model["id"])]})


@lru_cache(maxsize=2)
def _encoded_list(catalog: Catalog, schema: bool) -> bytes:
    return encode({"object": "list", "data": _list(catalog, schema)})


@lru_cache(maxsize=2)
def _list(catalog: Catalog, schema: bool) -> tuple[dict[str, Any], ...]:
    return tuple(catalog.list(schema))


async def retrieve_model(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODELS_QUERY, call.query)
    return Response(json=gateway.catalog.describe(call.path["model"], asked["schema"]))
