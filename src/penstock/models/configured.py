"""Providers, models and prices that an operator describes in penstock.toml instead of code."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from penstock.models import own_models
from penstock.models.config_tables import (
    MAX_N,
    AddedModel,
    KnownProviderModel,
    ModelChanges,
    ModelTable,
    Prices,
    PriceTable,
    ProviderChanges,
    ProviderTable,
)
from penstock.providers.openai_compatible import OPERATIONS, error_message, failure_kind
from penstock.providers.spec import (
    LiveCatalogue,
    Model,
    Operation,
    OwnModel,
    Price,
    Provider,
    Source,
    Task,
    bearer,
    emulated,
    fixed,
    header,
)
from penstock.providers.speech import OPENAI_VOICES
from penstock.typed_config import Misconfigured, convert

_NAMES_MAX = 8  # in a message
_CHAT_PATH = "/chat/completions"

# ------------------------------------------------------------------------------------------------------------ providers


def providers(known: Mapping[str, Provider], written: Mapping[str, Any], folder: Path = Path()) -> Iterator[Provider]:
    """Known providers with the operator's changes, then the operator's own. Raises Misconfigured.

    Files that the tables name are in the folder.
    """
    for slug, provider in known.items():
        yield _changed_provider(provider, written[slug], folder) if slug in written else provider
    for slug, table in written.items():
        if slug not in known:
            near = get_close_matches(slug, known, n=1)
            if near and isinstance(table, Mapping) and "speaks" not in table:
                raise Misconfigured(
                    f"there is no provider {slug}; did you mean {near[0]}? A server of your own needs speaks"
                )
            yield _own_provider(slug, table)


def _changed_provider(provider: Provider, written: Any, folder: Path) -> Provider:
    """A known provider with the operator's changes."""
    where = f"providers.{provider.slug}"
    table = convert(written, ProviderChanges, where=where)
    if provider.local and table.base_url is not UNSET:
        raise Misconfigured(f"{where} answers inside the gateway and has no base_url")
    if table.base_url is not UNSET:  # then no variable has to name one
        provider = replace(with_base_url(provider, table.base_url), base_url_env=None)
    if table.key_env is not UNSET:
        provider = replace(provider, key_env=table.key_env)
    provider = replace(provider, live=_catalogue(where, provider.live, table), extra_fields=table.extra_fields)
    if provider.local and table.models:
        raise Misconfigured(f"{where} answers inside the gateway and takes no other models")
    added = [model for each in table.models for model in _added_models(where, provider, each, folder)]
    provider = replace(provider, models=(*provider.models, *_all_different(where, added)))
    return provider if table.responses is UNSET else _with_responses(where, provider, has_responses=table.responses)


def _with_responses(where: str, provider: Provider, *, has_responses: bool) -> Provider:
    """The provider, whose chat models get calls of the Responses API as they are, or translated into chat calls."""
    if has_responses and not any(_has_chat_api(model) for model in provider.models):
        raise Misconfigured(f"{where}.responses is true, but this provider has no chat models")
    models = [
        replace(model, op=replace(model.op, responses=_responses_path(model) if has_responses else None))
        if _has_chat_api(model)
        else model
        for model in provider.models
    ]
    return replace(provider, models=tuple(models))


def _has_chat_api(model: Model) -> bool:
    return model.op.task == "chat" and model.op.send.endswith(_CHAT_PATH)


def _responses_path(model: Model) -> str:
    return model.op.send.removesuffix(_CHAT_PATH) + "/responses"


def _catalogue(where: str, live: LiveCatalogue | None, table: ProviderChanges) -> LiveCatalogue | None:
    """The provider's own catalogue. One on another host than the provider is not used when the provider is elsewhere:
    the credential is for the new place.
    """
    if table.catalogue_url is UNSET:
        is_elsewhere = live is not None and live.base_url and table.base_url is not UNSET
        return None if is_elsewhere else live
    if live is None:
        raise Misconfigured(f"{where}.catalogue_url is set, but this provider has no catalogue")
    return replace(live, base_url=table.catalogue_url)


def with_base_url(provider: Provider, url: str) -> Provider:
    """The provider at another URL. A `/v1` at its end is removed where the provider's paths begin with a version."""
    url = url.rstrip("/")
    paths = [model.op.send.partition(" ")[2] for model in provider.models]
    if paths and all(re.match(r"/v\d+/", path) for path in paths):
        url = url.removesuffix("/v1")
    return replace(provider, base_url=url)


def _added_models(where: str, provider: Provider, table: KnownProviderModel, folder: Path) -> list[Model]:
    """Models under a table's names that are called as others of the provider. They have no prices but the table's."""
    where = f'{where}.models["{table.id}"]'
    if table.is_own:
        return _own_models(where, provider, table, folder)
    if table.like is UNSET:
        found = [_only_model_for(where, provider, table.task)]
    else:
        found = _models_named(where, provider, table.like, table.task)
    return [_model_like(where, provider, table, model) for model in found]


