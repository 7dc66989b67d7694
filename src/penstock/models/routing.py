"""Put the candidates of a call in the order in which to try them, and leave out those that cannot serve it."""

import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from decimal import Decimal
from math import inf
from typing import Any

import msgspec
from msgspec.structs import replace

from penstock.errors import InputsNotTaken, InvalidRequest, ModelDisabled, quoted, without_frames
from penstock.models.catalog import Catalog
from penstock.models.performance import Performance, Performances
from penstock.models.preferences import FIELD, NO_PREFERENCES, Preferences
from penstock.providers.spec import Model
from penstock.upstream.candidate import Candidate
from penstock.values import OrgId

IsHealthy = Callable[[str, str], bool]  # for the slug of a provider and its name of a model
# By the accounts of the providers that an organization may use.
Expand = Callable[[tuple[Candidate, ...], OrgId], tuple[Candidate, ...]]
ReadPerformances = Callable[[str, OrgId], Awaitable[Performances]]  # for a task and an organization
Costs = Mapping[str, Decimal]  # what a candidate would cost in dollars, by the names of `max_price`


class LeftOut(msgspec.Struct, frozen=True):
    """A candidate that is not tried, and why."""

    candidate: Candidate
    reason: str


class Route(msgspec.Struct, frozen=True):
    """Candidates in the order in which to try them; forced if the caller named the provider."""

    candidates: tuple[Candidate, ...]
    forced: bool = False
    left_out: tuple[LeftOut, ...] = ()

    @property
    def first(self) -> Candidate:
        return self.candidates[0]


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """What the order of candidates depends on besides the preferences."""

    is_healthy: IsHealthy
    has_ended: Callable[[Model], bool] = lambda model: False
    costs: Callable[[Candidate], Costs | None] = lambda candidate: None  # None: the price is not known
    records: Performances = {}

    def healthy(self, candidate: Candidate) -> bool:
        return self.is_healthy(*candidate.health_key)

    def comes_last(self, candidate: Candidate) -> bool:
        account = candidate.account
        if account is not None and (account.failed_status is not None or account.wait is not None):
            return True
        return not self.healthy(candidate) or self.has_ended(candidate.model)

    def performance(self, candidate: Candidate) -> Performance | None:
        return self.records.get((candidate.provider.slug, candidate.model.upstream))


class Choice(msgspec.Struct, frozen=True):
    """The candidates of a call, and what they were chosen by."""

    route: Route
    preferences: Preferences
    knowledge: Knowledge

    def in_preferred_order(self, costs: Callable[[Candidate], Costs | None]) -> "Choice":
        """The candidates in the preferred order, without those that are too expensive."""
        knowledge = replace(self.knowledge, costs=costs)
        return replace(self, route=preferred_route(self.route, self.preferences, knowledge), knowledge=knowledge)

    def reason(self, candidate: Candidate) -> str:
        """Why a candidate stands where it does."""
        return _reason(candidate, self.preferences, self.knowledge)


class Routing:
    """Orders candidates for the calls of this process; the catalog finds them."""

    def __init__(
        self,
        catalog: Catalog,
        is_healthy: IsHealthy,
        read_performances: ReadPerformances,
        expand: Expand = lambda candidates, org_id: candidates,
    ) -> None:
        self._catalog = catalog
        self._expand = expand
        self._knowledge = Knowledge(is_healthy=is_healthy, has_ended=catalog.has_ended)
        self._read_performances = read_performances

    def route(self, model: str, tasks: Sequence[str], org_id: OrgId) -> Route:
        """Candidates by priority, and in random order by weight among the same priority. Unhealthy ones come last, and
        those whose provider has shut the model down.

        Raises ModelNotFound, ModelDisabled or InvalidRequest.
        """
        candidates, forced = self._catalog.find(model, tasks)
        candidates = self._expand(candidates, org_id)
        if not candidates:
            raise ModelDisabled(f"No account serves the model `{model}` for your organization.", param="model")
        if len(candidates) > 1:
            candidates = tuple(sorted(candidates, key=self._usual_rank))
        return Route(candidates, forced)

    def _usual_rank(self, candidate: Candidate) -> tuple[bool, bool, int, int, float]:
        account = candidate.account
        weight = candidate.model.weight * (account.share if account else 1)
        return (
            self._knowledge.comes_last(candidate),
            account is None or account.org_id is None,
            candidate.model.priority,
            account.priority if account else 0,
            -(random.random() ** (1 / weight)),  # noqa: S311 - for load, not for security
        )

    async def choose(
        self,
        route: Route,
        check: Callable[[Model], None],
        preferences: Preferences = NO_PREFERENCES,
        *,
        task: str,
        org_id: OrgId,
    ) -> Choice:
        """The candidates that the caller allows and whose model passes `check`, which raises InvalidRequest otherwise.

        Raises InvalidRequest if there is none. `Choice.in_preferred_order` sorts them.
        """
        if preferences is NO_PREFERENCES:
            return self.choose_usual(route, check)
        route = capable_route(allowed_route(route, preferences, self._catalog.providers.known), check)
        records = await self._read_performances(task, org_id) if preferences.needs_records else {}
        return Choice(route, preferences, replace(self._knowledge, records=records) if records else self._knowledge)

    def choose_usual(self, route: Route, check: Callable[[Model], None]) -> Choice:
        """As `choose`, for a caller without preferences."""
        return Choice(capable_route(route, check), NO_PREFERENCES, self._knowledge)

    def describe(self, model: str) -> list[dict[str, Any]]:
        """The candidates of a model in the usual order, as the model list shows them: by priority, then by weight."""
        return [
            {
                "provider": candidate.provider.slug,
                "provider_name": candidate.provider.name,
                "model": candidate.model.upstream,
                "kind": candidate.model.op.task,
                "priority": candidate.model.priority,
                "weight": candidate.model.weight,
                "shutdown_date": candidate.model.shutdown_date or None,
                "healthy": self._knowledge.healthy(candidate),
            }
            for candidate in sorted(self._catalog.serving(model), key=self._listed_rank)
        ]

    def _listed_rank(self, candidate: Candidate) -> tuple[bool, int, float]:
        return self._knowledge.comes_last(candidate), candidate.model.priority, -candidate.model.weight


