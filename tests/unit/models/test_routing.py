"""Which candidates are tried, in which order, and why the others are not."""

import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.models.catalog import Catalog
from penstock.models.performance import Performance
from penstock.models.preferences import Preferences
from penstock.models.routing import (
    Choice,
    Knowledge,
    Route,
    Routing,
    affordable_route,
    allowed_route,
    capable_route,
    preferred_route,
)
from penstock.providers import openai_compatible
from penstock.providers.spec import Model, Price, Provider, Source
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.values import OrgId
from tests.manual_clock import ManualClock
from tests.unit.models.small_catalog import IMAGE, catalog, model, provider

KNOWN = {"a", "b", "c", "elsewhere"}
USD = {"a": "0.3", "b": "0.1", "c": "0.2"}
RECORDS = {
    ("a", "m"): Performance(10, 0, 4.0, 1.0),
    ("b", "m"): Performance(1, 9, 1.0, 9.0),  # fast, but nine of ten calls fail
    ("c", "m"): Performance(0, 3, float("inf"), 0.0),
}


def candidate(slug: str, upstream: str = "m") -> Candidate:
    model = Model(
        id="fox",
        upstream=upstream,
        op=openai_compatible.OPERATIONS["image"],
        prices=(Price(unit="image", usd="1", source=Source("test")),),
    )
    return Candidate(Provider(slug=slug, name=slug, docs="", base_url="https://x.test", models=(model,)), model)


ROUTE = Route((candidate("a"), candidate("b"), candidate("c")))


def slugs(route: Route) -> str:
    return "".join(candidate.provider.slug for candidate in route.candidates)


def chosen(unhealthy: str = "", records: dict[Any, Performance] | None = None, **parts: Any) -> Choice:
    preferences = Preferences(**parts)
    knowledge = Knowledge(
        is_healthy=lambda slug, upstream: slug not in unhealthy,
        costs=lambda candidate: {"request": Decimal(USD[candidate.provider.slug])},
        records=RECORDS if records is None else records,
    )
    route = preferred_route(allowed_route(ROUTE, preferences, KNOWN), preferences, knowledge)
    return Choice(route, preferences, knowledge)


def test_each_preference_decides_the_order() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "abc"),
        ({"order": ("c",)}, "cab"),
        ({"order": ("c", "elsewhere", "b")}, "cba"),
        ({"order": ("c", "b"), "allow_fallbacks": False}, "cb"),
        ({"allow_fallbacks": False}, "a"),
        ({"only": ("c", "a")}, "ac"),
        ({"ignore": ("a",)}, "bc"),
        ({"sort": "price"}, "bca"),
        ({"sort": "price", "allow_fallbacks": False}, "b"),
        ({"sort": "price", "order": ("a",)}, "abc"),
        ({"sort": "latency"}, "abc"),
        ({"sort": "throughput"}, "abc"),
        ({"sort": "latency", "records": {("a", "m"): RECORDS["a", "m"]}}, "bca"),
        ({"max_price": {"request": Decimal("0.25")}}, "bc"),
        ({"sort": "price", "unhealthy": "b"}, "cab"),
        ({"order": ("b",), "unhealthy": "b"}, "acb"),
    ]
    assert [(parts, slugs(chosen(**parts).route)) for parts, _ in cases] == cases


def test_a_fast_provider_that_fails_is_not_preferred() -> None:
    reliable = {**RECORDS, ("b", "m"): Performance(9, 1, 1.0, 9.0)}
    assert slugs(chosen(sort="latency", records=reliable).route) == "bac"
    assert slugs(chosen(sort="throughput", records=reliable).route) == "bac"


