"""Spans of OpenTelemetry's SDK; only this module imports the SDK, and only `trace_export` imports this module."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextvars import Token

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from penstock import __version__
from penstock.telemetry.tracing import NO_SPAN, Kind, Position, Span, Tracing, Value, enter, leave

_CLOSE_SECONDS = 5.0
_KINDS = {"internal": trace.SpanKind.INTERNAL, "server": trace.SpanKind.SERVER, "client": trace.SpanKind.CLIENT}
_PROPAGATOR = TraceContextTextMapPropagator()


class OtelSpan(Span):
    """A span that is recorded, or one that only carries the id of a trace that is not sampled."""

    __slots__ = ("_position", "_span", "_stays_open", "_token")

    def __init__(self, span: trace.Span, position: "OtelPosition") -> None:
        self._span = span
        self._position = position
        self._stays_open = False
        self._token: Token[Position | None] | None = None

    @property
    def is_recorded(self) -> bool:  # type: ignore[override]
        return self._span.is_recording()

    def __enter__(self) -> Span:
        self._token = enter(self._position)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trail: object) -> None:
        if self._token is not None:
            leave(self._token)
        if error is not None:
            self.fail(_error_type(error))
        if error is not None or not self._stays_open:
            self._span.end()

    def set(self, name: str, value: Value | None) -> None:
        if value is not None:
            self._span.set_attribute(name, value)

    def fail(self, error_type: str) -> None:
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(trace.StatusCode.ERROR)

    def keep_open(self) -> None:
        self._stays_open = True

    def end(self) -> None:
        self._span.end()


def _error_type(error: BaseException) -> str:
    """The kind or code of a failure where it has one, otherwise the name of its class."""
    for name in ("kind", "code"):
        found = getattr(error, name, None)
        if isinstance(found, str):
            return found
    return type(error).__name__


class OtelPosition(Position):
    """A context of OpenTelemetry. Under a span that was not sampled, nothing more is recorded."""

    __slots__ = ("_context", "_is_sampled", "_tracer")

    def __init__(self, tracer: trace.Tracer, context: Context, *, is_sampled: bool = True) -> None:
        self._tracer = tracer
        self._context = context
        self._is_sampled = is_sampled

    def start(self, name: str, kind: Kind) -> Span:
        if not self._is_sampled:
            return NO_SPAN
        span = self._tracer.start_span(name, self._context, _KINDS[kind])
        within = trace.set_span_in_context(span, self._context)
        return OtelSpan(span, OtelPosition(self._tracer, within, is_sampled=span.is_recording()))

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(trace.get_current_span(self._context).get_span_context().trace_id)

    def headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers, self._context)
        return headers


class OtelTracing(Tracing):
    """Tracing with exporters, each with a thread and a queue of limited length of its own."""

    def __init__(self, exporters: Sequence[SpanExporter]) -> None:
        """The SDK reads sampler, resource, limits and queue lengths from the environment."""
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._exporters = exporters
        for exporter in exporters:
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("penstock", __version__)

    def position(self, headers: Mapping[str, str]) -> Position:
        # In a new context: in that of OpenTelemetry's own variable, the span of another library could be current.
        return OtelPosition(self._tracer, _PROPAGATOR.extract(headers, Context()))

    async def close(self) -> None:
        """Send what is queued; after a few seconds the rest is lost."""
        # In a daemon thread: the end of the process must not wait for a collector that does not answer.
        closing = threading.Thread(target=self._provider.shutdown, name="end of tracing", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, _CLOSE_SECONDS)
        if closing.is_alive():
            for exporter in self._exporters:  # they try again and again otherwise
                exporter.shutdown()


def _resource() -> Resource:
    """What the environment says about this service; its name is `penstock` unless that says otherwise."""
    found = Resource.create({"service.version": __version__})
    is_named = not str(found.attributes["service.name"]).startswith("unknown_service")
    return found if is_named else found.merge(Resource({"service.name": "penstock"}))
