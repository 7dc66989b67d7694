"""Route a past request again in a scenario: who would have served it, when, and for how much."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

import msgspec

from penstock.cache import Cache
from penstock.chat.pricing import Usage, make_bill
from penstock.drills.scenario import Scenario
from penstock.errors import Problem
from penstock.models.catalog import Catalog
from penstock.schema import JOB_TASKS
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.values import ZERO, Nanos

What = Literal["unaffected", "failed_over", "waited", "failed", "unknown"]
_MODELS_KEPT = 256


class PastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was completed, as the store has it."""

    id: str
    kind: str
    model: str
    provider: str  # that served it
    upstream_model: str | None
    cost: Nanos
    duration_ms: int
    created_at_ms: int
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    plan: bytes | None  # that of a generation; None of what is passed on, such as a chat


class Outcome(NamedTuple):
    """What would have become of a request."""

    what: What
    provider: str | None  # that would have served it
    cost: Nanos
    duration_ms: int


class _Planned(msgspec.Struct, frozen=True):
    provider: str
    upstream: str
    hold: Nanos = ZERO


class _Plan(msgspec.Struct, frozen=True):
    """What a drill needs of a stored plan."""

    candidates: tuple[_Planned, ...]


_decode_plan = msgspec.json.Decoder(_Plan).decode


class Rerouter:
    """Routes the requests of a drill, in which the scenario lasts until `until_ms`."""

    def __init__(self, catalog: Catalog, settings: Settings, scenario: Scenario, until_ms: int) -> None:
        self._catalog = catalog
        self._settings = settings
        self._scenario = scenario
        self._until_ms = until_ms
        self._found: Cache[tuple[str, str], Sequence[Candidate] | None] = Cache(lambda: 0.0, _MODELS_KEPT)

    def outcome(self, past: PastRequest) -> Outcome:
        """What would have become of a request."""
        scenario = self._scenario
        if not scenario.changes(past.provider):
            return Outcome("unaffected", past.provider, past.cost, past.duration_ms)
        if past.provider not in scenario.down:
            return self._later_or_dearer(past)
        served = self._planned_elsewhere(past, past.plan) if past.plan else self._routed_elsewhere(past)
        if served is None:
            return Outcome("unknown", None, past.cost, past.duration_ms)
        if served.provider is None:
            return self._without_provider(past)
        dearer = scenario.dearer.get(served.provider, Decimal(1))
        return served._replace(cost=Nanos(int(served.cost * dearer)))

    def _later_or_dearer(self, past: PastRequest) -> Outcome:
        """The same provider, which takes or costs more. Beyond the time that it may take, the call fails."""
        scenario = self._scenario
        took_ms = int(past.duration_ms * scenario.slow.get(past.provider, Decimal(1)))
        if past.provider in scenario.slow and took_ms > self._most_ms(past.kind):
            return Outcome("failed", None, ZERO, self._most_ms(past.kind))
        cost = Nanos(int(past.cost * scenario.dearer.get(past.provider, Decimal(1))))
        return Outcome("unaffected", past.provider, cost, took_ms)

    def _most_ms(self, kind: str) -> int:
        """How long a provider may take."""
        settings = self._settings
        if kind in JOB_TASKS:
            return int(settings.job_deadline_seconds * 1000)
        if kind == "chat":
            return int(max(settings.upstream_seconds, settings.stream_seconds) * 1000)
        return int(settings.upstream_seconds * 1000)

    def _without_provider(self, past: PastRequest) -> Outcome:
        """A video or a sound waits for its provider until its deadline; callers of anything else get an error."""
        wait_ms = self._until_ms - past.created_at_ms
        if past.kind in JOB_TASKS and wait_ms + past.duration_ms <= self._most_ms(past.kind):
            return Outcome("waited", past.provider, past.cost, past.duration_ms + max(0, wait_ms))
        return Outcome("failed", None, ZERO, 0)

    def _planned_elsewhere(self, past: PastRequest, plan: bytes) -> Outcome:
        """The next candidate of the plan by which the request was accepted. Those before the one that served it had
        failed. What it would have cost follows from the most that either may cost.
        """
        candidates = _decode_plan(plan).candidates
        sent_to = (past.provider, past.upstream_model)
        served = [place for place, each in enumerate(candidates) if (each.provider, each.upstream) == sent_to]
        later = candidates[served[0] + 1 :] if served else candidates
        following = next((each for each in later if each.provider not in self._scenario.down), None)
        if following is None:
            return _NOBODY
        hold = candidates[served[0]].hold if served else ZERO
        cost = Nanos(past.cost * following.hold // hold) if hold else following.hold
        return Outcome("failed_over", following.provider, cost, past.duration_ms)

    def _routed_elsewhere(self, past: PastRequest) -> Outcome | None:
        """The first other candidate of today's catalog, for what has no plan; None if the model is unknown today."""
        candidates = self._candidates(past.model, past.kind)
        if candidates is None:
            return None
        following = next((each for each in candidates if each.provider.slug not in self._scenario.down), None)
        if following is None:
            return _NOBODY
        return Outcome("failed_over", following.provider.slug, _cost_at(following, past, candidates), past.duration_ms)

    def _candidates(self, model: str, kind: str) -> Sequence[Candidate] | None:
        found = self._found.get((model, kind))
        if found is None:
            try:
                listed = self._catalog.find(model, (kind,)).candidates
            except Problem:
                return None
            found = sorted(listed, key=lambda each: (each.model.priority, -each.model.weight))
            self._found.put((model, kind), found, 1.0)
        return found


_NOBODY = Outcome("failed", None, ZERO, 0)


def _cost_at(candidate: Candidate, past: PastRequest, candidates: Sequence[Candidate]) -> Nanos:
    """What a chat would have cost by its tokens; anything else by the prices of both, if they have the same unit."""
    if past.input_tokens is not None:
        details = {"cached_tokens": past.cached_tokens or 0}
        counted = {"prompt_tokens": past.input_tokens, "completion_tokens": past.output_tokens or 0}
        usage = msgspec.convert({**counted, "prompt_tokens_details": details}, Usage)
        return make_bill(candidate.token_prices, usage).cost
    former = next((each for each in candidates if each.provider.slug == past.provider), None)
    if former is None or len(former.model.prices) != 1 or len(candidate.model.prices) != 1:
        return past.cost
    [was], [now] = former.model.prices, candidate.model.prices
    if was.unit != now.unit or not Decimal(was.usd):
        return past.cost
    return Nanos(int(past.cost * Decimal(now.usd) / Decimal(was.usd)))
