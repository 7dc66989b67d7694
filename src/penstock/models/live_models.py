"""Models that have no table here: described by their providers' own catalogues, and remembered in the store."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec
import structlog

from penstock.cache import Cache
from penstock.clock import Clock
from penstock.errors import InvalidRequest, ModelNotFound, Problem, RateLimited, UpstreamError, quoted
from penstock.event_loop import cancel_and_wait
from penstock.fair_shares import SharedPlaces
from penstock.models.catalog import Catalog, switched_off
from penstock.providers.live import FoundModel, LiveModel, Underivable
from penstock.providers.spec import Document, Model, Provider
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.upstream.replies import MALFORMED
from penstock.values import OrgId
from penstock.window_counts import WindowCounts

log = structlog.get_logger()

_FRESH_SECONDS = 6 * 3600.0  # an older copy is used, and renewed in the background
_RETRY_SECONDS = 300.0  # after a catalogue failed to renew a copy
_MISSING_SECONDS = 60.0  # how long a model that a catalogue does not have is not asked for again
_FOUND_SECONDS = 60.0  # how long the result of a search is used
_ASK_SECONDS = 10.0
_WAIT_SECONDS = 15.0  # for one of the places below
_DOCUMENT_BYTES_MAX = 4 * 2**20
_DESCRIPTION_BYTES_MAX = 512 * 1024
_ASKED_AT_ONCE = 4  # of one provider; organizations share these places
# New models and searches of one organization, so that it cannot flood a catalogue.
_ASKED_PER_HOUR = 300
_HOUR_SECONDS = 3600.0
_REMEMBERED_MAX = 2048  # models
_SEARCHES_MAX = 64
_STORED_MAX = 5000


class LiveModels:
    """Offers any model of the providers in `live_catalogues` through the catalog.

    A catalogue that is down, or whose response cannot be read, changes nothing about a model that was known before.
    Organizations share the calls to a catalogue, so that none waits behind all the calls of another.
    """

    def __init__(self, catalog: Catalog, upstream: Upstream, store: Store, clock: Clock, settings: Settings) -> None:
        self._catalog = catalog
        self._upstream = upstream
        self._store = store
        self._clock = clock
        self._on = frozenset(settings.live_catalogues)
        self._fresh: Cache[str, bool] = Cache(clock.monotonic, _REMEMBERED_MAX)  # True for ids in the catalog
        self._missing: Cache[str, str] = Cache(clock.monotonic, _REMEMBERED_MAX)  # by id: why it cannot be used
        self._found: Cache[tuple[str, str], tuple[FoundModel, ...]] = Cache(clock.monotonic, _SEARCHES_MAX)
        self._under_way: dict[str, asyncio.Task[Any]] = {}
        self._places: dict[str, SharedPlaces] = {}
        self._asked = WindowCounts(clock, _HOUR_SECONDS)  # by organization

    async def close(self) -> None:
        await cancel_and_wait(list(self._under_way.values()))

    # ------------------------------------------------------------------------------------------------------- one model

    async def prepare(self, model: str, for_org: OrgId) -> None:
        """Make the catalog know a model of a live catalogue, if the id names one and no table does.

        Raises ModelNotFound, ModelDisabled, RateLimited, or UpstreamError if the catalogue does not answer and was
        never asked before.
        """
        slug, _, upstream = model.partition("/")
        provider = self._provider(slug)
        if provider is None or slug not in self._on or not self._is_to_be_loaded(provider, model):
            return
        if self._catalog.is_switched_off(model):
            raise switched_off(model)
        if reason := self._missing.get(model):
            raise _unusable(model, reason)
        await self._share(f"{model} for {for_org}", self._load(provider, upstream, for_org))

    async def prepare_accepted(self, model: str) -> None:
        """Make the catalog know the model of an accepted request: the settings no longer matter, and no catalogue is
        asked. Raises ModelDisabled.
        """
        slug, _, upstream = model.partition("/")
        provider = self._provider(slug)
        if provider and self._is_to_be_loaded(provider, model):
            await self._load_stored(provider, upstream)

    def _is_to_be_loaded(self, provider: Provider, model: str) -> bool:
        """Whether no table has the model, and what is known of it is missing or old."""
        assert provider.live is not None, "see _provider"
        if self._catalog.has_table(model) or self._fresh.get(model):
            return False
        return provider.live.names.fullmatch(model.partition("/")[2]) is not None

    def _provider(self, slug: str) -> Provider | None:
        provider = self._catalog.providers.active.get(slug)
        return provider if provider and provider.live else None

    async def _share(self, key: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Do work once for all who wait for it at the same time. It goes on when a caller leaves."""
        task = self._under_way.get(key)
        if task is None:
            task = self._start(key, work)
        else:
            work.close()
        return await asyncio.shield(task)

    def _start(self, key: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work, name="ask a provider's catalogue")
        self._under_way[key] = task

        def end(done: asyncio.Task[Any]) -> None:
            del self._under_way[key]
            problem = None if done.cancelled() else done.exception()
            if problem and not isinstance(problem, Problem):
                log.error("catalogue not read", task=key, exc_info=problem)

        task.add_done_callback(end)
        return task

    async def _load(self, provider: Provider, upstream: str, for_org: OrgId) -> None:
        """Offer the stored copy, and renew it in the background if it is old; without one, ask the catalogue."""
        age = await self._load_stored(provider, upstream)
        if age is None:
            self._count_lookup(for_org)
            await self._ask(provider, upstream, for_org)
        elif age > _FRESH_SECONDS and (key := f"renew {provider.slug}/{upstream}") not in self._under_way:
            self._start(key, self._renew(provider, upstream, for_org))

    def _count_lookup(self, org_id: OrgId) -> None:
        """Count a lookup or a search of an organization. Raises RateLimited if there are too many."""
        if self._asked.add(org_id) > _ASKED_PER_HOUR:
            message = (
                f"At most {_ASKED_PER_HOUR} new models and searches of providers' catalogues are allowed per hour."
            )
            raise RateLimited(message, headers={"retry-after": str(self._asked.seconds_left)}, should_retry=False)

    async def _load_stored(self, provider: Provider, upstream: str) -> float | None:
        """Offer the stored copy, and return its age in seconds; None if there is none."""
        row = await self._store.one("get_live_model", provider=provider.slug, upstream=upstream)
        if row is None:
            return None
        assert provider.live is not None, "only such providers have stored models"
        try:
            models = provider.live.models(upstream, msgspec.json.decode(row["description"], type=LiveModel))
        except (*MALFORMED, Underivable):  # written by another release
            return None
        age: float = (self._clock.now_ms() - row["asked_at_ms"]) / 1000
        self._offer(provider, upstream, models, max(_FRESH_SECONDS - age, _RETRY_SECONDS))
        return age

    async def _renew(self, provider: Provider, upstream: str, for_org: OrgId) -> None:
        try:
            await self._ask(provider, upstream, for_org)
        except Problem as problem:  # the stored copy goes on to serve
            self._missing.discard(f"{provider.slug}/{upstream}")
            log.info("model not renewed", provider=provider.slug, model=upstream, reason=problem.message)

    async def _ask(self, provider: Provider, upstream: str, for_org: OrgId) -> None:
        """Ask the catalogue about a model, offer it, and store what was said."""
        assert provider.live is not None, "only such providers are asked"
        name = f"{provider.slug}/{upstream}"
        try:
            documents = await self._get(provider, provider.live.documents(upstream), for_org)
            live = provider.live.read(upstream, documents)
            encoded = msgspec.json.encode(live)
            if len(encoded) > _DESCRIPTION_BYTES_MAX:
                raise ValueError("the description is too large")
            models = provider.live.models(upstream, live)
        except AttemptFailed as problem:
            if problem.failure.status in (400, 404, 422):
                reason = f"{provider.name} has no such model"
                self._missing.put(name, reason, _MISSING_SECONDS)
                raise _unusable(name, reason) from None
            raise UpstreamError(
                f"`{name}` is not listed here, and the catalogue of {provider.name} could not be asked about it: "
                f"{problem.failure.message}"
            ) from None
        except (*MALFORMED, Underivable) as problem:
            reason = str(problem) if isinstance(problem, Underivable) else "its description cannot be read"
            self._missing.put(name, reason, _MISSING_SECONDS)
            raise _unusable(name, reason) from None

        async def write(tx: Transaction) -> None:
            await tx.run(
                "set_live_model",
                provider=provider.slug,
                upstream=upstream,
                description=encoded,
                at_ms=self._clock.now_ms(),
                org_id=for_org,
            )
            await tx.run("delete_oldest_live_models", kept=_STORED_MAX)

        await self._store.write(write)
        self._offer(provider, upstream, models, _FRESH_SECONDS)

    def _offer(self, provider: Provider, upstream: str, models: tuple[Model, ...], seconds: float) -> None:
        name = f"{provider.slug}/{upstream}"
        self._fresh.discard(name)  # if it is not offered, the next call is told why
        self._catalog.set_live_models(provider, models)
        self._fresh.put(name, True, seconds)

    async def _get(self, provider: Provider, documents: Mapping[str, Document], for_org: OrgId) -> dict[str, Any]:
        """The JSON of documents by name; one that is not needed is None if it does not exist."""
        assert provider.live is not None, "only such providers are asked"
        base_url = provider.live.base_url or provider.base_url
        candidate = Candidate(provider, provider.models[0], self._catalog.providers.keys[provider.slug])

        async def get(document: Document) -> Any:
            try:
                return await self._upstream.get_document(
                    candidate, base_url, document.url, seconds=_ASK_SECONDS, max_bytes=_DOCUMENT_BYTES_MAX
                )
            except AttemptFailed as problem:
                if document.is_needed or problem.failure.status != 404:
                    raise
                return None

        places = self._places.setdefault(provider.slug, SharedPlaces(_ASKED_AT_ONCE))
        try:
            async with asyncio.timeout(_WAIT_SECONDS) as wait, places.place(for_org):
                wait.reschedule(None)
                found = await asyncio.gather(*(get(document) for document in documents.values()))
        except TimeoutError:
            message = f"Too many models of {provider.name} are asked for."
            raise AttemptFailed(Failure("busy", message, sent=False)) from None
        return dict(zip(documents, found, strict=True))

    # --------------------------------------------------------------------------------------------------------- search

    def has_catalogue(self, slug: str) -> bool:
        """Whether a provider's own catalogue can be searched."""
        return slug in self._on and self._provider(slug) is not None

    async def search(self, slug: str, words: str, for_org: OrgId) -> tuple[FoundModel, ...]:
        """Models of a provider's catalogue that fit the words. Raises InvalidRequest, RateLimited or UpstreamError."""
        provider = self._provider(slug)
        if provider is None or not self.has_catalogue(slug):
            usable = sorted(each for each in self._on if self._provider(each))
            shown = quoted(usable) or "none here"
            raise InvalidRequest(f"Only these providers have a catalogue to search: {shown}.", param="provider")
        assert provider.live is not None, "see _provider"
        known = self._found.get((slug, words))
        if known is not None:
            return known
        key = f"search {slug} {words} for {for_org}"
        found: tuple[FoundModel, ...] = await self._share(key, self._search(provider, words, for_org))
        return found

    async def _search(self, provider: Provider, words: str, for_org: OrgId) -> tuple[FoundModel, ...]:
        live = provider.live
        assert live is not None, "only such providers are asked"
        self._count_lookup(for_org)
        try:
            documents = await self._get(provider, live.search(words), for_org)
            found = tuple(model for model in live.read_found(documents, words) if live.names.fullmatch(model.upstream))
        except (AttemptFailed, *MALFORMED) as problem:
            log.info("catalogue not searched", provider=provider.slug, reason=str(problem))
            raise UpstreamError(f"The catalogue of {provider.name} could not be searched.") from None
        self._found.put((provider.slug, words), found, _FOUND_SECONDS)
        return found


def _unusable(name: str, reason: str) -> ModelNotFound:
    return ModelNotFound(f"The model `{name}` cannot be used: {reason}.", param="model")
