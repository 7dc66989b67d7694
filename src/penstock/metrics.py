"""Count calls, generations and costs, and write them in the text format of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric, SummaryMetricFamily

from penstock.values import ZERO, Nanos, dollars

# From a response out of memory to a video that the caller waited for.
BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
NO_PROVIDER = "none"  # the label when no provider completed the generation


@dataclass(slots=True)
class ResponseCounts:
    """Responses of one method and path: how many of each status, and how long they took."""

    statuses: dict[int, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentValues:
    """Values that are not counted but read when the metrics are requested."""

    jobs_running: int
    pool_workers: int
    pool_places: int
    messages: Mapping[str, int]  # by state
    writes: int
    write_seconds: float
    health: Iterable[Mapping[str, object]]  # rows of Health.report


class Metrics:
    """Counters of this process. Labels are routes and provider slugs, never values chosen by callers.

    Counting happens with every call, so counters are integers in dictionaries. The types of prometheus_client are used
    only by `render`.
    """

    __slots__ = ("_generations", "_responses")

    def __init__(self) -> None:
        self._responses: dict[tuple[str, str], ResponseCounts] = {}
        self._generations: dict[tuple[str, str, str], list[int]] = {}  # their number and cost in nano-dollars

    def count_response(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an HTTP call after the last byte of its response was sent."""
        found = self._responses.get((method, path))
        if found is None:
            found = self._responses[method, path] = ResponseCounts()
        found.statuses[status] = found.statuses.get(status, 0) + 1
        found.buckets[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        found.seconds += seconds

    def count_generation(self, provider: str, task: str, status: str, cost: Nanos = ZERO) -> None:
        """Count a generation or chat call after it was charged or released."""
        found = self._generations.get((provider, task, status))
        if found is None:
            found = self._generations[provider, task, status] = [0, 0]
        found[0] += 1
        found[1] += cost

    def render(self, current: CurrentValues) -> bytes:
        """All metrics in the text format of Prometheus."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector([*self._counted(), *_gauges(current)]))
        return generate_latest(registry)

    def _counted(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "penstock_requests", "HTTP calls by status of the response.", labels=("method", "path", "status")
        )
        durations = HistogramMetricFamily(
            "penstock_request_seconds", "From the head of a call to the end of its response.", labels=("method", "path")
        )
        for (method, path), found in sorted(self._responses.items()):
            for status, count in sorted(found.statuses.items()):
                requests.add_metric((method, path, str(status)), count)
            durations.add_metric((method, path), _buckets(found.buckets), found.seconds)
        generations = CounterMetricFamily(
            "penstock_generations", "Generations and chat calls by how they ended.", labels=_GENERATION_LABELS
        )
        cost = CounterMetricFamily("penstock_cost_usd", "Dollars charged to callers.", labels=_GENERATION_LABELS)
        for name, (count, amount) in sorted(self._generations.items()):
            generations.add_metric(name, count)
            if amount:
                cost.add_metric(name, float(dollars(Nanos(amount))))
        yield from (requests, durations, generations, cost)


_GENERATION_LABELS = ("provider", "task", "status")


@dataclass(frozen=True, slots=True, eq=False)
class _Collector:
    metrics: list[Metric]

    def collect(self) -> list[Metric]:
        return self.metrics


def _buckets(counts: list[int]) -> list[tuple[str, float]]:
    """Cumulative counts: the bucket of each bound includes all lower ones."""
    bounds = [*map(str, BUCKETS_SECONDS), "+Inf"]
    return list(zip(bounds, accumulate(counts), strict=True))


def _gauges(current: CurrentValues) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "penstock_jobs_running", "Generations being run by this process.", value=current.jobs_running
    )
    yield GaugeMetricFamily("penstock_pool_workers", "Child processes for images.", value=current.pool_workers)
    yield GaugeMetricFamily("penstock_pool_places", "Maximum number of child processes.", value=current.pool_places)
    messages = GaugeMetricFamily("penstock_webhook_messages", "Webhook messages by state.", labels=("state",))
    for state, count in sorted(current.messages.items()):
        messages.add_metric((state,), count)
    yield messages
    yield SummaryMetricFamily(
        "penstock_store_write_seconds",
        "From the call of a write to its commit.",
        count_value=current.writes,
        sum_value=current.write_seconds,
    )
    yield from _health(current.health)


def _health(rows: Iterable[Mapping[str, object]]) -> Iterator[Metric]:
    """By provider only: some providers take any model name, and callers must not choose labels."""
    calls = CounterMetricFamily(
        "penstock_provider_calls",
        "Calls to providers; failures count against their health.",
        labels=("provider", "outcome"),
    )
    unhealthy = GaugeMetricFamily(
        "penstock_provider_models_unhealthy", "Models that are tried last, after failures.", labels=("provider",)
    )
    totals: dict[str, list[int]] = {}
    for row in rows:
        found = totals.setdefault(str(row["provider"]), [0, 0, 0])
        for place, amount in enumerate((row["successes"], row["failures"], not row["healthy"])):
            found[place] += amount if isinstance(amount, int) else 0
    for provider, (successes, failures, paused) in sorted(totals.items()):
        calls.add_metric((provider, "success"), successes)
        calls.add_metric((provider, "failure"), failures)
        unhealthy.add_metric((provider,), paused)
    yield from (calls, unhealthy)
