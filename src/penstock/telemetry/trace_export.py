"""Turn tracing on where OTEL_* variables ask for the export of traces, with OpenTelemetry's SDK from the extra `otel`.

Here it is only decided whether and with which exporter. Endpoint, headers, sampler, service name and all other
variables are read by the SDK itself.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import entry_points

import structlog

from penstock.package_extras import how_to_install
from penstock.telemetry.tracing import Tracing

log = structlog.get_logger()

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PACKAGES = {
    "otlp_proto_http": f"the extra otel: {how_to_install('otel')}",
    "otlp_proto_grpc": "opentelemetry-exporter-otlp-proto-grpc, or set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
}


@asynccontextmanager
async def open_tracing(environ: Mapping[str, str]) -> AsyncIterator[Tracing | None]:
    """Export traces while this is open, if the environment asks for it; otherwise None."""
    names = exporter_names(environ)
    found = {name: entry for name in names for entry in entry_points(group="opentelemetry_traces_exporter", name=name)}
    for name in names:
        if name not in found:
            needed = _PACKAGES.get(name, "the package of this exporter")
            log.warning(f"traces are not exported: install {needed}", exporter=name)
    if not found:
        yield None
        return
    from penstock.telemetry.otel import OtelTracing  # imported here because the SDK is an extra, and slow to import

    tracing = OtelTracing([entry.load()() for entry in found.values()])
    log.info("traces are exported", exporters=sorted(found))
    try:
        yield tracing
    finally:
        await tracing.close()


def exporter_names(environ: Mapping[str, str]) -> list[str]:
    """The exporters that the environment asks for: those in OTEL_TRACES_EXPORTER, or OTLP if it has an endpoint."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    asked = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if not asked:
        asked = "otlp" if any(environ.get(name) for name in _ENDPOINTS) else "none"
    names = [name.strip() for name in asked.split(",")]
    return [_otlp_exporter(environ) if name == "otlp" else name for name in names if name not in ("", "none")]


def _otlp_exporter(environ: Mapping[str, str]) -> str:
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    return "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
