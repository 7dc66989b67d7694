"""Tracing is on only where the environment asks for it, and what is missing is named."""

import pytest
from structlog.testing import capture_logs

from penstock.telemetry import trace_export
from penstock.telemetry.trace_export import exporter_names, open_tracing

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.invalid:4318"}


def test_the_environment_decides_which_exporters_there_are() -> None:
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({}, []),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, []),
        (ENDPOINT, ["otlp_proto_http"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector.invalid/v1/traces"}, ["otlp_proto_http"]),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ["otlp_proto_http"]),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ["console", "otlp_proto_http"]),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, []),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, []),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, ["otlp_proto_http"]),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ["otlp_proto_grpc"]),
    ]
    wrong = [(environ, exporter_names(environ)) for environ, names in cases if exporter_names(environ) != names]
    assert wrong == []


async def test_a_missing_package_is_named_and_the_gateway_starts_without_traces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_export, "entry_points", lambda **names: ())
    asked = [ENDPOINT, {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, {"OTEL_TRACES_EXPORTER": "zipkin"}]
    with capture_logs() as lines:
        for environ in asked:
            async with open_tracing(environ) as tracing:
                assert tracing is None
    assert [line["event"].partition(": ")[2].split(",")[0] for line in lines] == [
        "install the extra otel: pip install '.[otel]' in a clone of Penstock",
        "install opentelemetry-exporter-otlp-proto-grpc",
        "install the package of this exporter",
    ]
