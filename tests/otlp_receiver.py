"""A collector of traces: an HTTP server on loopback that reads OTLP messages, and the spans it was sent."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

Value = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    attributes: dict[str, Value]
    is_failed: bool
    service: str


@dataclass(slots=True)
class OtlpReceiver:
    """What was received so far. While `responding` is not set, requests get no response."""

    port: int
    spans: list[ReceivedSpan] = field(default_factory=list)
    responding: threading.Event = field(default_factory=threading.Event)
    requests: int = 0
    raw: bytes = b""

    @property
    def environ(self) -> dict[str, str]:
        """The variables that send traces here, soon after they end."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}", "OTEL_BSP_SCHEDULE_DELAY": "50"}

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def children(self, parent: ReceivedSpan) -> list[str]:
        """The names of the spans directly under one, in alphabetical order."""
        return sorted(span.name for span in self.spans if span.parent_id == parent.span_id)

    def read(self, body: bytes) -> None:
        self.requests += 1
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {item.key: _value(item.value) for item in resource.resource.attributes}["service.name"]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    received = ReceivedSpan(
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.kind,
                        {item.key: _value(item.value) for item in span.attributes},
                        span.status.code == 2,
                        str(service),
                    )
                    self.spans.append(received)


def _value(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    assert kind is not None
    if kind == "array_value":
        return [str(_value(item)) for item in value.array_value.values]
    found: str | int | float | bool = getattr(value, kind)
    return found


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Receive traces in threads of this process."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            receiver.responding.wait()
            receiver.read(body)
            reply = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = OtlpReceiver(server.server_port)
    receiver.responding.set()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.responding.set()
        server.shutdown()
        thread.join()
        server.server_close()
