"""Metrics of a gateway that does nothing else, as Prometheus reads them."""

from typing import Any

from penstock.telemetry import metrics_text
from penstock.telemetry.metrics import CurrentValues, Metrics, StoredValues

NOTHING: dict[str, Any] = {
    "jobs_running": 0,
    "pool_workers": 0,
    "pool_places": 2,
    "stored": StoredValues(),
    "writes": 0,
    "write_seconds": 0.0,
    "health": [],
}


def rendered(metrics: Metrics, **current: Any) -> str:
    return metrics_text.render(metrics.total(CurrentValues(**{**NOTHING, **current}))).decode()