def _own_models(where: str, provider: Provider, table: KnownProviderModel, folder: Path) -> list[Model]:
    """Models of the operator's own on a known provider: a workflow, a checkpoint or the like."""
    own = OwnModel(
        task=None if table.task is UNSET else table.task,
        like="" if table.like is UNSET else table.like,
        workflow=own_models.read_workflow(where, folder, table.workflow) if table.workflow else None,
        file=Path(table.workflow).name,
        nodes=table.nodes,
        frames_per_second=table.fps,
        checkpoint=table.checkpoint,
        loras=table.loras,
    )
    return [
        replace(_described_model(where, provider.slug, table, replace(model, prices=())), upstream=model.upstream)
        for model in own_models.own_models(where, provider, own)
    ]


def _only_model_for(where: str, provider: Provider, task: Task | UnsetType) -> Model:
    """A model for the task, if the provider takes the same parameters for all of them."""
    if task is UNSET:
        raise Misconfigured(f"{where} needs task or like")
    found = [model for model in provider.models if model.op.task == task]
    if not found:
        raise Misconfigured(f"{where}.task is {task}, for which {provider.name} has no models here")
    if len({id(model.op) for model in found}) > 1:
        ids = _some_of([model.id for model in found])
        raise Misconfigured(f"{where} needs like: the parameters of {provider.name} differ by model. It can be {ids}")
    return found[0]


def _models_named(where: str, provider: Provider, like: str, task: Task | UnsetType) -> list[Model]:
    """The models that `like` names, by id or by the provider's own name; all of one name there."""
    models = [model for model in provider.models if task in (UNSET, model.op.task)]
    named = [model for model in provider.models if like in (model.id, model.upstream, f"{provider.slug}/{model.id}")]
    found = [model for model in named if model in models]
    if named and not found:
        tasks = ", ".join(dict.fromkeys(model.op.task for model in named))
        raise Misconfigured(f"{where}.task is {task}, which {like} of {provider.name} does not do; it can be {tasks}")
    if not found:
        ids = [model.id for model in models]
        near = _some_of(get_close_matches(like, ids, cutoff=0.3) or ids)
        raise Misconfigured(f"{where}.like is {like}; it must be a model that {provider.name} has here, such as {near}")
    upstreams = [model.upstream for model in found]
    if len(set(upstreams)) > 1:
        raise Misconfigured(f"{where}.like is {like}, which is several models there; it can be {_some_of(upstreams)}")
    return found


def _some_of(names: list[str]) -> str:
    """Names for a message, not too many and each once."""
    return ", ".join(list(dict.fromkeys(names))[:_NAMES_MAX])


def _model_like(where: str, provider: Provider, table: KnownProviderModel, model: Model) -> Model:
    """A model with the names of a table that is called as another one."""
    plain = replace(model, prices=(), priority=0, weight=1, aliases=(), enabled=True)
    changed = _described_model(where, provider.slug, table, plain)
    if not ("{model}" in model.op.send or model.op.model_field) and changed.upstream != model.upstream:
        raise Misconfigured(f"{where}.upstream must be {model.upstream}: {provider.name} runs nothing else there")
    return changed


def _all_different(where: str, models: list[Model]) -> list[Model]:
    """The models. Raises Misconfigured if two have one id and are called in the same way."""
    keys = [(model.id, model.op.task, id(model.op)) for model in models]
    if twice := sorted({f"{name} ({task})" for name, task, op in keys if keys.count((name, task, op)) > 1}):
        raise Misconfigured(f"{where} describes a model twice: {', '.join(twice)}")
    return models


def _own_provider(slug: str, written: Any) -> Provider:
    """A server of the operator's own."""
    where = f"providers.{slug}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", slug) or slug == "router":
        raise Misconfigured(f"{where} must be named in lower-case letters, digits, - and _, and not router")
    table = convert(written, ProviderTable, where=where)
    provider = Provider(
        slug=slug,
        name=table.name or slug,
        docs="",
        base_url=table.base_url.rstrip("/"),
        self_hosted=True,
        key_env=table.key_env or None,
        auth=_auth(table),
        headers={name.lower(): value for name, value in table.headers.items()},
        query=table.query,
        extra_fields=table.extra_fields,
        models=_own_provider_models(where, slug, table),
        error_message=error_message,
        failure_kind=failure_kind,
        callback_key_env=table.callback_key_env or None,
    )
    return _with_responses(where, provider, has_responses=True) if table.responses else provider


def _auth(table: ProviderTable) -> Callable[[str], Mapping[str, str]]:
    """How the key becomes a header of a server of the operator's own."""
    if table.auth is not UNSET:
        return header(table.auth.header.lower(), table.auth.prefix)
    return bearer if table.key_env else lambda _: {}


