"""Figures as text; which figures there are is tested with `metrics`."""

from penstock.telemetry.metrics import CurrentValues, Metrics, StoredValues
from penstock.telemetry.metrics_text import render
from penstock.values import nanos
from tests.unit.telemetry.rendering import rendered


def test_what_was_counted_is_written_with_its_labels() -> None:
    metrics = Metrics()
    metrics.count_response("GET", "/v1/balance", 200, 0.02)
    metrics.count_generation("lab", "chat", "completed", nanos("0.000009"))
    current = CurrentValues(
        jobs_running=3, pool_workers=0, pool_places=2, stored=StoredValues(), writes=0, write_seconds=0.0, health=[]
    )
    lines = render(metrics.total(current)).decode().splitlines()
    assert 'penstock_requests_total{method="GET",path="/v1/balance",status="200"} 1.0' in lines
    assert 'penstock_request_seconds_bucket{le="0.01",method="GET",path="/v1/balance"} 0.0' in lines
    assert 'penstock_request_seconds_bucket{le="0.025",method="GET",path="/v1/balance"} 1.0' in lines
    assert 'penstock_cost_usd_total{provider="lab",status="completed",task="chat"} 9e-06' in lines
    assert "penstock_jobs_running 3.0" in lines


def test_the_days_of_a_certificate_are_told_where_something_signs() -> None:
    name = "penstock_provenance_certificate_expires_seconds"
    assert f"{name} 86400.0" in rendered(Metrics(), certificate_seconds=86_400.0).splitlines()
    assert name not in rendered(Metrics())