# ---------------------------------------------------------------------------------------------------------- leaving out


def capable_route(route: Route, check: Callable[[Model], None]) -> Route:
    """The route without candidates whose model cannot serve the request: for those, `check` raises InvalidRequest.

    Of a forced route, only the first capable candidate is left. If there is none, raises the first InvalidRequest of a
    model that takes the input files of the call, or else the first one.
    """
    if len(route.candidates) == 1:
        check(route.first.model)
        return route
    capable: list[Candidate] = []
    left_out: list[LeftOut] = []
    refusals: list[InvalidRequest] = []
    for candidate in route.candidates:
        try:
            check(candidate.model)
        except InvalidRequest as problem:
            refusals.append(without_frames(problem))
            left_out.append(LeftOut(candidate, problem.message))
        else:
            capable.append(candidate)
    if refusals and not capable:
        refusals.sort(key=lambda refusal: isinstance(refusal, InputsNotTaken))
        raise refusals.pop(0)  # taken out: a variable of ours that refers to it would keep the call in memory
    if not refusals and not (route.forced and len(capable) > 1):
        return route
    # Other accounts of the forced provider are the same model.
    first = capable[0]
    same = [
        each
        for each in capable
        if (each.provider, each.listed or each.model) == (first.provider, first.listed or first.model)
    ]
    tried = tuple(same if route.forced else capable)
    return replace(route, candidates=tried, left_out=(*route.left_out, *left_out))


def route_of_task(route: Route, task: str) -> Route:
    """The route without candidates that do something else: one id may be an editor here and an upscaler there."""
    candidates = tuple(candidate for candidate in route.candidates if candidate.model.op.task == task)
    if len(candidates) == len(route.candidates):
        return route
    left_out = (
        LeftOut(candidate, f"its task is `{candidate.model.op.task}`, not `{task}`")
        for candidate in route.candidates
        if candidate.model.op.task != task
    )
    return replace(route, candidates=candidates, left_out=(*route.left_out, *left_out))


def allowed_route(route: Route, preferences: Preferences, known: Collection[str]) -> Route:
    """The route without the providers that the caller excludes. `known` are the names of all providers.

    Raises InvalidRequest for a name that no provider has, and if no candidate is left.
    """
    for name in ("order", "only", "ignore"):
        for slug in getattr(preferences, name):
            if slug not in known:
                raise _refusal(name, f"names `{slug}`, which is not a provider; this model is served by", route)
    kept: list[Candidate] = []
    left_out: list[LeftOut] = []
    for candidate in route.candidates:
        reason = _exclusion(candidate.provider.slug, preferences)
        if reason is None:
            kept.append(candidate)
        else:
            left_out.append(LeftOut(candidate, reason))
    if not kept:
        name = "only" if preferences.only else "ignore" if preferences.ignore else "order"
        raise _refusal(name, "leaves no provider; this model is served by", route)
    return replace(route, candidates=tuple(kept), left_out=(*route.left_out, *left_out)) if left_out else route


