"""Count calls, generations and costs, and write them in the text format of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
SUCCESS = "success"  # the outcome of an attempt that did not fail
OTHER_MODELS = "other"  # the label of models that only callers name
_UNLISTED_MODELS_MAX = 200
_DIRECTIONS = ("input", "cached", "output")

Labels = tuple[str, ...]

# What is counted and measured: its meaning and the names of its labels.
_COUNTERS: Mapping[str, tuple[str, Labels]] = {
    "penstock_requests": ("HTTP calls by status of the response.", ("method", "path", "status")),
    "penstock_generations": ("Generations and chat calls by how they ended.", ("provider", "task", "status")),
    "penstock_attempts": (
        "Attempts by outcome: success, or the kind of the failure.",
        ("provider", "task", "outcome"),
    ),
    "penstock_tokens": (
        "Tokens that providers counted; cached ones are among the input.",
        ("provider", "model", "direction"),
    ),
}
_COST = "penstock_cost_usd"  # counted in nano-dollars
_HISTOGRAMS: Mapping[str, tuple[str, Labels]] = {
    "penstock_request_seconds": ("From the head of a call to the end of its response.", ("method", "path")),
    "penstock_attempt_seconds": (
        "From the start of an attempt to its end, with polls and downloads.",
        ("provider", "model", "task"),
    ),
    "penstock_first_byte_seconds": (
        "From the start of an attempt to the first event of a chat stream.",
        ("provider", "model"),
    ),
}


@dataclass(slots=True)
class Durations:
    """How often something took how long."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValues:
    """Values out of the database, which are the same for all processes that use it."""

    jobs: Mapping[str, int] = field(default_factory=dict)  # unfinished ones by status
    job_ages: Mapping[str, float] = field(default_factory=dict)  # seconds since the oldest was accepted, by status
    messages: Mapping[str, int] = field(default_factory=dict)  # by state
    message_age: float = 0.0  # seconds since the oldest message was added that is not yet delivered
    low_balances: int = 0  # organizations


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentValues:
    """Values that are not counted but read when the metrics are requested."""

    jobs_running: int
    pool_workers: int
    pool_places: int
    stored: "StoredValues"
    writes: int
    write_seconds: float
    health: Sequence[Mapping[str, Any]]  # rows of Health.report


class Figures(msgspec.Struct, frozen=True):
    """All figures of one process, or the sum of several. What is counted has a name, and is counted by its labels."""

    counts: dict[str, dict[Labels, int]]
    durations: dict[str, dict[Labels, Durations]]
    current: CurrentValues


