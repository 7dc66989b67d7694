"""Count what this process does in plain numbers, and write them down as Prometheus reads them."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric, SummaryMetricFamily

from penstock.values import ZERO, Nanos, dollars

# From an answer out of memory to a film that somebody waited for.
BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
NOBODY = "none"  # in place of a provider: none was reached, or none answered


@dataclass(slots=True)
class Answers:
    """What one method of one path answered, and how long it took."""

    statuses: dict[int, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is not counted but looked up, at the moment somebody asks."""

    jobs_running: int
    pool_workers: int
    pool_places: int
    messages: Mapping[str, int]  # by state
    writes: int
    write_seconds: float
    health: Iterable[Mapping[str, object]]  # rows of Health.report


class Metrics:
    """Labels come from our own tables, never from callers: paths as routes write them, providers by slug.

    Counting happens with every call, so it is integers in dictionaries; Prometheus' own types are made only when
    somebody reads them.
    """

    __slots__ = ("_answers", "_ends")

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], Answers] = {}
        self._ends: dict[tuple[str, str, str], list[int]] = {}  # how many, and nano-dollars

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """An HTTP call, once the last byte of its answer is out."""
        found = self._answers.get((method, path))
        if found is None:
            found = self._answers[method, path] = Answers()
        found.statuses[status] = found.statuses.get(status, 0) + 1
        found.buckets[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        found.seconds += seconds

    def ended(self, provider: str, task: str, status: str, cost: Nanos = ZERO) -> None:
        """A generation or a conversation, once it is settled."""
        found = self._ends.get((provider, task, status))
        if found is None:
            found = self._ends[provider, task, status] = [0, 0]
        found[0] += 1
        found[1] += cost

    def text(self, figures: Figures) -> bytes:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected([*self._counted(), *_looked_up(figures)]))
        return generate_latest(registry)

    def _counted(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "penstock_requests", "HTTP calls by what was answered.", labels=("method", "path", "status")
        )
        durations = HistogramMetricFamily(
            "penstock_request_seconds", "From the head of a call to the end of its answer.", labels=("method", "path")
        )
        for (method, path), found in sorted(self._answers.items()):
            for status, count in sorted(found.statuses.items()):
                requests.add_metric((method, path, str(status)), count)
            durations.add_metric((method, path), _buckets(found.buckets), found.seconds)
        ends = CounterMetricFamily(
            "penstock_generations", "Generations and conversations by how they ended.", labels=_ENDS
        )
        cost = CounterMetricFamily("penstock_cost_usd", "Dollars charged to callers.", labels=_ENDS)
        for name, (count, amount) in sorted(self._ends.items()):
            ends.add_metric(name, count)
            if amount:
                cost.add_metric(name, float(dollars(Nanos(amount))))
        yield from (requests, durations, ends, cost)


_ENDS = ("provider", "task", "status")


@dataclass(frozen=True, slots=True, eq=False)
class _Collected:
    metrics: list[Metric]

    def collect(self) -> list[Metric]:
        return self.metrics


def _buckets(counts: list[int]) -> list[tuple[str, float]]:
    """Prometheus wants each bucket with all that fits below it."""
    bounds = [*map(str, BUCKETS_SECONDS), "+Inf"]
    return list(zip(bounds, accumulate(counts), strict=True))


def _looked_up(figures: Figures) -> Iterator[Metric]:
    yield GaugeMetricFamily("penstock_jobs_running", "Generations being driven here.", value=figures.jobs_running)
    yield GaugeMetricFamily("penstock_pool_workers", "Child processes for pictures.", value=figures.pool_workers)
    yield GaugeMetricFamily("penstock_pool_places", "Most child processes at a time.", value=figures.pool_places)
    messages = GaugeMetricFamily("penstock_webhook_messages", "Webhook messages by state.", labels=("state",))
    for state, count in sorted(figures.messages.items()):
        messages.add_metric((state,), count)
    yield messages
    yield SummaryMetricFamily(
        "penstock_store_write_seconds",
        "From asking for a write to knowing that it lasts.",
        count_value=figures.writes,
        sum_value=figures.write_seconds,
    )
    yield from _health(figures.health)


def _health(rows: Iterable[Mapping[str, object]]) -> Iterator[Metric]:
    """By provider only: where a provider takes any model, the names of models are the callers'."""
    calls = CounterMetricFamily(
        "penstock_provider_calls",
        "Calls to providers; bad ones count against their health.",
        labels=("provider", "outcome"),
    )
    unwell = GaugeMetricFamily(
        "penstock_provider_models_unwell", "Models that are asked last, after failures.", labels=("provider",)
    )
    totals: dict[str, list[int]] = {}
    for row in rows:
        found = totals.setdefault(str(row["provider"]), [0, 0, 0])
        for place, amount in enumerate((row["good"], row["bad"], not row["well"])):
            found[place] += amount if isinstance(amount, int) else 0
    for provider, (good, bad, sick) in sorted(totals.items()):
        calls.add_metric((provider, "good"), good)
        calls.add_metric((provider, "bad"), bad)
        unwell.add_metric((provider,), sick)
    yield from (calls, unwell)
