"""Pass calls of OpenAI's Responses API on to providers that speak it themselves, and their responses back.

What the gateway changes: the model's name, `store`, the limit of tokens, images that a provider must not fetch itself,
and in the response the model's name and the cost beside the usage. All other bytes stay as they are.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from penstock.chat.pricing import Usage, without_usage
from penstock.chat.provider_api import WholeReply
from penstock.chat.provider_body import NOT_FORWARDED, apply_rows, token_limit
from penstock.chat.request import TOKEN_LIMITS, ChatRequest
from penstock.chat.responses_output import error_fields, usage_fields
from penstock.chat.responses_request import ResponsesRequest, has_encrypted_reasoning
from penstock.chat.stream import ProviderEvents, StreamBroken
from penstock.chat.written import JSON_TEXT, least_tokens
from penstock.errors import Problem
from penstock.models.preferences import FIELD as PREFERENCES
from penstock.net.event_stream import contains_any, event_data, named_event
from penstock.upstream.candidate import Candidate
from penstock.upstream.watch import Answered
from penstock.values import Nanos, dollars

_MAX_EVENT_BYTES = 8 * 1024 * 1024  # the last event has the whole response
_REASONING = ("reasoning", "item_reference")  # references to other items were refused
_NOT_PASSED_ON = frozenset({*NOT_FORWARDED, *TOKEN_LIMITS, "messages"})
_MAX_FIRST_BYTES = 2 * _MAX_EVENT_BYTES  # of all events before the model writes something
# The events before the model writes something: until then the call can still go to another provider.
_FIRST_EVENTS = frozenset({"response.created", "response.queued", "response.in_progress"})
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete"})
# Only events with one of these are decoded. Quotes inside a JSON string are escaped, so text never has them.
_DECODED = (b'"response":', b'"error"', b"[DONE]")
_DELTA = b'.delta"'  # at the end of the types of events with new content
_ITEM_DONE = b'"response.output_item.done"'
_DELTA_TEXT = re.compile(b'"delta' + JSON_TEXT)
_encode = msgspec.json.Encoder(decimal_format="number").encode

RawFields = dict[str, msgspec.Raw]  # the values of an object as they were written


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    audio_tokens: int | None = None


class _ResponseUsage(msgspec.Struct):
    """The usage in the words of the Responses API."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None
    cost: Any = None
    cost_in_usd_ticks: Any = None
    is_byok: Any = None
    cost_details: Any = None

    def as_chat(self) -> Usage:
        fields = {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "prompt_tokens_details": self.input_tokens_details,
            "completion_tokens_details": self.output_tokens_details,
            "cost": self.cost,
            "cost_in_usd_ticks": self.cost_in_usd_ticks,
            "is_byok": self.is_byok,
            "cost_details": self.cost_details,
        }
        return msgspec.convert(fields, Usage, from_attributes=True)


class _Response(msgspec.Struct):
    """What is read of a response object."""

    id: Any = None
    model: Any = None
    status: Any = None
    output: list[msgspec.Raw] = []
    usage: _ResponseUsage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def chat_usage(self) -> Usage | None:
        return self.usage.as_chat() if self.usage else None

    @property
    def answered(self) -> Answered:
        return Answered(self.id, self.model)

    @property
    def error_body(self) -> bytes:
        """JSON with the `error`, if the response failed."""
        if bytes(self.error) != b"null":
            return b'{"error":%b}' % bytes(self.error)
        return b'{"error":{}}' if self.status == "failed" else b""


class _Event(msgspec.Struct):
    type: str = ""
    response: _Response | None = None


_decode_response = msgspec.json.Decoder(_Response).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_usage = msgspec.json.Decoder(_ResponseUsage | None).decode
_decode_fields = msgspec.json.Decoder(RawFields).decode


def responses_body(
    chat: ChatRequest, request: ResponsesRequest, candidate: Candidate, default_output_tokens: int
) -> dict[str, Any]:
    """The body for the provider: the caller's, with the provider's name of the model, and stateless."""
    model = candidate.model
    fields = {name: value for name, value in request.body.items() if name not in _NOT_PASSED_ON}
    if PREFERENCES not in chat.body:
        fields.pop(PREFERENCES, None)
    fields["input"] = _provider_input(chat, request, candidate)
    limit = token_limit(chat, model, default_output_tokens)
    if limit is not None:
        fields["max_output_tokens"] = limit
    apply_rows(model, fields)
    return {**fields, "model": model.upstream, "store": False}


