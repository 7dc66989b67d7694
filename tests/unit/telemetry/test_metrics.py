"""Metrics as Prometheus reads them, with labels that no caller can choose."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.telemetry.metrics import (
    BUCKETS_SECONDS,
    NO_PROVIDER,
    CurrentValues,
    FigureExchange,
    Metrics,
    StoredValues,
)
from penstock.values import nanos
from tests.unit.telemetry.rendering import NOTHING, rendered


def samples(metrics: Metrics, **current: Any) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels, which are in alphabetical order."""
    text = rendered(metrics, **current)
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in found}


def test_calls_are_counted_by_path_and_status() -> None:
    metrics = Metrics()
    for status in (200, 200, 404):
        metrics.count_response("GET", "/v1/balance", status, 0.003)
    metrics.count_response("POST", "/v1/keys", 200, 0.003)
    found = samples(metrics)
    assert found["penstock_requests_total", "GET", "/v1/balance", "200"] == 2
    assert found["penstock_requests_total", "GET", "/v1/balance", "404"] == 1
    assert found["penstock_requests_total", "POST", "/v1/keys", "200"] == 1


@pytest.mark.parametrize(
    ("seconds", "first"),
    [(0.0, "0.001"), (0.001, "0.001"), (0.0011, "0.0025"), (4, "5.0"), (300, "300.0"), (301, "+Inf")],
)
def test_durations_fall_into_buckets(seconds: float, first: str) -> None:
    metrics = Metrics()
    metrics.count_response("GET", "/x", 200, seconds)
    found = samples(metrics)
    bounds = {name[1]: value for name, value in found.items() if name[0] == "penstock_request_seconds_bucket"}
    assert len(bounds) == len(BUCKETS_SECONDS) + 1
    assert next(bound for bound, count in bounds.items() if count) in (first, first.removesuffix(".0"))
    assert list(bounds.values()) == sorted(bounds.values())
    assert found["penstock_request_seconds_sum", "GET", "/x"] == seconds
    assert found["penstock_request_seconds_count", "GET", "/x"] == 1


def test_generations_are_counted_with_their_cost() -> None:
    metrics = Metrics()
    metrics.count_generation("lab", "image", "completed", nanos("0.04"))
    metrics.count_generation("lab", "image", "completed", nanos("0.02"))
    metrics.count_generation(NO_PROVIDER, "image", "upstream_failure")
    found = samples(metrics)
    assert found["penstock_generations_total", "lab", "completed", "image"] == 2
    assert found["penstock_generations_total", "none", "upstream_failure", "image"] == 1
    assert found["penstock_cost_usd_total", "lab", "completed", "image"] == 0.06
    assert not any(name[:2] == ("penstock_cost_usd_total", "none") for name in found)


def test_current_values() -> None:
    found = samples(
        Metrics(),
        jobs_running=3,
        pool_workers=1,
        stored=StoredValues(messages={"waiting": 5}, jobs={"queued": 2}, job_ages={"queued": 9.5}, low_balances=1),
        writes=4,
        write_seconds=0.5,
    )
    assert found["penstock_jobs_running",] == 3
    assert (found["penstock_pool_workers",], found["penstock_pool_places",]) == (1, 2)
    assert found["penstock_webhook_messages", "waiting"] == 5
    assert found["penstock_webhook_messages", "exhausted"] == 0
    assert (found["penstock_jobs", "queued"], found["penstock_jobs", "in_progress"]) == (2, 0)
    assert found["penstock_job_oldest_seconds", "queued"] == 9.5
    assert found["penstock_low_balances",] == 1
    assert (found["penstock_store_write_seconds_count",], found["penstock_store_write_seconds_sum",]) == (4, 0.5)


