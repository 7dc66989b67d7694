"""Serve the metrics of this process in the text format of Prometheus."""

from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.metrics import CurrentValues
from penstock.schema import Call, Response

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


async def list_metrics(gateway: Gateway, call: Call) -> Response:
    if not gateway.settings.metrics:
        raise NotFound("Metrics are off on this gateway: the setting `metrics` is false.")
    counted = {row["state"]: row["count"] for row in await gateway.store.slow("count_messages")}
    figures = CurrentValues(
        jobs_running=gateway.jobs.running,
        pool_workers=len(gateway.worker_pool.pids),
        pool_places=gateway.worker_pool.workers,
        messages={state: counted.get(state, 0) for state in ("waiting", "delivered", "exhausted")},
        writes=gateway.store.timing.count,
        write_seconds=gateway.store.timing.seconds,
        health=gateway.health.report(),
    )
    return Response(body=gateway.metrics.render(figures), media_type=_TEXT)
