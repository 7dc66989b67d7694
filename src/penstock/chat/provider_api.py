"""The API in which a provider is called: its body, how responses are read, and what callers get of them."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from penstock.chat.form import ResponseForm
from penstock.chat.normalise import Completion, rename_finish_reasons, repaired_completion
from penstock.chat.pricing import Usage, estimated_usage, without_usage
from penstock.chat.provider_body import provider_body
from penstock.chat.request import ChatRequest
from penstock.chat.stream import Relay
from penstock.clock import Clock
from penstock.errors import Problem
from penstock.upstream.candidate import Candidate
from penstock.upstream.watch import Answered
from penstock.values import Nanos

_NO_FINISH_REASONS: Mapping[bytes, bytes] = {}
_completion_decoder = msgspec.json.Decoder(Completion)


def _decode_completion(body: bytes) -> Completion:
    try:
        return _completion_decoder.decode(body)
    except msgspec.ValidationError:
        return _completion_decoder.decode(without_usage(body))


class WholeReply(msgspec.Struct, frozen=True):
    """What the gateway reads of a whole response."""

    usage: Usage | None
    is_empty: bool  # nothing was written
    error: bytes = b""  # JSON with an `error`, which came with status 200
    answered: Answered = Answered()


class StreamRelay(Protocol):
    """Turns the bytes of a provider's stream into complete events, and reads the usage from them."""

    usage: Usage | None
    is_answered: bool  # the model has written everything; only the usage is missing
    done: bool

    @property
    def answered(self) -> Answered:
        """What the provider said of the answer so far."""

    @property
    def least_tokens(self) -> int:
        """How many tokens the events have at least that were passed on."""

    @property
    def spoken_seconds(self) -> float:
        """How many seconds of speech the events have that were passed on."""

    @property
    def kept_bytes(self) -> int:
        """How many bytes of an incomplete event there are."""

    def feed(self, data: bytes) -> bytes:
        """Take bytes from the provider and return the events that can be passed on; raise StreamBroken."""


class ProviderApi(Protocol):
    """How one call is made to one candidate, whole or as a stream."""

    @property
    def candidate(self) -> Candidate:
        """The candidate, with the path of this API."""

    def body(self, default_output_tokens: int) -> dict[str, Any]:
        """The body for the provider."""

    def read(self, body: bytes) -> WholeReply:
        """Read a whole response; raise msgspec.DecodeError if it is malformed."""

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        """The body for the caller, from that of the provider, which was read before."""

    def relay(self) -> StreamRelay:
        """What reads the provider's stream."""

    def feed(self, events: bytes) -> bytes:
        """The next bytes for the caller, from events of the relay."""

    def finish(self, usage: Usage, cost: Nanos) -> bytes:
        """The last bytes of a stream that ended well."""

    def fail(self, problem: Problem) -> bytes:
        """The last bytes of a stream that the provider broke off."""

    def output_json(self) -> bytes:
        """JSON with the `output` of a stream of the Responses API as far as it has come; empty for other APIs."""


class CompletionsApi:
    """Chat completions, which the form of the call may translate for the caller."""

    def __init__(self, chat: ChatRequest, candidate: Candidate, form: ResponseForm, clock: Clock) -> None:
        self._chat = chat
        self._form = form
        self._clock = clock
        self._is_documented = False  # whether the response that was read has every documented field
        self.candidate = candidate
        self.feed = form.feed
        self.finish = form.finish
        self.fail = form.fail
        self.output_json = form.output_json

    def body(self, default_output_tokens: int) -> dict[str, Any]:
        return provider_body(self._chat, self.candidate.model, default_output_tokens)

    def read(self, body: bytes) -> WholeReply:
        completion = _decode_completion(body)
        self._is_documented = completion.is_documented
        error = body if bytes(completion.error) != b"null" else b""
        answered = Answered(completion.id, completion.model, [choice.finish_reason for choice in completion.choices])
        return WholeReply(completion.usage, is_empty=not completion.choices, error=error, answered=answered)

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        if not self._is_documented:
            body = rename_finish_reasons(body, self._finish_reasons)
            if not _decode_completion(body).is_documented:
                body = repaired_completion(body, self._chat.model, usage, self._clock.now_ms() // 1000)
        return self._form.whole(body, usage, cost)

    def relay(self) -> Relay:
        return Relay(
            keeps_usage=self._chat.wants_usage,
            usage_everywhere=bool((self._chat.body.get("stream_options") or {}).get("continuous_usage_stats")),
            model=self._chat.model,
            prompt_tokens=estimated_usage(self._chat, self.candidate.token_prices).input,
            finish_reasons=self._finish_reasons,
            choices=self._chat.choices,
        )

    @property
    def _finish_reasons(self) -> Mapping[bytes, bytes]:
        reasons: Mapping[bytes, bytes] = self.candidate.model.op.settings.get("finish_reasons", _NO_FINISH_REASONS)
        return reasons
