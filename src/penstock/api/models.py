"""List and retrieve models."""

import asyncio
from functools import lru_cache
from typing import Any

from penstock.api import query
from penstock.api.responses import encode
from penstock.api.route import Query
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.store.base import Row
from penstock.store.related import read_related
from penstock.upstream.catalog import Catalog

MODELS_QUERY = (
    Query(name="schema", type="boolean", default=False, about="Add each model's parameters as a JSON Schema."),
    Query(
        name="details",
        type="boolean",
        default=False,
        about="Add who serves each model and whether they are healthy, and an example output of your organization.",
    ),
)


async def list_models(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODELS_QUERY, call.query)
    of_servers = await gateway.server_models.describe_all(asked["schema"])
    # All callers but those with a list of models get the same, and writing the schemas takes many milliseconds.
    if call.caller.models is None and not asked["details"]:
        encoded = await asyncio.to_thread(_encoded_models, gateway.catalog, asked["schema"])
        together = b",".join([*encoded, *(encode(model) for model in of_servers)])
        return Response(body=b'{"object":"list","data":[%b]}' % together)
    listed = await asyncio.to_thread(_list, gateway.catalog, asked["schema"])
    models = [model for model in (*listed, *of_servers) if call.caller.may_use(model["id"])]
    return Response(json={"object": "list", "data": await _detailed(gateway, call, models, asked["details"])})


@lru_cache(maxsize=2)
def _encoded_models(catalog: Catalog, schema: bool) -> list[bytes]:
    return [encode(model) for model in _list(catalog, schema)]


@lru_cache(maxsize=2)
def _list(catalog: Catalog, schema: bool) -> tuple[dict[str, Any], ...]:
    return tuple(catalog.list(schema))


async def retrieve_model(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODELS_QUERY, call.query)
    described = await gateway.server_models.describe(call.path["model"], asked["schema"])
    return Response(json=(await _detailed(gateway, call, [described], asked["details"]))[0])


async def _detailed(gateway: Gateway, call: Call, models: list[dict[str, Any]], wanted: bool) -> list[dict[str, Any]]:
    """Return models with who serves them and an example, if that is wanted."""
    if not wanted:
        return models
    now_ms = gateway.clock.now_ms()
    org_id = call.caller.org_id
    ids = [model["id"] for model in models]
    rows = await read_related(gateway.store, "list_examples_of_models", ids, org_id=org_id, now_ms=now_ms)
    examples = {row["model"]: await _example(gateway, call, row) for row in rows}
    return [
        {
            **model,
            "serving": gateway.catalog.serving(model["id"], gateway.health.is_healthy),
            "example": examples.get(model["id"]),
        }
        for model in models
    ]


async def _example(gateway: Gateway, call: Call, row: Row) -> dict[str, Any]:
    until_ms = min(row["expires_at_ms"], gateway.clock.now_ms() + gateway.settings.url_seconds * 1000)
    return {
        "request_id": row["request_id"],
        "url": await gateway.media.signed_url(row["id"], until_ms, call.base_url),
        "content_type": row["content_type"],
        "width": row["width"],
        "height": row["height"],
    }