def _exclusion(slug: str, preferences: Preferences) -> str | None:
    """Why a provider is not tried, or None."""
    if preferences.only and slug not in preferences.only:
        return f"not in `{FIELD}.only`"
    if slug in preferences.ignore:
        return f"in `{FIELD}.ignore`"
    if preferences.order and not preferences.allow_fallbacks and slug not in preferences.order:
        return f"not in `{FIELD}.order`, and `{FIELD}.allow_fallbacks` is false"
    return None


def _refusal(name: str, rule: str, route: Route) -> InvalidRequest:
    served_by = quoted(dict.fromkeys(candidate.provider.slug for candidate in route.candidates))
    return InvalidRequest(f"`{FIELD}.{name}` {rule} {served_by}.", param=f"{FIELD}.{name}")


def preferred_route(route: Route, preferences: Preferences, knowledge: Knowledge) -> Route:
    """The route in the preferred order, without candidates that are too expensive. Unhealthy ones stay last.

    Raises InvalidRequest if all are too expensive.
    """
    candidates = sorted(route.candidates, key=lambda candidate: _rank(candidate, preferences, knowledge))
    route = affordable_route(replace(route, candidates=tuple(candidates)), preferences, knowledge.costs)
    if preferences.allow_fallbacks or preferences.order:
        return route
    reason = f"`{FIELD}.allow_fallbacks` is false"
    left_out = (LeftOut(candidate, reason) for candidate in route.candidates[1:])
    return replace(route, candidates=route.candidates[:1], left_out=(*route.left_out, *left_out))


def affordable_route(route: Route, preferences: Preferences, costs: Callable[[Candidate], Costs | None]) -> Route:
    """The route without the candidates above `max_price`. Raises InvalidRequest if none is left."""
    if not preferences.max_price:
        return route
    found = [(candidate, _excess(costs(candidate), preferences.max_price)) for candidate in route.candidates]
    kept = tuple(candidate for candidate, excess in found if excess is None)
    if not kept:
        parts = "; ".join(f"`{candidate.provider.slug}` {excess}" for candidate, excess in found)
        raise InvalidRequest(f"`{FIELD}.max_price` leaves no provider: {parts}.", param=f"{FIELD}.max_price")
    left_out = (LeftOut(candidate, excess) for candidate, excess in found if excess is not None)
    return replace(route, candidates=kept, left_out=(*route.left_out, *left_out))


def _excess(costs: Costs | None, limits: Mapping[str, Decimal]) -> str | None:
    """Why a candidate is too expensive, or None."""
    if costs is None:
        return "has no known price"
    for name, limit in limits.items():
        if costs[name] > limit:
            return f"would cost {costs[name].normalize():f} dollars ({name})"
    return None


def _rank(candidate: Candidate, preferences: Preferences, knowledge: Knowledge) -> tuple[bool, int, float]:
    """Where a candidate belongs: at the end or not, then by `order`, then by `sort`; among equals the order stays."""
    slug = candidate.provider.slug
    order = preferences.order
    place = order.index(slug) if slug in order else len(order)
    return knowledge.comes_last(candidate), place, _sort_key(candidate, preferences, knowledge)


def _sort_key(candidate: Candidate, preferences: Preferences, knowledge: Knowledge) -> float:
    """Lower is better. A provider without records is tried first, so that it gets some."""
    if preferences.sort == "price":
        costs = knowledge.costs(candidate)
        return inf if costs is None else float(costs["request"])
    performance = knowledge.performance(candidate)
    if preferences.sort is None or performance is None:
        return 0.0
    return performance.expected_seconds if preferences.sort == "latency" else -performance.expected_throughput


def _reason(candidate: Candidate, preferences: Preferences, knowledge: Knowledge) -> str:
    slug = candidate.provider.slug
    account = candidate.account
    if account is not None and account.failed_status is not None:
        return f"its vendor refused the account with HTTP {account.failed_status}: tried last"
    if account is not None and account.wait is not None:
        return "the account has reached its limits: tried last"
    if not knowledge.healthy(candidate):
        return "its last calls failed: tried last"
    if knowledge.has_ended(candidate.model):
        return f"its provider was to shut it down on {candidate.model.shutdown_date}: tried last"
    if slug in preferences.order:
        return f"number {preferences.order.index(slug) + 1} of `{FIELD}.order`"
    if preferences.sort == "price":
        return "sorted by price"
    if preferences.sort is not None:
        performance = knowledge.performance(candidate)
        return performance.summary if performance else "no records of the last day: tried first, to get some"
    return f"priority {candidate.model.priority}, weight {candidate.model.weight}"
