"""Describe a call in its span of a trace."""

from typing import TYPE_CHECKING

from penstock.accounts.refusals import named_model
from penstock.telemetry.tracing import Span
from penstock.values import NANOS_PER_USD

if TYPE_CHECKING:
    from penstock.api.asgi import CallState


def describe_call(span: Span, state: "CallState") -> None:
    """Set the attributes of a call's span; of its error only the code."""
    if not span.is_recorded:
        return
    report = state.report
    span.set("http.request.method", state.route.method)
    span.set("http.route", state.route.path)
    if state.call is not None and state.caller is not None:  # paths of others may have a signature in them
        span.set("url.path", state.route.path.format_map(state.call.path))
        span.set("url.scheme", state.call.base_url.partition(":")[0])
    span.set("http.response.status_code", state.status)
    span.set("penstock.request.id", state.id)
    if state.caller is not None:
        span.set("penstock.org.id", state.caller.org_id)
        span.set("penstock.key.id", state.caller.key_id)
    if state.route.generation:
        span.set("gen_ai.request.model", named_model(state.call) if state.call else None)
        span.set("penstock.provider", report.provider)
        span.set("penstock.cost_usd", None if report.cost is None else report.cost / NANOS_PER_USD)
        span.set("penstock.overhead_ms", state.overhead_ms)
    if state.status >= 500:
        span.fail(state.code or str(state.status))
    else:
        span.set("penstock.error.code", state.code)
