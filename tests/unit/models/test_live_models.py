"""Catalogues are asked seldom, by few at a time, and only for names of the right form."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest

from penstock.errors import InvalidRequest, ModelNotFound, RateLimited, UpstreamError
from penstock.models.catalog import Catalog
from penstock.models.live_models import LiveModels
from penstock.providers import discover
from penstock.providers.live import FoundModel, LiveModel, Underivable
from penstock.providers.openai_compatible import OPERATIONS
from penstock.providers.spec import Document, LiveCatalogue, Model, Price
from penstock.settings import Settings
from penstock.store.base import Dialect, Store
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.values import OrgId
from tests.databases import database_for
from tests.manual_clock import ManualClock
from tests.webhook_receivers import until

ORG = OrgId("org_1")
OTHER = OrgId("org_2")
OpenStore = Callable[[], AbstractAsyncContextManager[Store]]


@pytest.fixture
def open_store(request: pytest.FixtureRequest, dialect: Dialect) -> OpenStore:
    return database_for(request, dialect).open


def models(name: str, live: LiveModel) -> tuple[Model, ...]:
    if live.name == "odd":
        raise Underivable("it is odd")
    price = Price(unit="image", usd="0.1")
    return (Model(id=f"fal/{name}", upstream=name, op=OPERATIONS["image"], prices=(price,), name=live.name),)


CATALOGUE = LiveCatalogue(
    base_url="https://catalogue.test",
    names=re.compile(r"[a-z]+/[a-z]+"),
    documents=lambda name: {"model": Document(f"/{name}"), "price": Document("/price", is_needed=False)},
    read=lambda name, found: LiveModel(name=found["model"]["name"]),
    models=models,
    search=lambda words: {"found": Document(f"/search/{words}")},
    read_found=lambda found, words: tuple(FoundModel(upstream=name) for name in found["found"]),
)


class FakeUpstream:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.at_once = 0
        self.is_answering = asyncio.Event()
        self.is_answering.set()
        self.most = 0
        self.replies: dict[str, Any] = {"/search/fox": ["a/b", "../etc"], "/odd/one": {"name": "odd"}}

    async def get_document(self, target: Any, base_url: str, url: str, **limits: Any) -> Any:
        self.asked.append(url)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        await self.is_answering.wait()
        self.at_once -= 1
        reply = self.replies.get(url, {"name": "plain"})
        if url == "/price" or isinstance(reply, int):
            raise AttemptFailed(Failure("broken", "no", status=reply if isinstance(reply, int) else 404))
        return reply


def opened(store: Any, upstream: FakeUpstream, clock: ManualClock, **settings: Any) -> tuple[Catalog, LiveModels]:
    providers = [replace(each, live=CATALOGUE) if each.slug == "fal" else each for each in discover()]
    chosen = Settings(**settings)
    environ: Mapping[str, str] = {"FAL_KEY": "k"}
    catalog = Catalog(providers, chosen, environ)
    return catalog, LiveModels(catalog, upstream, store, clock, chosen)  # type: ignore[arg-type]


async def test_callers_share_one_question_and_few_are_asked_at_once(open_store: OpenStore) -> None:
    upstream = FakeUpstream()
    async with open_store() as store:
        catalog, live = opened(store, upstream, ManualClock())
        await asyncio.gather(*(live.prepare("fal/a/b", ORG) for _ in range(9)))
        assert sorted(upstream.asked) == ["/a/b", "/price"]
        assert catalog.describe("fal/a/b")["name"] == "plain"
        await asyncio.gather(*(live.prepare(f"fal/x/{letter}", ORG) for letter in "abcdefghijkl"))
        assert upstream.most <= 8
        await live.close()


async def test_nobody_waits_behind_all_the_questions_of_another_organization(open_store: OpenStore) -> None:
    """Not even for a model that the other asks about last."""
    upstream = FakeUpstream()
    upstream.is_answering.clear()
    names = [f"x/{first}{second}" for first in "abcdefgh" for second in "abcde"]
    async with open_store() as store:
        _, live = opened(store, upstream, ManualClock())
        many = [asyncio.create_task(live.prepare(f"fal/{name}", ORG)) for name in names]
        await until(lambda: upstream.at_once == 8 and len(live._places["fal"]._shares[ORG].waiting) == 36)
        other = asyncio.create_task(live.prepare(f"fal/{names[-1]}", OTHER))
        await until(lambda: OTHER in live._places["fal"]._shares)
        upstream.is_answering.set()
        await asyncio.gather(other, *many)
        asked = [url for url in upstream.asked if url != "/price"]
        assert asked.index(f"/{names[-1]}") == 4, "in the first place that became free"
        await live.close()


async def test_an_organization_asks_about_a_limited_number_of_new_models(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it cannot flood a provider's catalogue."""
    monkeypatch.setattr("penstock.models.live_models._ASKED_PER_HOUR", 3)
    upstream, clock = FakeUpstream(), ManualClock()
    upstream.replies["/no/thing"] = 404
    async with open_store() as store:
        _, live = opened(store, upstream, clock)
        await live.prepare("fal/a/b", ORG)
        with pytest.raises(ModelNotFound):
            await live.prepare("fal/no/thing", ORG)
        await live.search("fal", "fox", ORG)
        asked = len(upstream.asked)
        for question in (live.prepare("fal/a/c", ORG), live.search("fal", "owl", ORG)):
            with pytest.raises(RateLimited, match="per hour") as caught:
                await question
            assert caught.value.headers == {"retry-after": "3600"}
        assert len(upstream.asked) == asked
        _, restarted = opened(store, upstream, clock)
        for known in (live, restarted):
            await known.prepare("fal/a/b", ORG)
        await live.prepare("fal/a/c", OTHER)
        clock.advance(3600)
        await live.prepare("fal/a/d", ORG)
        await live.close()


