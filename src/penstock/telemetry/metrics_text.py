"""Write figures in the text format of Prometheus.

The gateway imports this module when its metrics are first asked for: prometheus_client brings a web server along.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric, SummaryMetricFamily

from penstock.telemetry.metrics import (
    BUCKETS_SECONDS,
    COST,
    COUNTERS,
    HISTOGRAMS,
    CurrentValues,
    Figures,
    StoredValues,
    pairwise_sums,
)
from penstock.values import Nanos, dollars


def render(figures: Figures) -> bytes:
    """All metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector([*_counted(figures), *_gauges(figures.current)]))
    return generate_latest(registry)


def _counted(figures: Figures) -> Iterator[Metric]:
    for name, (about, labels) in COUNTERS.items():
        counter = CounterMetricFamily(name, about, labels=labels)
        for values, count in sorted(figures.counts[name].items()):
            counter.add_metric(values, count)
        yield counter
    cost = CounterMetricFamily(COST, "Dollars charged to callers.", labels=("provider", "task", "status"))
    for values, amount in sorted(figures.counts[COST].items()):
        cost.add_metric(values, float(dollars(Nanos(amount))))
    yield cost
    for name, (about, labels) in HISTOGRAMS.items():
        histogram = HistogramMetricFamily(name, about, labels=labels)
        for values, found in sorted(figures.durations[name].items()):
            histogram.add_metric(values, _buckets(found.buckets), found.seconds)
        yield histogram


class _Collector:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


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
    if current.certificate_seconds is not None:
        yield GaugeMetricFamily(
            "penstock_provenance_certificate_expires_seconds",
            "Until the certificate that signs outputs expires.",
            value=current.certificate_seconds,
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
        totals[provider] = pairwise_sums(found, (row["successes"], row["failures"]))
        paused.setdefault(provider, set()).update(() if row["healthy"] else (row["model"],))
    for provider, (successes, failures) in sorted(totals.items()):
        calls.add_metric((provider, "success"), successes)
        calls.add_metric((provider, "failure"), failures)
        unhealthy.add_metric((provider,), len(paused[provider]))
    yield from (calls, unhealthy)
