"""The models of all providers: find the candidates of a model, or say why it has none. `routing` puts them in order."""

import difflib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from penstock.clock import Clock
from penstock.errors import InvalidRequest, ModelDisabled, ModelNotFound, NotFound
from penstock.models import configured
from penstock.models.description import describe, modes
from penstock.models.known_providers import KnownProviders
from penstock.providers.spec import Model, Provider, prices_in_force
from penstock.schema import PlannedCandidate
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.upstream.field_guesses import OWN_CHAT_FIELDS
from penstock.values import DAY_MS

_TASK_WORDS = {"image": "image generation", "edit": "image edits", "video": "video generation"}
ANY = "*"  # the upstream name of a chat model entry that stands for every model of its provider
_ID_LENGTH_MAX = 256
_LIVE_MAX = 2048  # models of live catalogues in memory
_FOUND_MAX = 4096  # callers choose the names of a router's models; the least recently used are dropped


class Found(NamedTuple):
    """The candidates of a model, in no particular order; forced if the caller named the provider."""

    candidates: tuple[Candidate, ...]
    forced: bool


class Catalog:
    """The models of all active providers: those that have a credential and are not disabled."""

    def __init__(
        self,
        providers: Iterable[Provider],
        settings: Settings,
        environ: Mapping[str, str],
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or Clock()
        self._sources = (tuple(providers), settings, environ)
        self._live: dict[str, tuple[Candidate, ...]] = {}  # by id: those of providers' own catalogues
        self._build(frozenset())

    def set_accounts(self, slugs: frozenset[str]) -> None:
        """Offer the models of providers that have accounts, also of those without a credential in the environment."""
        if slugs != self.providers.with_accounts:
            self._build(slugs)

    def _build(self, with_accounts: frozenset[str]) -> None:
        providers, settings, environ = self._sources
        self._router = settings.router
        self.providers = KnownProviders(providers, settings, environ, with_accounts)
        candidates = [
            _with_allowed_extras(Candidate(provider, model, self.providers.keys[slug]))
            for slug, provider in self.providers.active.items()
            for model in provider.models
        ]
        candidates = self._with_changes(candidates, settings.models)
        self._may_be_unpriced = settings.unknown_prices == "flag"
        self._unknown_unit_hold_usd = settings.unknown_unit_hold_usd
        self._candidates = [candidate for candidate in candidates if candidate.model.prices or self._may_be_unpriced]
        priced = {candidate.model.id for candidate in self._candidates}
        self._unpriced = {candidate.model.id for candidate in candidates} - priced
        self._any_model = {
            candidate.provider.slug: candidate for candidate in self._candidates if candidate.model.upstream == ANY
        }
        self._named = [candidate for candidate in self._candidates if candidate.model.upstream != ANY]
        self._by_id = _by_each_name(self._named, _public_names)
        self._by_provider = _by_each_name(self._named, _names_at_provider)
        known = self.providers.known.values()
        self._retired = {old: new for provider in known for old, new in provider.retired.items()}
        self._cached_find = lru_cache(_FOUND_MAX)(self._find_fitting)  # one cache per catalog

    def _with_changes(self, candidates: list[Candidate], written: Mapping[str, Any]) -> list[Candidate]:
        """Apply `[models]`: the table of an id is for all providers, the table of `{provider}/{id}` for that one."""
        self._live_changes: dict[str, Any] = {}
        if not written:
            return candidates
        ids: dict[str, set[str]] = {}  # with the providers of each
        known = self.providers.known.values()
        for provider in known:
            for model in provider.models:
                for name in (model.id, f"{provider.slug}/{model.id}"):
                    ids.setdefault(name, set()).add(provider.slug)
        live = tuple(f"{provider.slug}/" for provider in known if provider.live)
        changes = dict(configured.changes(ids, live, written))
        self._live_changes = {name: change for name, change in changes.items() if name.startswith(live)}

        def change(candidate: Candidate) -> dict[str, Any]:
            return {
                **changes.get(candidate.model.id, {}),
                **changes.get(f"{candidate.provider.slug}/{candidate.model.id}", {}),
            }

        return [replace(candidate, model=replace(candidate.model, **change(candidate))) for candidate in candidates]

    # -------------------------------------------------------------------------------------------------- live catalogues

    def has_table(self, model: str) -> bool:
        """Whether a table describes the model."""
        return bool(self._find_named(model).candidates)

    def set_live_models(self, provider: Provider, models: Iterable[Model]) -> None:
        """Offer one model of a provider's own catalogue, which may have several operations, or replace it.

        Raises ModelDisabled if it has no price and the settings refuse such models; then it is no longer offered.
        """
        candidates = tuple(
            Candidate(provider, self._with_live_changes(model), self.providers.keys[provider.slug]) for model in models
        )
        name = candidates[0].model.id
        self._live.pop(name, None)
        if not all(candidate.model.prices for candidate in candidates) and not self._may_be_unpriced:
            raise ModelDisabled(
                f"{provider.name} publishes no price for `{name}`, and this gateway serves no model without a price; "
                f'its operator can set one under `[models."{name}"]`.',
                param="model",
            )
        self._live[name] = candidates
        if len(self._live) > _LIVE_MAX:
            del self._live[next(iter(self._live))]

    def is_switched_off(self, model: str) -> bool:
        """Whether `[models]` switches a model of a live catalogue off, by its id."""
        changes = [*self._general_changes(model), self._live_changes.get(model, {})]
        return not next((change["enabled"] for change in reversed(changes) if "enabled" in change), True)

    def _general_changes(self, model: str) -> list[Mapping[str, Any]]:
        """The tables of `[models]` for all models of a provider, and for those of one owner: `{provider}/{owner}/*`."""
        slug, _, name = model.partition("/")
        owner = name.partition("/")[0]
        return [self._live_changes.get(key, {}) for key in (f"{slug}/{ANY}", f"{slug}/{owner}/{ANY}")]

    def _with_live_changes(self, model: Model) -> Model:
        """Apply `[models]` to a live model: general tables, whose prices are for models with none or a guessed one,
        then its own. Of units that nobody knows before the call, the operator's amount is held.
        """
        has_price = any(not price.is_guess for price in model.prices)
        changes: dict[str, Any] = {
            "prices": tuple(
                replace(price, least_usd=self._unknown_unit_hold_usd) if price.unit == "unit" else price
                for price in model.prices
            )
        }
        for general in self._general_changes(model.id):
            is_for_chat = any(price.unit == "token" and not price.max_tokens for price in general.get("prices", ()))
            without_prices = {name: value for name, value in general.items() if name != "prices"}
            changes |= without_prices if has_price or is_for_chat else general
        return replace(model, **{**changes, **self._live_changes.get(model.id, {})})

    # ------------------------------------------------------------------------------------------------------- finding

    def find(self, model: str, tasks: Sequence[str]) -> Found:
        """The candidates that can do one of the tasks, in no particular order, with the prices of today.

        Raises ModelNotFound, ModelDisabled or InvalidRequest.
        """
        find = self._find_fitting if model in self._live else self._cached_find  # the live ones change
        return find(model, tuple(tasks), self._today())

    def _find_fitting(self, model: str, tasks: tuple[str, ...], day: str) -> Found:
        """The enabled candidates that can do one of the tasks, with the prices of a day."""
        found = self._find_named(model)
        if not found.candidates:
            found = self._find_any_model(model) if "chat" in tasks else Found(self._live.get(model, ()), forced=True)
        fitting = self._fitting(model, found.candidates, tasks)
        if not (enabled := [candidate for candidate in fitting if candidate.model.enabled]):
            raise switched_off(model)
        return Found(tuple(_with_prices_of(candidate, day) for candidate in enabled), found.forced)

    def _find_named(self, model: str) -> Found:
        """Candidates for an id, or for `{provider}/{id or upstream name}`, whatever the task."""
        if candidates := self._by_id.get(model):
            slugs = {candidate.provider.slug for candidate in candidates}
            return Found(candidates, forced=slugs == {model.partition("/")[0]})
        candidates = self._by_provider.get(model, ())
        return Found(candidates, forced=bool(candidates))

    def _find_any_model(self, model: str) -> Found:
        """As `_find_named`, for a chat model in no table: of a provider that takes any and is named, or the router."""
        name = model.removeprefix("router/")
        if name != model and (found := self._find_named(name)).candidates:
            return found
        slug, _, rest = name.partition("/")
        if rest and slug in self._any_model:
            return Found((_with_model(self._any_model[slug], rest),), forced=True)
        if rest and self._router in self._any_model:
            return Found((_with_model(self._any_model[self._router], name),), forced=False)
        return Found((), forced=False)

    def find_known(self, model: str, tasks: Sequence[str]) -> Found:
        """As `find`, also among inactive providers: for mocks, which call no provider."""
        candidates = self._named_or_live(model) or tuple(
            Candidate(provider, each)
            for provider in self.providers.known.values()
            for each in provider.models
            if model in (each.id, *each.aliases, f"{provider.slug}/{each.upstream}", f"{provider.slug}/{each.id}")
        )
        return Found(self._fitting(model, candidates, tasks), self._find_named(model).forced)

    def _named_or_live(self, model: str) -> tuple[Candidate, ...]:
        """Candidates of a table or of a live catalogue, whatever the task."""
        return self._find_named(model).candidates or self._live.get(model, ())

    def public_id(self, model: str) -> str:
        """The id under which models are listed, for any name of a model; an unknown name is returned unchanged."""
        candidates = self._find_named(model).candidates
        return candidates[0].model.id if candidates else model

    def mock(self, task: str, *, has_images: bool = True) -> Candidate:
        """The model that mocks a task, of a provider that offers mocks, active or not. May raise InvalidRequest."""
        wanted = "image" if task in ("edit", "upscale") and not has_images else task
        mocking = [provider for provider in self.providers.known.values() if provider.mocks]
        for provider in mocking:
            for model in provider.models:
                if model.op.task == wanted:
                    return Candidate(provider, model)
        raise InvalidRequest(f"No provider of this gateway can mock {_TASK_WORDS.get(wanted, wanted)}.")

    def find_candidate(self, planned: PlannedCandidate, task: str) -> Candidate | None:
        """The candidate that a stored plan names; None when it is no longer configured. One model may have several
        operations, so the task and the path decide between them.
        """
        named = self._by_provider.get(f"{planned.provider}/{planned.model}", ())  # those of a router have no names
        for candidate in chain(self._live.get(planned.model, ()), named, self._candidates):
            model = candidate.model
            is_named = (candidate.provider.slug, model.id, model.upstream) == (
                planned.provider,
                planned.model,
                planned.upstream,
            )
            if is_named and model.op.task == task and planned.send in ("", model.op.send):
                return candidate
        return None

    def _fitting(self, model: str, candidates: Sequence[Candidate], tasks: Sequence[str]) -> tuple[Candidate, ...]:
        """The candidates that can do one of the tasks. Raises the error for a model that has none."""
        fitting = tuple(candidate for candidate in candidates if candidate.model.op.task in tasks)
        if fitting:
            return fitting
        if candidates:
            supported = sorted({mode for candidate in candidates for mode in modes(candidate.model)})
            task = _TASK_WORDS.get(tasks[0], tasks[0])
            raise InvalidRequest(
                f"`{model}` does not support {task}; it supports {', '.join(supported)}.", param="model"
            )
        raise self.not_found(model, tasks)

    def not_found(self, model: str, tasks: Sequence[str] = ()) -> NotFound:
        """The error for a model without candidates: it is retired, has no price, lacks a credential, or is unknown.

        A model that is proposed instead can do one of the tasks; without tasks, any model is proposed.
        """
        if successor := self._retired.get(model):
            known = f"; use `{successor}`" if successor in self._by_id else ""
            missing = "" if known else self.providers.missing_credentials(successor)
            return ModelNotFound(f"The model `{model}` was retired{known}.{missing}", param="model")
        if model in self._unpriced:
            return ModelDisabled(f"The model `{model}` is switched off: no price is configured for it.", param="model")
        if missing := self.providers.missing_credentials(model):
            return ModelNotFound(f"The model `{model}` cannot be used here.{missing}", param="model")
        hint = self._hint(model, tasks)
        if "chat" in tasks and "/" in model and self._router not in self._any_model:
            hint += self.providers.missing_credentials(f"{self._router}/")
        return ModelNotFound(f"The model `{model}` does not exist.{hint}", param="model")

    def _hint(self, model: str, tasks: Sequence[str]) -> str:
        """A name that is much like this one, and how names look at a provider with a catalogue."""
        model = model[:_ID_LENGTH_MAX]
        slug, _, name = model.partition("/")
        provider = self.providers.known.get(slug)
        ids = self.listed_ids(tasks)
        near = difflib.get_close_matches(model, ids, n=1)
        if provider and not near:  # the name of a model may stand behind that of any of its providers
            near = difflib.get_close_matches(name, ids, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        if provider and provider.live and slug in self.providers.active:
            hint += f" {provider.name}'s own models are named `{slug}/owner/name`, as in its catalogue."
        return hint

    # ------------------------------------------------------------------------------------------------------ describing

    def listed_ids(self, tasks: Sequence[str] = ()) -> list[str]:
        """The ids of all models that callers can use, or of those that can do one of the tasks."""
        enabled = [
            candidate.model
            for candidate in self._named
            if candidate.model.enabled and (not tasks or candidate.model.op.task in tasks)
        ]
        return list(dict.fromkeys(model.id for model in enabled))

    def serving(self, model: str) -> list[Candidate]:
        """The enabled candidates of a model, whatever the task, in no particular order."""
        return [candidate for candidate in self._named_or_live(model) if candidate.model.enabled]

    def describe_all(self, schema: bool = False) -> list[dict[str, Any]]:
        """All models that callers can use, as the model list shows them."""
        return [self.describe(model, schema) for model in self.listed_ids()]

    def describe_off(self) -> list[dict[str, Any]]:
        """The models that a missing variable keeps from being used, with `missing`: the variables by provider."""
        missing = self.providers.missing()
        known = (self.providers.known[slug] for slug in missing)
        candidates = [Candidate(provider, model, "") for provider in known for model in provider.models]
        by_id: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in self._with_changes(candidates, self._sources[1].models):
            model = candidate.model
            is_offered = model.upstream != ANY and model.enabled and bool(model.prices or self._may_be_unpriced)
            if is_offered and not self._named_or_live(model.id):
                by_id[model.id].append(candidate)
        listed = (describe(found, self._today()) for found in by_id.values())
        return [{**model, "missing": {slug: missing[slug] for slug in model["providers"]}} for model in listed]

    def describe(self, model: str, schema: bool = False) -> dict[str, Any]:
        """One model as the model list shows it. Raises ModelNotFound or ModelDisabled."""
        found = self._named_or_live(model)
        if not found:
            raise self.not_found(model)
        if not (candidates := [candidate for candidate in found if candidate.model.enabled]):
            raise switched_off(model)
        return describe(candidates, self._today(), schema)

    def any_model_servers(self) -> tuple[Candidate, ...]:
        """Servers of the operator's own that take any model, whose models are not in the catalog."""
        return tuple(candidate for candidate in self._any_model.values() if candidate.provider.self_hosted)

    def describe_server_model(self, server: Candidate, name: str, schema: bool = False) -> dict[str, Any]:
        """One model of a server that takes any, as the model list shows it."""
        model = replace(server.model, id=f"{server.provider.slug}/{name}", upstream=name, name=name)
        return describe([replace(server, model=model)], self._today(), schema)

    def has_ended(self, model: Model) -> bool:
        """Whether the day has come on which its provider shuts the model down."""
        return bool(model.shutdown_date) and model.shutdown_date <= self._today()

    def _today(self) -> str:
        """The day in UTC, which decides between the prices of before and after an announced change."""
        return _day(self._clock.now_ms() // DAY_MS)


def switched_off(model: str) -> ModelDisabled:
    """The error for a model that the operator does not offer."""
    return ModelDisabled(f"The model `{model}` is switched off on this gateway.", param="model")


@lru_cache(2)
def _day(days: int) -> str:
    """The day in UTC, so many days after the first of January 1970."""
    return (date(1970, 1, 1) + timedelta(days)).isoformat()


def _by_each_name(
    candidates: Iterable[Candidate], names: Callable[[Candidate], Iterable[str]]
) -> dict[str, tuple[Candidate, ...]]:
    """The candidates that have each name, in their order."""
    found = defaultdict[str, list[Candidate]](list)
    for candidate in candidates:
        for name in names(candidate):
            found[name].append(candidate)
    return {name: tuple(same) for name, same in found.items()}


def _public_names(candidate: Candidate) -> set[str]:
    """The id of the model and its aliases, which several providers may share."""
    return {candidate.model.id, *candidate.model.aliases}


def _names_at_provider(candidate: Candidate) -> set[str]:
    """`{provider}/{name}` for each name of the model, also the provider's own."""
    return {f"{candidate.provider.slug}/{name}" for name in {*_public_names(candidate), candidate.model.upstream}}


def _with_allowed_extras(candidate: Candidate) -> Candidate:
    """The candidate; of chat on a server of the operator's own with the only extra fields that it is sent."""
    if candidate.model.op.task != "chat" or not candidate.in_own_network:
        return candidate
    allowed = OWN_CHAT_FIELDS.union(candidate.provider.extra_fields)
    return replace(candidate, model=replace(candidate.model, allowed_extras=allowed))


def _with_model(candidate: Candidate, model: str) -> Candidate:
    """The candidate of a provider that takes any model, for this model."""
    return replace(candidate, model=replace(candidate.model, id=model, upstream=model))


def _with_prices_of(candidate: Candidate, day: str) -> Candidate:
    """The candidate without the prices that do not apply on a day; most have none, and stay the same object."""
    prices = prices_in_force(candidate.model.prices, day)
    if prices is candidate.model.prices:
        return candidate
    return replace(candidate, model=replace(candidate.model, prices=prices))
