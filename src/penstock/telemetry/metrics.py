"""Count calls, generations and costs, and add up the figures of several processes."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from penstock.values import ZERO, Nanos

# From a response out of memory to a video that the caller waited for.
BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
NO_PROVIDER = "none"  # the label when no provider completed the generation
SUCCESS = "success"  # the outcome of an attempt that did not fail
OTHER_MODELS = "other"  # the label of models that only callers name
_UNLISTED_MODELS_MAX = 200
_DIRECTIONS = ("input", "cached", "output")

Labels = tuple[str, ...]

# What is counted and measured: its meaning and the names of its labels.
COUNTERS: Mapping[str, tuple[str, Labels]] = {
    "penstock_requests": ("HTTP calls by status of the response.", ("method", "path", "status")),
    "penstock_generations": ("Generations and chat calls by how they ended.", ("provider", "task", "status")),
    "penstock_attempts": (
        "Attempts by outcome: success, or the kind of the failure.",
        ("provider", "task", "outcome"),
    ),
    "penstock_outputs": (
        "Stored outputs by what became of their Content Credentials.",
        ("task", "content_credentials"),
    ),
    "penstock_guard_verdicts": ("What guards said of calls: pass, flag, refuse, or error.", ("guard", "verdict")),
    "penstock_tokens": (
        "Tokens that providers counted; cached ones are among the input.",
        ("provider", "model", "direction"),
    ),
}
COST = "penstock_cost_usd"  # counted in nano-dollars
HISTOGRAMS: Mapping[str, tuple[str, Labels]] = {
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
    certificate_seconds: float | None = None  # until the certificate that signs outputs expires


class Figures(msgspec.Struct, frozen=True):
    """All figures of one process, or the sum of several. What is counted has a name, and is counted by its labels."""

    counts: dict[str, dict[Labels, int]]
    durations: dict[str, dict[Labels, Durations]]
    current: CurrentValues


class Metrics:
    """Counters of this process. Labels are routes, slugs and models, and callers cannot make up many of them: where a
    provider takes any model name, one that is in no table gets a label only after the provider served it, and only the
    first 200 do.

    Counting happens with every call, so counters are integers in dictionaries; `metrics_text` writes them as text.
    """

    __slots__ = ("_counts", "_durations", "_exchange", "_listed", "_unlisted")

    def __init__(self, listed_models: AbstractSet[tuple[str, str]] = frozenset()) -> None:
        """`listed_models` are the models that are in a table, each as its provider's slug and its upstream name."""
        self._counts: dict[str, dict[Labels, int]] = {name: defaultdict(int) for name in (*COUNTERS, COST)}
        self._durations: dict[str, dict[Labels, Durations]] = {name: {} for name in HISTOGRAMS}
        self._listed = listed_models
        self._unlisted: set[tuple[str, str]] = set()
        self._exchange: FigureExchange | None = None

    def share(self, exchange: "FigureExchange") -> None:
        """Add up the figures of all processes that share a port, instead of rendering those of this one alone."""
        self._exchange = exchange

    def count_response(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an HTTP call after the last byte of its response was sent."""
        self._counts["penstock_requests"][method, path, str(status)] += 1
        _add_seconds(self._durations["penstock_request_seconds"], (method, path), seconds)

    def count_generation(self, provider: str, task: str, status: str, cost: Nanos = ZERO) -> None:
        """Count a generation or chat call after it was charged or released."""
        self._counts["penstock_generations"][provider, task, status] += 1
        if cost:
            self._counts[COST][provider, task, status] += cost

    def count_output(self, task: str, content_credentials: str) -> None:
        """Count an output by the status of its Content Credentials."""
        self._counts["penstock_outputs"][task, content_credentials] += 1

    def count_verdict(self, guard: str, verdict: str) -> None:
        """Count what a guard said of a call: pass, flag, refuse, or error."""
        self._counts["penstock_guard_verdicts"][guard, verdict] += 1

    def count_attempt(
        self, provider: str, model: str, task: str, outcome: str, seconds: float, tokens: Mapping[str, int | float] = {}
    ) -> None:
        """Count an attempt after it ended: with SUCCESS, or with the kind of its failure.

        Its tokens are counted by direction: `input`, of which `cached`, and `output`.
        """
        label = model
        if (provider, model) not in self._listed:
            if outcome == SUCCESS and len(self._unlisted) < _UNLISTED_MODELS_MAX:
                self._unlisted.add((provider, model))
            label = self._model_label(provider, model)
        self._counts["penstock_attempts"][provider, task, outcome] += 1
        _add_seconds(self._durations["penstock_attempt_seconds"], (provider, label, task), seconds)
        if tokens:
            counts = self._counts["penstock_tokens"]
            for direction in _DIRECTIONS:
                if count := tokens.get(direction):
                    counts[provider, label, direction] += int(count)

    def count_first_byte(self, provider: str, model: str, seconds: float) -> None:
        """Count the time until the first event of a chat stream came."""
        labels = (provider, self._model_label(provider, model))
        _add_seconds(self._durations["penstock_first_byte_seconds"], labels, seconds)

    def _model_label(self, provider: str, model: str) -> str:
        name = (provider, model)
        return model if name in self._listed or name in self._unlisted else OTHER_MODELS

    def publish(self, current: CurrentValues) -> Figures:
        """Let the other processes see the figures of this one, if there are others; return its own."""
        own = Figures(self._counts, self._durations, current)
        return self._exchange.publish(own) if self._exchange else own

    def total(self, current: CurrentValues) -> Figures:
        """The figures of all processes that share them."""
        figures = self.publish(current)
        return add_up([figures, *self._exchange.read_others()]) if self._exchange else figures


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
                total[labels] = total.get(labels, 0) + count
        for name, measured in figures.durations.items():
            sums = durations.setdefault(name, {})
            for labels, more in measured.items():
                found = sums.get(labels, Durations())
                sums[labels] = Durations(pairwise_sums(found.buckets, more.buckets), found.seconds + more.seconds)
    values = [figures.current for figures in several]
    current = CurrentValues(
        jobs_running=sum(value.jobs_running for value in values),
        pool_workers=sum(value.pool_workers for value in values),
        pool_places=sum(value.pool_places for value in values),
        stored=values[0].stored,
        writes=sum(value.writes for value in values),
        write_seconds=sum(value.write_seconds for value in values),
        health=[row for value in values for row in value.health],
        certificate_seconds=values[0].certificate_seconds,
    )
    return Figures(counts, durations, current)


def pairwise_sums(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The sums of the numbers at the same places."""
    return [one + other for one, other in zip(first, second, strict=True)]
