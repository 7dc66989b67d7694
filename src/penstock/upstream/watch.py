"""Watch an attempt: its span in the trace, and its outcome, times and tokens in the metrics."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from penstock.clock import Clock
from penstock.telemetry.metrics import SUCCESS, Metrics
from penstock.telemetry.tracing import NO_SPAN, Span, span
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed

INTERRUPTED = "interrupted"  # the caller left, the process stopped, or the lease was lost: no failure of the provider
# The names that OpenTelemetry's conventions have for providers; others are named by their slugs.
_PROVIDER_NAMES = {
    "gemini": "gcp.gemini",
    "gemini-omni": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
# What a caller may ask for, and the conventions' name of it.
_REQUEST_ATTRIBUTES = {
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "n": "choice.count",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
_PORTS = {"http": 80, "https": 443}
_NO_TOKENS: Mapping[str, int | float] = {}
_OUTPUT_TYPES = {
    "chat": "text",
    "video": "video",
    "speech": "speech",
    "sound": "audio",
    "transcription": "text",
    "translation": "text",
}  # other tasks make images


class Answered(NamedTuple):
    """What a provider says of an answer beside its text; values may be of any type."""

    id: Any = None
    model: Any = None
    finish_reasons: Sequence[Any] = ()


class AttemptWatch:
    """One attempt, from `with` to the end of the block or, after `keep_open`, to `end`."""

    __slots__ = ("_candidate", "_clock", "_metrics", "_outcome", "_started", "_stays_open", "_task", "_tokens", "span")

    def __init__(self, metrics: Metrics, clock: Clock, candidate: Candidate, task: str) -> None:
        self._metrics = metrics
        self._clock = clock
        self._candidate = candidate
        self._task = task
        self._outcome = SUCCESS
        self._tokens: Mapping[str, int | float] = _NO_TOKENS
        self._stays_open = False
        self._started = 0.0
        operation = "chat" if task == "chat" else "generate_content"
        self.span: Span = span(f"{operation} {candidate.model.upstream}", "client")
        if self.span.is_recorded:
            slug = candidate.provider.slug
            self.span.set("gen_ai.operation.name", operation)
            self.span.set("gen_ai.provider.name", _PROVIDER_NAMES.get(slug, slug))
            self.span.set("gen_ai.request.model", candidate.model.upstream)
            self.span.set("gen_ai.output.type", _OUTPUT_TYPES.get(task, "image"))
            self.span.set("penstock.provider", slug)
            if candidate.provider.base_url:
                server = urlsplit(candidate.provider.base_url)
                self.span.set("server.address", server.hostname)
                self.span.set("server.port", server.port or _PORTS.get(server.scheme))

    def __enter__(self) -> "AttemptWatch":
        self._started = self._clock.monotonic()
        if self.span is not NO_SPAN:
            self.span.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trail: object) -> None:
        if error is not None:
            self.fail(error.failure.kind if isinstance(error, AttemptFailed) else INTERRUPTED)
        if self.span is not NO_SPAN:
            self.span.__exit__(kind, None, trail)
        if error is not None and self._stays_open:
            self.span.end()
        if error is not None or not self._stays_open:
            self._count()

    @property
    def seconds(self) -> float:
        """How long the attempt has taken."""
        return self._clock.monotonic() - self._started

    def fail(self, outcome: str) -> None:
        """Note why the attempt failed: the kind of the failure."""
        self._outcome = outcome
        self.span.fail(outcome)

    def note_request(self, fields: Mapping[str, Any]) -> None:
        """Note the numbers that the body of a chat call asks for."""
        if self.span.is_recorded:
            for name, attribute in _REQUEST_ATTRIBUTES.items():
                if type(value := fields.get(name)) in (int, float):
                    self.span.set(f"gen_ai.request.{attribute}", value)

    def note_answer(self, answered: Answered) -> None:
        """Note which answer of which model it was, and why it ended."""
        if self.span.is_recorded:
            for name, value in (("id", answered.id), ("model", answered.model)):
                self.span.set(f"gen_ai.response.{name}", value if isinstance(value, str) else None)
            if reasons := [reason for reason in answered.finish_reasons if isinstance(reason, str)]:
                self.span.set("gen_ai.response.finish_reasons", reasons)

    def note_first_byte(self) -> None:
        """Note that the first event of a stream has come."""
        seconds = self.seconds
        self.span.set("gen_ai.response.time_to_first_chunk", seconds)
        if self._candidate.drill is None:
            self._metrics.count_first_byte(self._candidate.provider.slug, self._candidate.model.upstream, seconds)

    def note_tokens(self, tokens: Mapping[str, int | float]) -> None:
        """Note what the provider counted: `input`, of which `cached`, and `output` tokens."""
        self._tokens = tokens
        if self.span.is_recorded:
            self.span.set("gen_ai.usage.input_tokens", tokens.get("input"))
            self.span.set("gen_ai.usage.cache_read.input_tokens", tokens.get("cached"))
            self.span.set("gen_ai.usage.output_tokens", tokens.get("output"))

    def keep_open(self) -> None:
        """Go on after the block, until `end`; an exception in the block still ends it."""
        self._stays_open = True
        self.span.keep_open()

    def end(self) -> None:
        """End an attempt that was kept open."""
        self.span.end()
        self._count()

    def _count(self) -> None:
        candidate = self._candidate
        if not candidate.is_rated:  # says nothing about the provider
            return
        self._metrics.count_attempt(
            candidate.provider.slug, candidate.model.upstream, self._task, self._outcome, self.seconds, self._tokens
        )
