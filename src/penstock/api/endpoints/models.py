"""List and retrieve models."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from penstock.api import query
from penstock.api.responses import encode
from penstock.api.route import Query
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.media.rows import ExampleRow, list_examples
from penstock.models.catalog import Catalog
from penstock.models.description import describe_found
from penstock.models.known_providers import KnownProviders
from penstock.schema import Call, Caller, Response

MODEL_QUERY = (
    Query(name="schema", type="boolean", default=False, about="Add each model's parameters as a JSON Schema."),
    Query(
        name="details",
        type="boolean",
        default=False,
        about="Add who serves each model and whether they are healthy, and an example output of your organization.",
    ),
)
MODELS_QUERY = (
    *MODEL_QUERY,
    Query(name="provider", about="Only models of this provider, and those of its own catalogue if it has one."),
    Query(
        name="off",
        type="boolean",
        default=False,
        about="Also list the models whose provider lacks a variable, each with `missing`: the variables by provider.",
    ),
    Query(name="search", about="Only models that have these words in their id or name."),
)
_WORDS_LENGTH_MAX = 200


async def list_models(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODELS_QUERY, call.query)
    of_servers = await gateway.server_models.describe_all(asked["schema"])
    if asked["provider"] or asked["search"]:
        return await _find_models(gateway, call, asked, of_servers)
    # All callers but those with a list of models or aliases get the same, and writing the schemas takes many
    # milliseconds.
    is_usual = call.caller.models is None and not call.caller.model_aliases
    if is_usual and not asked["details"] and not asked["off"]:
        encoded = await asyncio.to_thread(_encoded_models, gateway.catalog, gateway.catalog.providers, asked["schema"])
        together = b",".join([*encoded, *(encode(model) for model in of_servers)])
        return Response(body=b'{"object":"list","data":[%b]}' % together)
    listed = await asyncio.to_thread(_described_models, gateway.catalog, gateway.catalog.providers, asked["schema"])
    named = _with_aliases(call.caller, (*listed, *of_servers))
    models = [model for model in named if _may_use(call.caller, model)]
    models = await _with_details(gateway, call, models, asked["details"])
    return Response(json={"object": "list", "data": [*models, *await _off_models(gateway, call, asked)]})


async def _off_models(gateway: Gateway, call: Call, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The models that lack a variable, if they are wanted, as far as the caller may use them and they fit."""
    listed = await asyncio.to_thread(_described_off, gateway.catalog) if asked["off"] else ()
    usable = (model for model in listed if call.caller.may_use(model["id"]))
    return [model for model in usable if _fits(model, asked["provider"], asked["search"] or "")]


async def _find_models(
    gateway: Gateway, call: Call, asked: dict[str, Any], of_servers: list[dict[str, Any]]
) -> Response:
    """Return the models that fit; with a provider, also those that only its own catalogue has, without a schema."""
    provider, words = asked["provider"], asked["search"] or ""
    if provider and provider not in gateway.catalog.providers.known:
        raise InvalidRequest(f"`provider` is `{provider}`, which this gateway does not know.", param="provider")
    if len(words) > _WORDS_LENGTH_MAX:
        raise InvalidRequest(f"`search` may have at most {_WORDS_LENGTH_MAX} characters.", param="search")
    listed = await asyncio.to_thread(_described_models, gateway.catalog, gateway.catalog.providers, asked["schema"])
    named = _with_aliases(call.caller, (*listed, *of_servers))
    models = [model for model in named if _may_use(call.caller, model) and _fits(model, provider, words)]
    models = await _with_details(gateway, call, models, asked["details"])
    if provider and gateway.live_models.has_catalogue(provider):
        found = await gateway.live_models.search(provider, words, call.caller.org_id)
        described = (describe_found(provider, model) for model in found)
        models += [
            model
            for model in described
            if call.caller.may_use(model["id"]) and not gateway.catalog.has_table(model["id"])
        ]
    return Response(json={"object": "list", "data": [*models, *await _off_models(gateway, call, asked)]})


def _with_aliases(caller: Caller, models: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Models as calls of the organization get them: an alias takes the place of a model with its name."""
    by_id = {model["id"]: model for model in models}
    of_aliases = sorted(caller.model_aliases.items())
    return [model for model in models if model["id"] not in caller.model_aliases] + [
        _named(by_id[model], alias) for alias, model in of_aliases if model in by_id
    ]


def _named(model: dict[str, Any], alias: str) -> dict[str, Any]:
    return {**model, "id": alias, "alias_of": model["id"]}


def _may_use(caller: Caller, model: dict[str, Any]) -> bool:
    return caller.may_use(model["id"]) or ("alias_of" in model and caller.may_use(model["alias_of"]))


def _fits(model: dict[str, Any], provider: str | None, words: str) -> bool:
    text = f"{model['id']} {model['name']}".lower()
    return (not provider or provider in model["providers"]) and all(word in text for word in words.lower().split())


@lru_cache(maxsize=2)
def _encoded_models(catalog: Catalog, providers: KnownProviders, schema: bool) -> list[bytes]:
    return [encode(model) for model in _described_models(catalog, providers, schema)]


@lru_cache(maxsize=2)
def _described_models(catalog: Catalog, providers: KnownProviders, schema: bool) -> tuple[dict[str, Any], ...]:
    """All models; `providers` are those of the catalog, which change when the first account of a provider is added."""
    return tuple(catalog.describe_all(schema))


def _described_off(catalog: Catalog) -> tuple[dict[str, Any], ...]:
    return tuple(catalog.describe_off())


async def retrieve_model(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MODEL_QUERY, call.query)
    name = call.path["model"]
    model = call.caller.model_aliases.get(name, name)
    if call.caller.may_use(name) or call.caller.may_use(model):
        await gateway.live_models.prepare(model, call.caller.org_id)
    described = await gateway.server_models.describe(model, asked["schema"])
    if name in call.caller.model_aliases:
        described = _named(described, name)
    return Response(json=(await _with_details(gateway, call, [described], asked["details"]))[0])


async def _with_details(
    gateway: Gateway, call: Call, models: list[dict[str, Any]], wanted: bool
) -> list[dict[str, Any]]:
    """Return models with who serves them and an example, if that is wanted."""
    if not wanted:
        return models
    now_ms = gateway.clock.now_ms()
    org_id = call.caller.org_id
    ids = [model.get("alias_of", model["id"]) for model in models]
    outputs = await list_examples(gateway.store, ids, org_id, now_ms)
    examples = {output.model: await _example(gateway, call, output) for output in outputs}
    return [
        {
            **model,
            "serving": gateway.routing.describe(model_id),
            "example": examples.get(model_id),
        }
        for model_id, model in zip(ids, models, strict=True)
    ]


async def _example(gateway: Gateway, call: Call, output: ExampleRow) -> dict[str, Any]:
    until_ms = min(output.expires_at_ms, gateway.clock.now_ms() + gateway.settings.url_seconds * 1000)
    return {
        "request_id": output.request_id,
        "url": await gateway.media.signed_url(output.id, until_ms, call.base_url),
        "thumbnail_url": gateway.media.thumbnail_url(output.id, output.content_type, until_ms, call.base_url),
        "content_type": output.content_type,
        "width": output.width,
        "height": output.height,
    }
