"""Which models exist and which providers can serve them, in order."""

import difflib
import random
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from penstock.errors import InvalidRequest, ModelDisabled, ModelNotFound, NotFound
from penstock.providers.spec import Model, Price, Provider
from penstock.schema import PlannedCandidate, Request
from penstock.settings import Settings
from penstock.upstream import configured, model_schema

MODES = {
    "image": ("text-to-image",),
    "edit": ("image-edit",),
    "upscale": ("upscale",),
    "video": ("text-to-video",),
    "chat": ("chat",),
}
MODALITIES = {"image": "image", "edit": "image", "upscale": "image", "video": "video", "chat": "text"}
_TASK_WORDS = {"image": "image generation", "edit": "image edits", "video": "video generation", "chat": "chat"}
ANY = "*"  # the upstream name of a chat model that stands for all its provider has
_LONGEST_ID = 256
_MOST_ROUTES = 4096  # callers choose the names of a router's models; the usual ones stay


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to serve a request: a provider that is on, and its model."""

    provider: Provider
    model: Model
    key: str = field(default="", repr=False)

    @property
    def executed_model(self) -> str:
        return f"{self.provider.slug}/{self.model.upstream}"


@dataclass(frozen=True, slots=True)
class Route:
    """Options in the order they are to be tried; forced ones are endpoints of the one provider that was named."""

    options: tuple[Candidate, ...]
    forced: bool = False

    @property
    def first(self) -> Candidate:
        return self.options[0]


class Catalog:
    """All models of the providers that are on."""

    def __init__(self, providers: Iterable[Provider], settings: Settings, environ: Mapping[str, str]) -> None:
        known = {provider.slug: _placed(provider, environ) for provider in providers}
        everything = list(configured.providers(known, settings.providers))
        self._router = settings.router
        self.known = {provider.slug: provider for provider in everything}
        self._off = {
            provider.slug: reason
            for provider in everything
            if (reason := _why_off(provider, settings.disabled_providers, environ))
        }
        self.on = {slug: provider for slug, provider in self.known.items() if slug not in self._off}
        options = [
            Candidate(provider, model, environ.get(provider.key_env, "") if provider.key_env else "")
            for provider in self.on.values()
            for model in provider.models
        ]
        options = self._with_changes(options, settings.models)
        may_be_unpriced = settings.unknown_prices == "flag"
        self._options = [one for one in options if one.model.prices or may_be_unpriced]
        self._unpriced = {one.model.id for one in options} - {one.model.id for one in self._options}
        self._by_id: dict[str, list[Candidate]] = {}
        for option in self._options:
            for name in (option.model.id, *option.model.aliases) if option.model.upstream != ANY else ():
                self._by_id.setdefault(name, []).append(option)
        self._by_provider: dict[str, list[Candidate]] = {}
        for option in self._options:
            names = {option.model.upstream, option.model.id, *option.model.aliases}
            for name in names if option.model.upstream != ANY else ():
                self._by_provider.setdefault(f"{option.provider.slug}/{name}", []).append(option)
        self._takers = {one.provider.slug: one for one in self._options if one.model.upstream == ANY}
        self._retired = {old: new for one in everything for old, new in one.retired.items()}
        self._enabled = lru_cache(_MOST_ROUTES)(self._serving)  # for each catalog its own

    def _with_changes(self, options: list[Candidate], written: Mapping[str, Any]) -> list[Candidate]:
        """What `[models]` says about an id holds for all who serve it, about `{provider}/{id}` for that one."""
        named = {model.id for provider in self.known.values() for model in provider.models}
        single = {f"{provider.slug}/{model.id}" for provider in self.known.values() for model in provider.models}
        changed = dict(configured.changes(named | single, written))

        def change(option: Candidate) -> dict[str, Any]:
            return {
                **changed.get(option.model.id, {}),
                **changed.get(f"{option.provider.slug}/{option.model.id}", {}),
            }

        return [replace(option, model=replace(option.model, **change(option))) for option in options]

    @property
    def names(self) -> Mapping[str, str]:
        """Display names by slug."""
        return {slug: provider.name for slug, provider in self.known.items()}

    def callback_secrets(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What providers sign their callbacks with, by slug, as far as we were told."""
        names = {slug: provider.callback_key_env for slug, provider in self.on.items()}
        return {slug: environ[name] for slug, name in names.items() if name and environ.get(name)}

    # ------------------------------------------------------------------------------------------------------- routing

    def route(self, model: str, tasks: Sequence[str], well: Callable[[str, str], bool]) -> Route:
        """Groups by priority, shuffled by weight inside, whoever is unwell last."""
        route = self._enabled(model, tuple(tasks))
        if len(route.options) == 1:
            return route
        ordered = sorted(
            route.options,
            key=lambda one: (
                not well(one.provider.slug, one.model.upstream),
                one.model.priority,
                -(random.random() ** (1 / one.model.weight)),  # noqa: S311 - spreads load, guards nothing
            ),
        )
        return Route(tuple(ordered), route.forced)

    def _serving(self, model: str, tasks: tuple[str, ...]) -> Route:
        """Whoever can be asked, in no order; the same whenever it is asked."""
        options, forced = self._found(model)
        if not options and "chat" in tasks:
            options, forced = self._routed(model)
        fitting = [option for option in options if option.model.op.task in tasks]
        if not fitting:
            self._refuse(model, options, tasks)
        if not (enabled := [option for option in fitting if option.model.enabled]):
            raise ModelDisabled(f"The model `{model}` is switched off on this gateway.", param="model")
        return Route(tuple(enabled), forced)

    def _found(self, model: str) -> tuple[list[Candidate], bool]:
        """A public id, or `{provider}/{its model or a public id}`, which forces that provider."""
        if options := self._by_id.get(model):
            return options, {option.provider.slug for option in options} == {model.partition("/")[0]}
        named = self._by_provider.get(model, [])
        return named, bool(named)

    def _routed(self, model: str) -> tuple[list[Candidate], bool]:
        """Chat models that nobody here lists: a provider that takes any may be named, else the router gets them."""
        name = model.removeprefix("router/")
        if name != model and (found := self._found(name))[0]:
            return found
        slug, _, rest = name.partition("/")
        if rest and slug in self._takers:
            return [_named(self._takers[slug], rest)], True
        if rest and self._router in self._takers:
            return [_named(self._takers[self._router], name)], False
        return [], False

    def known_route(self, model: str, tasks: Sequence[str]) -> Route:
        """Also through providers that are off: what a mock can stand in for."""
        options, forced = self._found(model)
        options = options or [
            Candidate(provider, one)
            for provider in self.known.values()
            for one in provider.models
            if model in (one.id, *one.aliases, f"{provider.slug}/{one.upstream}", f"{provider.slug}/{one.id}")
        ]
        fitting = [option for option in options if option.model.op.task in tasks]
        if not fitting:
            self._refuse(model, options, tasks)
        return Route(tuple(fitting), forced)

    def public_id(self, model: str) -> str:
        """The name that all providers of a model share; a model nobody here knows keeps the one it came with."""
        options, _ = self._found(model)
        return options[0].model.id if options else model

    def mock(self, task: str, *, has_pictures: bool = True) -> Candidate:
        """A model that can stand in for any other of its task, of a provider that offers that, on or off."""
        wanted = "image" if task in ("edit", "upscale") and not has_pictures else task
        stand_ins = [provider for provider in self.known.values() if provider.mocks]
        for provider in stand_ins:
            for model in provider.models:
                if model.op.task == wanted:
                    return Candidate(provider, model)
        raise InvalidRequest(f"No provider of this gateway can mock {_TASK_WORDS.get(wanted, wanted)}.")

    def option(self, choice: PlannedCandidate, task: str) -> Candidate | None:
        """The option that an earlier plan names, if it is still there. One model may make, edit and move pictures."""
        names = (choice.provider, choice.model, choice.upstream)
        found = [one for one in self._options if (one.provider.slug, one.model.id, one.model.upstream) == names]
        fitting = [one for one in found if one.model.op.task == task]
        return next((one for one in fitting if choice.send in ("", one.model.op.send)), None)

    def _refuse(self, model: str, options: Sequence[Candidate], tasks: Sequence[str]) -> None:
        if options:
            can = sorted({mode for option in options for mode in modes(option.model)})
            asked = _TASK_WORDS.get(tasks[0], tasks[0])
            raise InvalidRequest(f"`{model}` cannot do {asked}; it does {', '.join(can)}.", param="model")
        raise self.unknown(model)

    def unknown(self, model: str) -> NotFound:
        """What is said of a model that cannot be had: why, where that is known, else what it may have meant."""
        if model in self._retired:
            return ModelNotFound(f"The model `{model}` was retired; use `{self._retired[model]}`.", param="model")
        if model in self._unpriced:
            return ModelDisabled(f"The model `{model}` is switched off: nobody has said what it costs.", param="model")
        near = difflib.get_close_matches(model[:_LONGEST_ID], self._shown(), n=1, cutoff=0.4)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        return ModelNotFound(f"The model `{model}` does not exist.{hint}", param="model")

    # ------------------------------------------------------------------------------------------------------ describing

    def providers(self) -> "list[dict[str, Any]]":
        """All that are known, with what keeps those that are off from being on."""
        return [
            {
                "id": slug,
                "object": "provider",
                "name": provider.name,
                "on": slug not in self._off,
                "reason": self._off.get(slug),
                "credential": provider.key_env,
                "models": len({model.id for model in provider.models}),
            }
            for slug, provider in sorted(self.known.items())
        ]

    def _shown(self) -> "list[str]":
        """Ids that are listed: those that can be used."""
        enabled = [option.model for option in self._options if option.model.enabled and option.model.upstream != ANY]
        return list(dict.fromkeys(model.id for model in enabled))

    def list(self, schema: bool = False) -> "list[dict[str, Any]]":
        return [self.describe(one, schema) for one in self._shown()]

    def describe(self, model: str, schema: bool = False) -> dict[str, Any]:
        found, _ = self._found(model)
        if not found:
            raise self.unknown(model)
        if not (options := [option for option in found if option.model.enabled]):
            raise ModelDisabled(f"The model `{model}` is switched off on this gateway.", param="model")
        first = options[0]
        described = {
            "id": first.model.id,
            "object": "model",
            "created": first.model.created,
            "owned_by": first.model.id.split("/")[0] if "/" in first.model.id else first.provider.slug,
            "name": first.model.name or first.model.id,
            "description": first.model.description,
            "modality": MODALITIES[first.model.op.task],
            "modes": list(dict.fromkeys(mode for option in options for mode in modes(option.model))),
            "providers": list(dict.fromkeys(option.provider.slug for option in options)),
            "pricing": [
                {"provider": option.provider.slug, "task": option.model.op.task, **pricing(price)}
                for option in options
                for price in option.model.prices
            ],
        }
        if schema:
            described["schema"] = model_schema.schema([option.model.op for option in options])
        return described