class Metrics:
    """Counters of this process. Labels are routes, slugs and models, and callers cannot make up many of them: where a
    provider takes any model name, one that is in no table gets a label only after the provider served it, and only the
    first 200 do.

    Counting happens with every call, so counters are integers in dictionaries. The types of prometheus_client are used
    only by `render`.
    """

    __slots__ = ("_counts", "_durations", "_exchange", "_listed", "_unlisted")

    def __init__(self, listed_models: AbstractSet[tuple[str, str]] = frozenset()) -> None:
        """`listed_models` are the models that are in a table, each as its provider's slug and its upstream name."""
        self._counts: dict[str, dict[Labels, int]] = {name: {} for name in (*_COUNTERS, _COST)}
        self._durations: dict[str, dict[Labels, Durations]] = {name: {} for name in _HISTOGRAMS}
        self._listed = listed_models
        self._unlisted: set[tuple[str, str]] = set()
        self._exchange: FigureExchange | None = None

    def share(self, exchange: "FigureExchange") -> None:
        """Add up the figures of all processes that share a port, instead of rendering those of this one alone."""
        self._exchange = exchange

    def count_response(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an HTTP call after the last byte of its response was sent."""
        _add(self._counts["penstock_requests"], (method, path, str(status)), 1)
        _add_seconds(self._durations["penstock_request_seconds"], (method, path), seconds)

    def count_generation(self, provider: str, task: str, status: str, cost: Nanos = ZERO) -> None:
        """Count a generation or chat call after it was charged or released."""
        _add(self._counts["penstock_generations"], (provider, task, status), 1)
        if cost:
            _add(self._counts[_COST], (provider, task, status), cost)

    def count_attempt(self, provider: str, model: str, task: str, outcome: str, seconds: float) -> None:
        """Count an attempt after it ended: with SUCCESS, or with the kind of its failure."""
        if outcome == SUCCESS and (provider, model) not in self._listed and len(self._unlisted) < _UNLISTED_MODELS_MAX:
            self._unlisted.add((provider, model))
        _add(self._counts["penstock_attempts"], (provider, task, outcome), 1)
        labels = (provider, self._model_label(provider, model), task)
        _add_seconds(self._durations["penstock_attempt_seconds"], labels, seconds)

    def count_first_byte(self, provider: str, model: str, seconds: float) -> None:
        """Count the time until the first event of a chat stream came."""
        labels = (provider, self._model_label(provider, model))
        _add_seconds(self._durations["penstock_first_byte_seconds"], labels, seconds)

    def count_tokens(self, provider: str, model: str, tokens: Mapping[str, int | float]) -> None:
        """Count tokens by direction: `input`, of which `cached`, and `output`."""
        label = self._model_label(provider, model)
        for direction in _DIRECTIONS:
            if count := tokens.get(direction):
                _add(self._counts["penstock_tokens"], (provider, label, direction), int(count))

    def _model_label(self, provider: str, model: str) -> str:
        name = (provider, model)
        return model if name in self._listed or name in self._unlisted else OTHER_MODELS

    def publish(self, current: CurrentValues) -> Figures:
        """Let the other processes see the figures of this one, if there are others; return its own."""
        own = Figures(self._counts, self._durations, current)
        return self._exchange.publish(own) if self._exchange else own

    def render(self, current: CurrentValues) -> bytes:
        """All metrics in the text format of Prometheus, of all processes that share them."""
        figures = self.publish(current)
        if self._exchange:
            figures = add_up([figures, *self._exchange.read_others()])
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector([*_counted(figures), *_gauges(figures.current)]))
        return generate_latest(registry)


def _add(counts: dict[Labels, int], labels: Labels, count: int) -> None:
    counts[labels] = counts.get(labels, 0) + count


def _add_seconds(durations: dict[Labels, Durations], labels: Labels, seconds: float) -> None:
    found = durations.get(labels)
    if found is None:
        found = durations[labels] = Durations()
    found.buckets[bisect_left(BUCKETS_SECONDS, seconds)] += 1
    found.seconds += seconds


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
    current = replace(
        figures.current, jobs_running=0, pool_workers=0, pool_places=0, stored=StoredValues(), health=health
    )
    return msgspec.structs.replace(figures, current=current)


def add_up(several: Sequence[Figures]) -> Figures:
    """The sum of the figures of several processes. Values of the database are those of the first: all have the same."""
    counts: dict[str, dict[Labels, int]] = {}
    durations: dict[str, dict[Labels, Durations]] = {}
    for figures in several:
        for name, counted in figures.counts.items():
            total = counts.setdefault(name, {})
            for labels, count in counted.items():
                _add(total, labels, count)
        for name, measured in figures.durations.items():
            sums = durations.setdefault(name, {})
            for labels, more in measured.items():
                found = sums.get(labels, Durations())
                sums[labels] = Durations(_sums(found.buckets, more.buckets), found.seconds + more.seconds)
    values = [figures.current for figures in several]
    current = CurrentValues(
        jobs_running=sum(value.jobs_running for value in values),
        pool_workers=sum(value.pool_workers for value in values),
        pool_places=sum(value.pool_places for value in values),
        stored=values[0].stored,
        writes=sum(value.writes for value in values),
        write_seconds=sum(value.write_seconds for value in values),
        health=[row for value in values for row in value.health],
    )
    return Figures(counts, durations, current)


def _sums(first: Sequence[int], second: Sequence[int]) -> list[int]:
    return [one + other for one, other in zip(first, second, strict=True)]


# ------------------------------------------------------------------------------------------------------- text format


def _counted(figures: Figures) -> Iterator[Metric]:
    for name, (about, labels) in _COUNTERS.items():
        counter = CounterMetricFamily(name, about, labels=labels)
        for values, count in sorted(figures.counts[name].items()):
            counter.add_metric(values, count)
        yield counter
    cost = CounterMetricFamily(_COST, "Dollars charged to callers.", labels=("provider", "task", "status"))
    for values, amount in sorted(figures.counts[_COST].items()):
        cost.add_metric(values, float(dollars(Nanos(amount))))
    yield cost
    for name, (about, labels) in _HISTOGRAMS.items():
        histogram = HistogramMetricFamily(name, about, labels=labels)
        for values, found in sorted(figures.durations[name].items()):
            histogram.add_metric(values, _buckets(found.buckets), found.seconds)
        yield histogram


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
    yield SummaryMetricFamily(
        "penstock_store_write_seconds",
        "From the call of a write to its commit.",
        count_value=current.writes,
        sum_value=current.write_seconds,
    )
    yield from _stored(current.stored)
    yield from _health(current.health)


def _stored(stored: StoredValues) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("penstock_jobs", "Unfinished generations of all processes.", labels=("status",))
    ages = GaugeMetricFamily(
        "penstock_job_oldest_seconds", "Age of the oldest unfinished generation.", labels=("status",)
    )
    for status in ("queued", "in_progress"):
        jobs.add_metric((status,), stored.jobs.get(status, 0))
        ages.add_metric((status,), stored.job_ages.get(status, 0.0))
    messages = GaugeMetricFamily("penstock_webhook_messages", "Webhook messages by state.", labels=("state",))
    for state in ("waiting", "delivered", "exhausted"):
        messages.add_metric((state,), stored.messages.get(state, 0))
    yield from (jobs, ages, messages)
    yield GaugeMetricFamily(
        "penstock_webhook_oldest_seconds",
        "Age of the oldest webhook message that is not yet delivered.",
        value=stored.message_age,
    )
    yield GaugeMetricFamily(
        "penstock_low_balances",
        "Prepaid organizations that have less than alert_balance_usd.",
        value=stored.low_balances,
    )


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
