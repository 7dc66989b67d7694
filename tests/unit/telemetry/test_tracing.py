"""Spans while tracing is off, and the place in a trace that tasks inherit."""

import asyncio

from penstock.telemetry import tracing
from penstock.telemetry.otel import OtelTracing
from penstock.telemetry.tracing import NO_SPAN, current_trace_id, span, stored_context, trace_headers

TRACE = "0af7651916cd43dd8448eb211c80319c"
CARRIER = '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"other=x"}'


def test_without_tracing_a_span_is_nothing_and_nothing_is_stored_or_sent() -> None:
    assert span("convert") is NO_SPAN
    with span("convert") as found:
        found.set("x", 1)
        found.fail("broken")
        found.keep_open()
        found.end()
        assert not found.is_recorded
    assert (trace_headers(), stored_context(), current_trace_id()) == ({}, None, None)


async def test_a_stored_place_is_continued_with_its_state_and_left_again() -> None:
    on = OtelTracing([])
    with on.continue_trace(CARRIER):
        assert current_trace_id() == TRACE
        assert stored_context() == CARRIER
        inherited = asyncio.create_task(_trace_id())
        with on.continue_trace(None):
            assert current_trace_id() is None
        assert current_trace_id() == TRACE
    assert current_trace_id() is None
    assert await inherited == TRACE
    await on.close()


async def _trace_id() -> str | None:
    return tracing.current_trace_id()