async def test_an_organization_that_asks_about_many_models_pushes_out_its_own(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.models.live_models._STORED_MAX", 5)
    upstream, clock = FakeUpstream(), ManualClock()
    async with open_store() as store:
        _, live = opened(store, upstream, clock)
        for name in ("x/a", "x/b"):
            await live.prepare(f"fal/{name}", OTHER)
        for name in ("m/a", "m/b", "m/c", "m/d", "m/e", "m/f"):
            clock.advance(1)
            await live.prepare(f"fal/{name}", ORG)
        stored = [name for name in NAMES if await store.one("get_live_model", provider="fal", upstream=name)]
        assert stored == ["x/a", "x/b", "m/d", "m/e", "m/f"]
        await live.close()


NAMES = ("x/a", "x/b", "m/a", "m/b", "m/c", "m/d", "m/e", "m/f")


async def test_what_is_missing_is_asked_for_once_a_minute(open_store: OpenStore) -> None:
    upstream, clock = FakeUpstream(), ManualClock()
    upstream.replies["/no/thing"] = 404
    async with open_store() as store:
        _, live = opened(store, upstream, clock)
        for model, reason in (("fal/no/thing", "no such model"), ("fal/odd/one", "it is odd")):
            for _ in range(3):
                with pytest.raises(ModelNotFound, match=reason):
                    await live.prepare(model, ORG)
        assert [url for url in upstream.asked if url != "/price"] == ["/no/thing", "/odd/one"]
        clock.advance(61)
        with pytest.raises(ModelNotFound):
            await live.prepare("fal/no/thing", ORG)
        assert upstream.asked.count("/no/thing") == 2
        upstream.replies["/down/now"] = 503
        with pytest.raises(UpstreamError, match="could not be asked"):
            await live.prepare("fal/down/now", ORG)
        for unheard in ("fal/flux-dev", "flux-dev", "fal/UP/x", "fal/../x", "nobody/a/b", "kling/a/b"):
            await live.prepare(unheard, ORG)
        assert len([url for url in upstream.asked if url != "/price"]) == 4


async def test_a_search_is_remembered_and_strange_names_are_left_out(open_store: OpenStore) -> None:
    upstream, clock = FakeUpstream(), ManualClock()
    async with open_store() as store:
        _, live = opened(store, upstream, clock)
        for _ in range(2):
            assert [found.upstream for found in await live.search("fal", "fox", ORG)] == ["a/b"]
        assert upstream.asked == ["/search/fox"]
        upstream.replies["/search/owl"] = 500
        with pytest.raises(UpstreamError, match="could not be searched"):
            await live.search("fal", "owl", ORG)
        with pytest.raises(InvalidRequest, match="Only these providers have a catalogue to search: `fal`"):
            await live.search("kling", "fox", ORG)
        _, off = opened(store, upstream, clock, live_catalogues=())
        with pytest.raises(InvalidRequest):
            await off.search("fal", "fox", ORG)