def _named(option: Candidate, model: str) -> Candidate:
    """A provider that takes any model, taking this one."""
    return replace(option, model=replace(option.model, id=model, upstream=model))


def _placed(provider: Provider, environ: Mapping[str, str]) -> Provider:
    """A self-hosted provider lives where the environment says."""
    address = environ.get(provider.base_url_env, "") if provider.base_url_env else ""
    return replace(provider, base_url=address.rstrip("/")) if address else provider


def _why_off(provider: Provider, disabled: Container[str], environ: Mapping[str, str]) -> str | None:
    """What keeps a provider from being used; nothing, when it is on."""
    if provider.slug in disabled:
        return "switched off in the settings"
    if provider.base_url_env and provider.base_url_env not in environ:
        return f"{provider.base_url_env} is not set"
    return (
        f"{provider.key_env} is not set" if provider.key_env is not None and not environ.get(provider.key_env) else None
    )


def modes(model: Model) -> tuple[str, ...]:
    """What a model does, in the words of the model list."""
    if model.op.modes or model.op.task != "video":
        return model.op.modes or MODES[model.op.task]
    row = model.op.param("input_reference")
    if row is None or row.handling == "refused":
        return ("text-to-video",)
    return ("image-to-video",) if row.required else ("text-to-video", "image-to-video")


def pricing(price: Price) -> dict[str, Any]:
    shown: dict[str, Any] = {"unit": price.unit, "usd": price.usd}
    shown.update({name: usd for name in ("input_usd", "each_usd") if (usd := getattr(price, name)) != "0"})
    shown.update({name: dict(found) for name in ("when", "other_usd") if (found := getattr(price, name))})
    return {**shown, "above": price.above} if price.above else shown


def capable(route: Route, request: Request, check: Callable[[Model, Request], None]) -> Route:
    """The route without options whose model cannot do what was asked; the first refusal when none can. Where a provider
    was named, the first of its endpoints that can is left.
    """
    fitting: list[Candidate] = []
    refusal: InvalidRequest | None = None
    for option in route.options:
        try:
            check(option.model, request)
        except InvalidRequest as problem:
            refusal = refusal or problem
        else:
            fitting.append(option)
    if not fitting and refusal:
        raise refusal
    if refusal is None and not (route.forced and len(fitting) > 1):
        return route
    return replace(route, options=tuple(fitting[:1] if route.forced else fitting))
