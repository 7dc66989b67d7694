"""Serve the metrics in the text format of Prometheus, added up over the processes that share a port."""

from collections.abc import Mapping
from typing import Any

from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.telemetry.metrics import CurrentValues, StoredValues
from penstock.values import nanos

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_PUBLISH_SECONDS = 1.0
_HEALTH = ("provider", "model", "healthy", "successes", "failures")


async def list_metrics(gateway: Gateway, call: Call) -> Response:
    if not gateway.settings.metrics:
        raise NotFound("Metrics are off on this gateway: the setting `metrics` is false.")
    from penstock.telemetry import metrics_text  # imported here because a start need not wait for it

    figures = gateway.metrics.total(_current_values(gateway, await _stored_values(gateway)))
    return Response(body=metrics_text.render(figures), media_type=_TEXT)


async def publish_forever(gateway: Gateway) -> None:
    """Publish the figures of this process every second, so that any of the processes can add up all of them."""
    while True:
        gateway.metrics.publish(_current_values(gateway, StoredValues()))
        await gateway.clock.sleep(_PUBLISH_SECONDS)


async def _stored_values(gateway: Gateway) -> StoredValues:
    store = gateway.store
    now_ms = gateway.clock.now_ms()
    jobs = await store.slow("count_open_generations")
    messages = await store.slow("count_messages")
    (oldest,) = await store.slow("get_oldest_message")
    (low,) = await store.slow("count_low_balances", amount=nanos(gateway.settings.alert_balance_usd))
    return StoredValues(
        jobs={row["status"]: row["count"] for row in jobs},
        job_ages={row["status"]: _age_seconds(now_ms, row["oldest_at_ms"]) for row in jobs},
        messages={row["state"]: row["count"] for row in messages},
        message_age=_age_seconds(now_ms, oldest["at_ms"]),
        low_balances=low["count"],
    )


def _age_seconds(now_ms: int, at_ms: int | None) -> float:
    return 0.0 if at_ms is None else max(0, now_ms - at_ms) / 1000


def _certificate_seconds(gateway: Gateway) -> float | None:
    signing = gateway.sealer.signing
    return None if signing is None else signing.expires_at.timestamp() - gateway.clock.now_ms() / 1000


def _current_values(gateway: Gateway, stored: StoredValues) -> CurrentValues:
    return CurrentValues(
        jobs_running=gateway.jobs.running,
        pool_workers=len(gateway.worker_pool.pids),
        pool_places=gateway.worker_pool.workers,
        stored=stored,
        writes=gateway.store.timing.count,
        write_seconds=gateway.store.timing.seconds,
        certificate_seconds=_certificate_seconds(gateway),
        health=[_calls(row) for row in gateway.health.report() if row["account"] is None],
    )


def _calls(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of Health.report for the metrics, in which a provider that rejects a request has not failed."""
    return {**{name: row[name] for name in _HEALTH}, "successes": row["successes"] + row["rejected"]}