def test_health_is_shown_by_provider_and_never_by_model() -> None:
    """Some providers take any model name, which callers choose."""
    rows = [
        {"provider": "router", "model": f"somebody/{number}", "healthy": number > 0, "successes": 2, "failures": 1}
        for number in range(50)
    ]
    found = samples(Metrics(), health=rows)
    assert found["penstock_provider_calls_total", "success", "router"] == 100
    assert found["penstock_provider_calls_total", "failure", "router"] == 50
    assert found["penstock_provider_models_unhealthy", "router"] == 1
    assert not any("somebody" in word for name in found for word in name)


def test_counting_uses_nothing_of_prometheus_client() -> None:
    """Counting happens with every call, so it must be cheap: the types of prometheus_client are for rendering."""
    metrics = Metrics()
    cost = nanos("0.000009")
    called: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.append(frame.f_globals["__name__"])

    def count() -> None:
        metrics.count_response("POST", "/compat/v1/chat/completions", 200, 0.012)
        metrics.count_generation("lab", "chat", "completed", cost)
        metrics.count_attempt("lab", "gpt-x", "chat", "success", 0.01, {"input": 3, "cached": 0, "output": 5})

    count()
    sys.setprofile(note)
    try:
        count()
    finally:
        sys.setprofile(None)
    assert set(called[1:]) == {"penstock.telemetry.metrics"}
    assert len(called) < 20


def test_processes_that_share_a_port_add_up_their_figures(tmp_path: Path) -> None:
    first, second = Metrics(), Metrics()
    first.share(FigureExchange(tmp_path, 1))
    second.share(FigureExchange(tmp_path, 2))
    row = {"provider": "lab", "model": "m", "healthy": False, "successes": 2, "failures": 1}
    for metrics, seconds in ((first, 0.003), (second, 4.0)):
        metrics.count_response("GET", "/x", 200, seconds)
        metrics.count_generation("lab", "image", "completed", nanos("0.04"))
    second.publish(CurrentValues(**{**NOTHING, "jobs_running": 2, "writes": 5, "health": [row]}))
    found = samples(first, jobs_running=1, writes=3, health=[row], stored=StoredValues(messages={"waiting": 7}))
    assert found["penstock_requests_total", "GET", "/x", "200"] == 2
    assert found["penstock_request_seconds_sum", "GET", "/x"] == 4.003
    assert found["penstock_request_seconds_bucket", "0.005", "GET", "/x"] == 1
    assert found["penstock_generations_total", "lab", "completed", "image"] == 2
    assert found["penstock_cost_usd_total", "lab", "completed", "image"] == 0.08
    assert (found["penstock_jobs_running",], found["penstock_pool_places",]) == (3, 4)
    assert found["penstock_store_write_seconds_count",] == 8
    assert found["penstock_webhook_messages", "waiting"] == 7, "they are in the database, not in a process"
    assert found["penstock_provider_calls_total", "success", "lab"] == 4
    assert found["penstock_provider_models_unhealthy", "lab"] == 1, "the same model in both"


def test_a_replaced_process_goes_on_counting_where_the_dead_one_was(tmp_path: Path) -> None:
    dead, other, new = Metrics(), Metrics(), Metrics()
    dead.share(FigureExchange(tmp_path, 1))
    other.share(FigureExchange(tmp_path, 2))
    dead.count_response("GET", "/x", 200, 0.003)
    row = {"provider": "lab", "model": "m", "healthy": False, "successes": 2, "failures": 1}
    before = samples(dead, jobs_running=4, writes=3, health=[row])
    new.share(FigureExchange(tmp_path, 1))
    for metrics in (new, other):
        found = samples(metrics)
        assert {name for name, value in before.items() if name[0].endswith(("_total", "_count")) and value} <= {
            name for name, value in found.items() if value >= before.get(name, 0)
        }
        new.publish(CurrentValues(**NOTHING))
    new.count_response("GET", "/x", 200, 0.003)
    new.publish(CurrentValues(**NOTHING))
    found = samples(other)
    assert found["penstock_requests_total", "GET", "/x", "200"] == 2
    assert found["penstock_jobs_running",] == 0, "jobs of the dead process do not run"
    assert found["penstock_provider_models_unhealthy", "lab"] == 0