def _provider_input(chat: ChatRequest, request: ResponsesRequest, candidate: Candidate) -> Any:
    """The caller's items with the checked sources of images, the provider's names of roles, and no reasoning that
    only a provider that stored it could find.
    """
    given = request.body["input"]
    if isinstance(given, str):
        return given
    items = list(given)
    for image in chat.images:
        part = chat.body["messages"][image.message]["content"][image.part]
        origin = request.origins[image.message]
        item = items[origin.number]
        parts = list(item[origin.field])
        parts[image.part] = {**parts[image.part], "image_url": part["image_url"]["url"]}
        items[origin.number] = {**item, origin.field: parts}
    items = [item for item in items if item.get("type") not in _REASONING or has_encrypted_reasoning(item)]
    roles = candidate.model.op.param("messages")
    return roles.convert(items) if roles and roles.convert else items


class ResponsesApi:
    """The Responses API of a provider, for a call of the gateway's own."""

    def __init__(self, chat: ChatRequest, request: ResponsesRequest, candidate: Candidate) -> None:
        self._chat = chat
        self._request = request
        self._relay = _ResponsesRelay(chat.model)
        op = replace(candidate.model.op, send=candidate.model.op.responses or "")
        self.candidate = replace(candidate, model=replace(candidate.model, op=op))

    def body(self, default_output_tokens: int) -> dict[str, Any]:
        return responses_body(self._chat, self._request, self.candidate, default_output_tokens)

    # --------------------------------------------------------------------------------------------------------- whole

    def read(self, body: bytes) -> WholeReply:
        try:
            found = _decode_response(body)
        except msgspec.ValidationError:
            found = _decode_response(without_usage(body))
        is_empty = not found.output and found.status != "incomplete"
        return WholeReply(found.chat_usage, is_empty=is_empty, error=found.error_body, answered=found.answered)

    def whole(self, body: bytes, usage: Usage, cost: Nanos) -> bytes:
        return _encode(_with_cost(_with_model(_decode_fields(body), self._chat.model), usage, cost))

    # -------------------------------------------------------------------------------------------------------- stream

    def relay(self) -> "_ResponsesRelay":
        return self._relay

    def feed(self, events: bytes) -> bytes:
        return events

    def finish(self, usage: Usage, cost: Nanos) -> bytes:
        return self._relay.last_event(usage, cost)

    def fail(self, problem: Problem) -> bytes:
        return self._relay.failed_event(problem)

    def output_json(self) -> bytes:
        return self._relay.output_json()