def test_the_reasons_name_what_decided() -> None:
    found = chosen(sort="latency", order=("c",), unhealthy="b")
    assert [found.reason(candidate) for candidate in found.route.candidates] == [
        "number 1 of `provider.order`",
        "4 s, 1 per second, 100% of the last calls succeeded",
        "its last calls failed: tried last",
    ]
    found = chosen(sort="throughput", records={})
    assert "no records" in found.reason(found.route.first)
    assert chosen(sort="price").reason(candidate("a")) == "sorted by price"
    assert chosen().reason(candidate("a")) == "priority 0, weight 1"
    failing = chosen(sort="latency", records={("c", "m"): RECORDS["c", "m"]})
    assert failing.reason(candidate("c")) == "0% of the last calls succeeded"


def test_whatever_is_left_out_says_why() -> None:
    found = chosen(only=("a", "b"), ignore=("b",)).route
    assert [(each.candidate.provider.slug, each.reason) for each in found.left_out] == [
        ("b", "in `provider.ignore`"),
        ("c", "not in `provider.only`"),
    ]
    dear = chosen(max_price={"request": Decimal("0.15")}, allow_fallbacks=False).route
    assert [(each.candidate.provider.slug, each.reason) for each in dear.left_out] == [
        ("a", "would cost 0.3 dollars (request)"),
        ("c", "would cost 0.2 dollars (request)"),
    ]


def test_preferences_that_leave_nobody_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"only": ("elsewhere",)}, "provider.only", "served by `a`, `b`, `c`"),
        ({"ignore": ("a", "b", "c")}, "provider.ignore", "served by `a`, `b`, `c`"),
        ({"order": ("elsewhere",), "allow_fallbacks": False}, "provider.order", "served by `a`, `b`, `c`"),
        ({"order": ("a", "nobody")}, "provider.order", "`nobody`, which is not a provider"),
        ({"max_price": {"request": Decimal("0.05")}}, "provider.max_price", "`b` would cost 0.1 dollars"),
    ]
    for parts, param, word in cases:
        with pytest.raises(InvalidRequest, match=word) as caught:
            chosen(**parts)
        assert caught.value.param == param


def test_a_price_that_nobody_knows_counts_as_too_high() -> None:
    preferences = Preferences(sort="price", max_price={"request": Decimal(1)})
    costs = {"a": None, "b": {"request": Decimal(1)}, "c": {"request": Decimal(0)}}
    knowledge = Knowledge(is_healthy=lambda *_: True, costs=lambda candidate: costs[candidate.provider.slug])
    assert slugs(preferred_route(ROUTE, Preferences(sort="price"), knowledge)) == "cba"
    found = affordable_route(ROUTE, preferences, knowledge.costs)
    assert [each.reason for each in found.left_out] == ["has no known price"]


# ---------------------------------------------------------------------------------------------------------- capability


def test_candidates_that_cannot_serve_the_request_are_left_out() -> None:
    def only_b(model: Model) -> None:
        if model is not ROUTE.candidates[1].model:
            raise InvalidRequest("not here")

    def nobody(model: Model) -> None:
        raise InvalidRequest(f"not {model.upstream}")

    found = capable_route(ROUTE, only_b)
    assert slugs(found) == "b"
    assert [(each.candidate.provider.slug, each.reason) for each in found.left_out] == [
        ("a", "not here"),
        ("c", "not here"),
    ]
    with pytest.raises(InvalidRequest, match="not m"):
        capable_route(ROUTE, nobody)


def test_of_a_forced_route_the_first_capable_endpoint_is_left() -> None:
    """Text-to-video and image-to-video may have two endpoints."""
    forced = Route((candidate("a", "words"), candidate("a", "moves")), forced=True)
    for upstream in ("words", "moves"):

        def check(model: Model, upstream: str = upstream) -> None:
            if model.upstream != upstream:
                raise InvalidRequest("not here")

        assert [found.executed_model for found in capable_route(forced, check).candidates] == [f"a/{upstream}"]
    assert len(capable_route(forced, lambda model: None).candidates) == 1


# ---------------------------------------------------------------------------------------------------- the usual order

ORG = OrgId("org_1")


