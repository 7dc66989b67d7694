"""Spans of the SDK: which one is current, how errors are named, and which resource they belong to."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from penstock.telemetry.otel import OtelTracing
from penstock.telemetry.tracing import current_trace_id, span, trace_headers
from penstock.upstream.failures import AttemptFailed, Failure


class Recorder:
    """Tracing, and the spans that it exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracing = OtelTracing([self.exporter])

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        self.tracing._provider.force_flush()
        return {found.name: found for found in self.exporter.get_finished_spans()}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER"):
        monkeypatch.delenv(name, raising=False)
    found = Recorder()
    yield found
    found.tracing._provider.shutdown()


def test_a_span_is_current_in_its_block_only(recorder: Recorder) -> None:
    with recorder.tracing.start_call("call", {}):
        outside = trace_headers()
        with span("inner", "client"):
            assert trace_headers() != outside
        assert trace_headers() == outside
    assert current_trace_id() is None
    inner, call = recorder.spans["inner"], recorder.spans["call"]
    assert inner.parent is not None
    assert call.context is not None
    assert inner.parent.span_id == call.context.span_id
    assert (call.kind.name, inner.kind.name, call.parent) == ("SERVER", "CLIENT", None)


def test_an_error_is_named_by_its_kind_and_never_by_its_message(recorder: Recorder) -> None:
    errors = {"kind": AttemptFailed(Failure("busy", "a secret")), "class": ValueError("a secret")}
    for name, error in errors.items():
        with pytest.raises(type(error)), recorder.tracing.start_call(name, {}):
            raise error
    spans = recorder.spans
    found = {name: (spans[name].attributes or {}).get("error.type") for name in errors}
    assert found == {"kind": "busy", "class": "ValueError"}
    assert all("secret" not in made.to_json() for made in spans.values())
    assert all(not made.events and not made.status.is_ok for made in spans.values())


def test_a_span_that_is_kept_open_ends_later_unless_it_fails(recorder: Recorder) -> None:
    with recorder.tracing.start_call("stream", {}) as stream:
        stream.keep_open()
    assert "stream" not in recorder.spans
    stream.end()
    assert "stream" in recorder.spans
    failed = recorder.tracing.start_call("failed", {})
    failed.keep_open()
    with pytest.raises(ValueError, match="x"), failed:
        raise ValueError("x")
    assert "failed" in recorder.spans


def test_under_a_span_that_is_not_sampled_nothing_is_recorded(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_sampled = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
    with recorder.tracing.start_call("call", not_sampled) as call, span("inner") as inner:
        assert not call.is_recorded
        assert not inner.is_recorded
        assert current_trace_id() == "0af7651916cd43dd8448eb211c80319c"
    assert recorder.spans == {}


def test_the_service_is_penstock_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {}
    for variable, value in (("OTEL_X", ""), ("OTEL_SERVICE_NAME", "a"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=b")):
        with monkeypatch.context() as patch:
            patch.delenv("OTEL_SERVICE_NAME", raising=False)
            patch.setenv(variable, value)
            tracing = OtelTracing([])
            names[variable] = tracing._provider.resource.attributes["service.name"]
            tracing._provider.shutdown()
    assert names == {"OTEL_X": "penstock", "OTEL_SERVICE_NAME": "a", "OTEL_RESOURCE_ATTRIBUTES": "b"}
