"""Serve the metrics in the text format of Prometheus, added up over the processes that share a port."""

from collections.abc import Mapping

from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.metrics import CurrentValues
from penstock.schema import Call, Response

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_PUBLISH_SECONDS = 1.0
_HEALTH = ("provider", "model", "healthy", "successes", "failures")


async def list_metrics(gateway: Gateway, call: Call) -> Response:
    if not gateway.settings.metrics:
        raise NotFound("Metrics are off on this gateway: the setting `metrics` is false.")
    counted = {row["state"]: row["count"] for row in await gateway.store.slow("count_messages")}
    messages = {state: counted.get(state, 0) for state in ("waiting", "delivered", "exhausted")}
    return Response(body=gateway.metrics.render(_current_values(gateway, messages)), media_type=_TEXT)


async def publish_forever(gateway: Gateway) -> None:
    """Publish the figures of this process every second, so that any of the processes can add up all of them."""
    while True:
        gateway.metrics.publish(_current_values(gateway, {}))
        await gateway.clock.sleep(_PUBLISH_SECONDS)


def _current_values(gateway: Gateway, messages: Mapping[str, int]) -> CurrentValues:
    return CurrentValues(
        jobs_running=gateway.jobs.running,
        pool_workers=len(gateway.worker_pool.pids),
        pool_places=gateway.worker_pool.workers,
        messages=messages,
        writes=gateway.store.timing.count,
        write_seconds=gateway.store.timing.seconds,
        health=[{name: row[name] for name in _HEALTH} for row in gateway.health.report()],
    )