def all_healthy(slug: str, upstream: str) -> bool:
    return True


async def no_records(task: str, org_id: str) -> Mapping[tuple[str, str], Performance]:
    return {}


def route(known: Catalog, is_healthy: Any) -> Route:
    return Routing(known, is_healthy, no_records).route("fox", IMAGE, ORG)


def providers_of_fox(*members: tuple[str, int, int]) -> Catalog:
    """Providers of one model: slug, priority, weight."""
    return catalog(*(provider(slug, model("fox", priority=group, weight=weight)) for slug, group, weight in members))


def orders(known: Catalog, times: int = 4000, is_healthy: Any = all_healthy) -> Counter[str]:
    random.seed(17)
    return Counter(slugs(route(known, is_healthy)) for _ in range(times))


def test_lower_priority_numbers_come_first() -> None:
    assert orders(providers_of_fox(("c", 2, 1), ("a", 0, 1), ("b", 1, 9)), 50) == {"abc": 50}


def test_weights_decide_how_often_each_provider_is_first() -> None:
    """Three to one, within limits that fail by chance once in thousands of runs."""
    first = Counter[str]()
    for order, times in orders(providers_of_fox(("a", 0, 3), ("b", 0, 1))).items():
        first[order[0]] += times
    assert 2900 < first["a"] < 3100


def test_weights_decide_the_whole_order() -> None:
    found = orders(providers_of_fox(("a", 0, 6), ("b", 0, 3), ("c", 0, 1)))
    expected = {"abc": 6 / 10 * 3 / 4, "acb": 6 / 10 * 1 / 4, "bac": 3 / 10 * 6 / 7, "bca": 3 / 10 * 1 / 7,
                "cab": 1 / 10 * 6 / 9, "cba": 1 / 10 * 3 / 9}  # fmt: skip
    assert {order: times / 4000 for order, times in found.items()} == pytest.approx(expected, abs=0.03)


def test_unhealthy_candidates_come_last_and_are_not_left_out() -> None:
    known = providers_of_fox(("a", 0, 9), ("b", 1, 1), ("c", 2, 1))
    assert orders(known, 50, lambda slug, upstream: slug != "a") == {"bca": 50}
    assert orders(known, 50, lambda slug, upstream: slug == "c") == {"cab": 50}
    assert orders(known, 50, lambda slug, upstream: False) == {"abc": 50}


def test_providers_that_have_shut_the_model_down_come_last() -> None:
    days = {"a": "2026-11-17", "b": "2026-11-18", "c": "2026-11-19"}
    members = [provider(slug, model("fox", shutdown_date=day)) for slug, day in days.items()]
    clock = ManualClock(1_794_960_000_000)  # on 2026-11-18
    known = Catalog([*members, provider("d", model("fox", priority=9))], Settings(), {}, clock)
    routing = Routing(known, all_healthy, no_records)
    assert slugs(routing.route("fox", IMAGE, ORG))[:2] == "cd"
    assert [row["provider"] for row in routing.describe("fox")][:2] == ["c", "d"]
    knowledge = Knowledge(is_healthy=all_healthy, has_ended=known.has_ended)
    preferred = preferred_route(routing.route("fox", IMAGE, ORG), Preferences(order=("b",)), knowledge)
    assert slugs(preferred)[:2] == "cd"
    choice = Choice(preferred, Preferences(order=("b",)), knowledge)
    reasons = {one.provider.slug: choice.reason(one) for one in preferred.candidates}
    assert reasons["b"] == "its provider was to shut it down on 2026-11-18: tried last"


def test_health_is_that_of_the_providers_own_model() -> None:
    asked: list[tuple[str, str]] = []

    def is_healthy(slug: str, upstream: str) -> bool:
        asked.append((slug, upstream))
        return True

    route(catalog(), is_healthy)
    assert sorted(asked) == [("one", "fox-v1"), ("two", "acme/fox")]