class _ResponsesRelay:
    """Passes the events of a stream on; the first ones come together with the first one that has content.

    The last event is kept, because the cost is added to it.
    """

    def __init__(self, model: str) -> None:
        self._event_count = 0  # events with new content
        self._text_bytes = 0  # in these events
        self.usage: Usage | None = None
        self.answered = Answered()
        self.is_answered = False
        self.done = False
        self._model = model
        self._provider_events = ProviderEvents(_MAX_EVENT_BYTES)
        self._held = _FirstEvents()
        self._response: RawFields = {}  # as the newest event has it
        self._last: RawFields = {}
        self._sent = 0  # how many events were passed on

    @property
    def least_tokens(self) -> int:
        return least_tokens(self._event_count, self._text_bytes)

    @property
    def spoken_seconds(self) -> float:
        return 0

    @property
    def kept_bytes(self) -> int:
        return self._provider_events.buffer.size_bytes

    def feed(self, data: bytes) -> bytes:
        events = self._provider_events.feed(data, has_content=self._sent > 0 and not self._held)
        if contains_any(events, _DECODED):
            events = self._read_events(events)
        if not events:
            return b""
        self.is_answered = _ITEM_DONE in events
        self._event_count += events.count(_DELTA)
        self._text_bytes += sum(map(len, _DELTA_TEXT.findall(events)))
        self._sent += events.count(b"data:")
        return self._held.take() + events

    def _read_events(self, events: bytes) -> bytes:
        """Read each event that has the response; return those that can be passed on."""
        shown = []
        for event in events.split(b"\n\n"):
            data = event_data(event)
            if not data or data == b"[DONE]" or self.done:
                continue
            found = _read_event(data)
            if found.type == "error" or (found.response and found.response.error_body):
                raise self._broken(data, found)
            shown.append(self._read_response(data, found) if found.response else event + b"\n\n")
        return b"".join(shown)

    def _read_response(self, data: bytes, found: _Event) -> bytes:
        """Read an event with the response; return it with the caller's name of the model, if it is passed on now."""
        assert found.response is not None, "the caller looked"
        fields = _decode_fields(data)
        self._response = _with_model(_decode_fields(fields["response"]), self._model)
        fields["response"] = msgspec.Raw(_encode(self._response))
        self.usage = found.response.chat_usage or self.usage
        self.answered = found.response.answered
        if found.type in _LAST_EVENTS:
            self.done = True
            self._last = fields
            return b""
        event = named_event(found.type, _encode(fields))
        if found.type in _FIRST_EVENTS:
            self._held.add(event)
            self._sent += 1
            return b""
        return event

    def _broken(self, data: bytes, found: _Event) -> StreamBroken:
        self.usage = (found.response and found.response.chat_usage) or self.usage
        error = found.response.error_body if found.response else _error_body(data)
        return StreamBroken("reported an error in its stream", error)

    def last_event(self, usage: Usage, cost: Nanos) -> bytes:
        """The event that ends the stream, with the cost; and the first events, if nothing was written."""
        response = _encode(_with_cost(self._response, usage, cost))
        kind: str = msgspec.json.decode(self._last["type"])
        return self._held.take() + named_event(kind, _encode({**self._last, "response": msgspec.Raw(response)}))

    def output_json(self) -> bytes:
        """JSON with the items of the whole response; they are known when it has ended."""
        return _encode({"output": self._response["output"]}) if self.done and "output" in self._response else b""

    def failed_event(self, problem: Problem) -> bytes:
        """The event that ends a stream which did not end well."""
        error = error_fields(problem)
        response = {"output": [], **self._response, "status": "failed", "error": error, "model": self._model}
        kind = "response.failed"
        fields = {"type": kind, "sequence_number": self._sent, "response": response}
        return self._held.take() + named_event(kind, _encode(fields))


class _FirstEvents:
    """The events before the first one with content, which are passed on together with it."""

    def __init__(self) -> None:
        self._events: list[bytes] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, event: bytes) -> None:
        self._events.append(event)
        self._size += len(event)
        if self._size > _MAX_FIRST_BYTES:
            raise StreamBroken("sent too many events without content")

    def take(self) -> bytes:
        events = b"".join(self._events)
        self._events.clear()
        self._size = 0
        return events


def _error_body(data: bytes) -> bytes:
    """JSON with an `error` for an event of the type `error`, whose fields some servers nest and OpenAI does not."""
    fields = _decode_fields(data)
    return data if "error" in fields else _encode({"error": fields})


def _with_model(response: RawFields, model: str) -> RawFields:
    return {**response, "model": msgspec.Raw(_encode(model))}


def _read_event(data: bytes) -> _Event:
    """Read an event, without a usage that is malformed. Raises StreamBroken."""
    try:
        return _decode_event(data)
    except msgspec.DecodeError:
        try:
            return _decode_event(without_usage(data))
        except msgspec.DecodeError:
            raise StreamBroken("sent a malformed event") from None


def _with_cost(response: RawFields, usage: Usage, cost: Nanos) -> RawFields:
    """The response with its cost beside the usage; the usage is estimated if the provider reports none."""
    reported = _decode_fields(response["usage"]) if _is_usage(response.get("usage")) else {}
    fields: Mapping[str, Any] = reported or usage_fields(usage, cost)
    return {**response, "usage": msgspec.Raw(_encode({**fields, "cost": dollars(cost), "cost_currency": "USD"}))}


def _is_usage(value: msgspec.Raw | None) -> bool:
    try:
        return value is not None and _decode_usage(value) is not None
    except msgspec.ValidationError:
        return False