def _own_provider_models(where: str, slug: str, table: ProviderTable) -> tuple[Model, ...]:
    """The models of a server of the operator's own."""
    models = []
    for described in table.models:
        op = _operation(where, described)
        model = Model(id="", upstream="", op=op, prices=(), priority=table.priority, on_own_server=True)
        models.append(_described_model(f'{where}.models["{described.id}"]', slug, described, model))
    models = _all_different(where, models)
    if table.callback_field:
        models = [replace(model, op=replace(model.op, callback_field=table.callback_field)) for model in models]
    return tuple(models)


def _described_model(where: str, slug: str, table: AddedModel, model: Model) -> Model:
    """The model with the names and changes of a table."""
    changes = _model_fields(where, table)
    prices = changes.get("prices", ())
    if model.op.task != "chat" and any(price.unit == "token" and not price.max_tokens for price in prices):
        raise Misconfigured(
            f"{where}.price needs `max_tokens` when tokens are counted: the most that one output can use"
        )
    return replace(
        model,
        id=table.id,
        upstream=table.upstream or table.id.removeprefix(f"{slug}/"),
        name=table.name,
        description=table.description,
        **changes,
    )


def _operation(where: str, table: ModelTable) -> Operation:
    """How a model of an OpenAI-compatible server is called."""
    op = OPERATIONS[table.task]
    if table.asks_for_data:
        if table.task not in ("image", "edit", "upscale"):
            raise Misconfigured(f"{where}.asks_for_data is for models that make images")
        op = replace(op, params=(*op.params, fixed("response_format", "b64_json")))
    if table.voices or table.openai_voices:
        op = _with_voices(where, op, table)
    if table.n == MAX_N:
        return op
    if op.native_n == 1:
        raise Misconfigured(f"{where}.n is for models that make or edit images")
    row = emulated("n", to="n", high=table.n) if table.n > 1 else emulated("n")
    return replace(op, params=tuple(row if param.name == "n" else param for param in op.params))


def _with_voices(where: str, op: Operation, table: ModelTable) -> Operation:
    """The operation with the voices of a model; without a map, the first of them speaks for OpenAI's names."""
    if op.speech is None:
        raise Misconfigured(f"{where}.voices and openai_voices are for models that speak")
    if unknown := [name for name in table.openai_voices if name not in OPENAI_VOICES]:
        raise Misconfigured(f"{where}.openai_voices can have {', '.join(OPENAI_VOICES)}, and not {unknown[0]}")
    if missing := [voice for voice in table.openai_voices.values() if table.voices and voice not in table.voices]:
        raise Misconfigured(f"{where}.openai_voices names {missing[0]}, which is not among voices")
    own = {name: name if name in table.voices else table.voices[0] for name in OPENAI_VOICES} if table.voices else {}
    names = {**own, **table.openai_voices}
    return replace(op, speech=replace(op.speech, voices=dict.fromkeys(table.voices, ""), openai_voices=names))


# --------------------------------------------------------------------------------------------------------------- models


def changes(
    known: Mapping[str, Collection[str]], live: tuple[str, ...], written: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The `[models."id"]` tables: an id, and the fields of its Model that change. Raises Misconfigured.

    `known` has the providers of each id. `live` are the beginnings of ids of models that only their providers' own
    catalogues have.
    """
    for name, table in written.items():
        where = f'models["{name}"]'
        owners = known.get(name, ())
        if not owners and not name.startswith(live):
            raise Misconfigured(f"{where} changes a model that no provider here has")
        changed = convert(table, ModelChanges, where=where)
        change = _model_fields(where, changed)
        if changed.upstream is not UNSET:
            if len(owners) != 1:
                raise Misconfigured(f'{where}.upstream: write it under models["PROVIDER/{name}"]')
            change["upstream"] = changed.upstream
        yield name, change


_CHANGEABLE = ("priority", "weight", "aliases", "enabled", "max_image_tokens", "max_sound_tokens")


def _model_fields(where: str, table: ModelChanges) -> dict[str, Any]:
    """The fields of a Model that a table sets."""
    fields = {name: getattr(table, name) for name in _CHANGEABLE}
    if table.price is not UNSET:
        fields["prices"] = _prices(where, table.price)
    return {name: value for name, value in fields.items() if value is not UNSET}


def _prices(where: str, written: Prices) -> tuple[Price, ...]:
    """An empty list is an unknown price."""
    prices = tuple(_price(table) for table in (written if isinstance(written, list) else [written]))
    if prices and (prices[-1].when or prices[-1].above or prices[-1].from_date):
        raise Misconfigured(
            f"{where}.price: the last price must have no `when`, `above` and `from`; it is for all other calls"
        )
    return prices


def _price(table: PriceTable) -> Price:
    return Price(
        unit=table.unit,
        usd=str(table.output_usd if table.usd is UNSET else table.usd),
        input_usd=str(table.input_usd),
        each_usd=str(table.each_usd),
        other_usd={name: str(usd) for name, usd in table.other_usd.items()},
        when=table.when,
        above=table.above,
        from_date=table.from_date,
        max_tokens=table.max_tokens,
        max_seconds=table.max_seconds,
        source=Source(table.source, table.as_of),
    )
