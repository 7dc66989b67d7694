"""What the gateway tells about itself: log lines, metrics, traces, and how long each call took.

Start with `metrics`, which counts, and `tracing`, which marks parts of the work as spans. `trace_export` turns tracing
on with OpenTelemetry's SDK, which only `otel` imports. `call_report` collects what the access line of a call says, and
`logs` writes it.
"""
