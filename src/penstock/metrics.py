"""Count calls, generations and costs, and write them in the text format of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
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
    health: Sequence[Mapping[str, Any]]  # rows of Health.report


class Figures(msgspec.Struct, frozen=True):
    """All figures of one process, or the sum of several."""

    responses: dict[tuple[str, str], ResponseCounts]
    generations: dict[tuple[str, str, str], list[int]]
    current: CurrentValues


class Metrics:
    """Counters of this process. Labels are routes and provider slugs, never values chosen by callers.

    Counting happens with every call, so counters are integers in dictionaries. The types of prometheus_client are used
    only by `render`.
    """

    __slots__ = ("_exchange", "_generations", "_responses")

    def __init__(self) -> None:
        self._responses: dict[tuple[str, str], ResponseCounts] = {}
        self._generations: dict[tuple[str, str, str], list[int]] = {}  # their number and cost in nano-dollars
        self._exchange: FigureExchange | None = None

    def share(self, exchange: "FigureExchange") -> None:
        """Add up the figures of all processes that share a port, instead of rendering those of this one alone."""
        self._exchange = exchange

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

    def publish(self, current: CurrentValues) -> Figures:
        """Let the other processes see the figures of this one, if there are others; return its own."""
        own = Figures(self._responses, self._generations, current)
        return self._exchange.publish(own) if self._exchange else own

    def render(self, current: CurrentValues) -> bytes:
        """All metrics in the text format of Prometheus, of all processes that share them."""
        figures = self.publish(current)
        if self._exchange:
            figures = add_up([figures, *self._exchange.read_others()])
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector([*_counted(figures), *_gauges(figures.current)]))
        return generate_latest(registry)


# ------------------------------------------------------------------------------------------------- several processes


@dataclass(slots=True)
class FigureExchange:
    """A folder in which each of several processes keeps a file with its figures.

    A process that replaces a dead one goes on with what that one had counted: a counter that went down would look to
    Prometheus as if everything had been counted again.
    """

    folder: Path
    number: int  # of this process
    _earlier: Figures | None = None  # counted by the dead processes with this number

    def __post_init__(self) -> None:
        if (found := _read(self._file)) is not None:
            self._earlier = _without_gauges(found)

    @property
    def _file(self) -> Path:
        return self.folder / f"{self.number}.figures"

    def publish(self, own: Figures) -> Figures:
        """Write the figures for the other processes. Whatever was rendered once is in the file: it is written first."""
        total = add_up([own, self._earlier]) if self._earlier else own
        draft = self._file.with_suffix(".draft")
        draft.write_bytes(_encode(total))
        draft.rename(self._file)
        return total

    def read_others(self) -> list[Figures]:
        """The figures of the other processes, as they were when each last published them."""
        files = sorted(self.folder.glob("*.figures"))
        found = [_read(file) for file in files if file != self._file]
        return [figures for figures in found if figures is not None]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Figures).decode


def _read(file: Path) -> Figures | None:
    try:
        return _decode(file.read_bytes())
    except FileNotFoundError:
        return None


def _without_gauges(figures: Figures) -> Figures:
    """What a process has counted, without what was true only while it ran."""
    health = [{**row, "healthy": True} for row in figures.current.health]
    current = replace(figures.current, jobs_running=0, pool_workers=0, pool_places=0, messages={}, health=health)
    return msgspec.structs.replace(figures, current=current)


def add_up(several: Sequence[Figures]) -> Figures:
    """The sum of the figures of several processes. Messages are in the database, so those of the first are used."""
    responses: dict[tuple[str, str], ResponseCounts] = {}
    generations: dict[tuple[str, str, str], list[int]] = {}
    for figures in several:
        for route, counted in figures.responses.items():
            _add_responses(responses.setdefault(route, ResponseCounts()), counted)
        for kind, numbers in figures.generations.items():
            generations[kind] = _sums(generations.get(kind, [0, 0]), numbers)
    values = [figures.current for figures in several]
    current = CurrentValues(
        jobs_running=sum(value.jobs_running for value in values),
        pool_workers=sum(value.pool_workers for value in values),
        pool_places=sum(value.pool_places for value in values),
        messages=values[0].messages,
        writes=sum(value.writes for value in values),
        write_seconds=sum(value.write_seconds for value in values),
        health=[row for value in values for row in value.health],
    )
    return Figures(responses, generations, current)


def _add_responses(total: ResponseCounts, more: ResponseCounts) -> None:
    for status, count in more.statuses.items():
        total.statuses[status] = total.statuses.get(status, 0) + count
    total.buckets = _sums(total.buckets, more.buckets)
    total.seconds += more.seconds


def _sums(first: Sequence[int], second: Sequence[int]) -> list[int]:
    return [one + other for one, other in zip(first, second, strict=True)]


# ------------------------------------------------------------------------------------------------------- text format


def _counted(figures: Figures) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "penstock_requests", "HTTP calls by status of the response.", labels=("method", "path", "status")
    )
    durations = HistogramMetricFamily(
        "penstock_request_seconds", "From the head of a call to the end of its response.", labels=("method", "path")
    )
    for (method, path), found in sorted(figures.responses.items()):
        for status, count in sorted(found.statuses.items()):
            requests.add_metric((method, path, str(status)), count)
        durations.add_metric((method, path), _buckets(found.buckets), found.seconds)
    generations = CounterMetricFamily(
        "penstock_generations", "Generations and chat calls by how they ended.", labels=_GENERATION_LABELS
    )
    cost = CounterMetricFamily("penstock_cost_usd", "Dollars charged to callers.", labels=_GENERATION_LABELS)
    for name, (count, amount) in sorted(figures.generations.items()):
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
    yield GaugeMetricFamily("penstock_jobs_running", "Generations being run.", value=current.jobs_running)
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


def _health(rows: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
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
    paused: dict[str, set[str]] = {}  # a model may be paused in several processes
    for row in rows:
        provider = row["provider"]
        found = totals.setdefault(provider, [0, 0])
        totals[provider] = _sums(found, (row["successes"], row["failures"]))
        paused.setdefault(provider, set()).update(() if row["healthy"] else (row["model"],))
    for provider, (successes, failures) in sorted(totals.items()):
        calls.add_metric((provider, "success"), successes)
        calls.add_metric((provider, "failure"), failures)
        unhealthy.add_metric((provider,), len(paused[provider]))
    yield from (calls, unhealthy)
