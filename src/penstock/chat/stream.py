"""Pass a provider's stream of chat events on while it arrives, and read the usage from it."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec

import msgspec

from penstock.chat.chunk_shapes import ChunkShapes
from penstock.chat.normalise import (
    REASON_MARKS,
    ChunkHead,
    found_finish_reasons,
    rename_finish_reasons,
    repaired_chunk,
    stream_head,
    usage_fields,
)
from penstock.chat.pricing import Usage, without_usage
from penstock.chat.tool_calls import TOOL_CALL_MARKS, CallNumbers
from penstock.chat.written import least_tokens, spoken_seconds, written_bytes
from penstock.clock import Clock
from penstock.net.event_stream import EventBuffer, EventTooLong, contains_any, data_of_events, event_data
from penstock.net.response import ByteStream
from penstock.providers.spec import Provider
from penstock.settings import Settings
from penstock.upstream.replies import MALFORMED
from penstock.upstream.watch import Answered

P = ParamSpec("P")

# Both find all that follow each other at once: a provider may send thousands.
_EVENTS_OF_COMMENTS = re.compile(rb"(?:\A|(?<=\n\n))(?:(?::[^\n]*\n)+\n+)+")
_COMMENTS_IN_EVENT = re.compile(rb"^(?::[^\n]*\n)+", re.MULTILINE)

_MAX_EVENT_BYTES = 1024 * 1024
_MAX_HELD_BYTES = 64 * 1024  # of events without choices at the beginning
_END_SECONDS = 2.0  # how long the usage is waited for after a caller has left with the whole answer
_REASONING_END_SECONDS = 10.0  # the same after a caller has left earlier, for a model that thinks before it answers
_IDLE_SECONDS = 60.0  # a stream may be silent for so long
# Only events with one of these are decoded; the others are content.
_EMPTY_REASON = b'"finish_reason":""'  # in chunks before the last one
_NO_REASON = b'"finish_reason":null'
_DECODED = (b'"usage":{', b'"usage": {', b'"error"', b"[DONE]")


class StreamBroken(Exception):
    """A provider's stream contains an error or something that is not a chat event.

    The message continues a sentence that begins with the provider's name. `event` is the provider's error, if any.
    """

    def __init__(self, message: str, event: bytes = b"") -> None:
        super().__init__(message)
        self.event = event


def translate_events(translate: Callable[P, bytes], *args: P.args, **kwargs: P.kwargs) -> bytes:
    """Return what a function makes of a provider's events; raise StreamBroken if they have not the shape it expects."""
    try:
        return translate(*args, **kwargs)
    except MALFORMED:
        raise StreamBroken("sent a malformed event") from None


async def read_end(source: ByteStream, feed: Callable[[bytes], Awaitable[bytes]], *, is_answered: bool) -> None:
    """Read the end of a stream whose caller left, with the whole answer or earlier: the usage comes last. Failures are
    ignored.
    """

    async def read() -> None:
        async for data in source:
            await feed(data)

    reading = asyncio.ensure_future(read())  # a task of its own, because that of the caller may be cancelled
    try:
        await asyncio.wait([reading], timeout=_END_SECONDS if is_answered else _REASONING_END_SECONDS)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class ProviderTooSlow(Exception):
    """The provider took longer for its stream than it may."""


class CallerTooSlow(Exception):
    """The caller took longer to read its stream than it may."""


class WaitingTimes:
    """How long a stream has waited for its provider, and how long for its caller to read, each up to `max_seconds`.

    They are counted apart, so that a caller who reads slowly is not taken for a provider that fails.
    """

    __slots__ = ("_clock", "_for_caller", "_for_provider", "_since", "max_seconds")

    def __init__(self, clock: Clock, max_seconds: float) -> None:
        self.max_seconds = max_seconds
        self._clock = clock
        self._since = clock.monotonic()
        self._for_provider = 0.0
        self._for_caller = 0.0

    @property
    def provider_seconds(self) -> float:
        """How long the stream has waited for its provider."""
        return self._for_provider

    def end_wait_for_provider(self) -> None:
        now = self._clock.monotonic()
        self._for_provider += now - self._since
        self._since = now
        if self._for_provider > self.max_seconds:
            raise ProviderTooSlow

    def end_wait_for_caller(self) -> None:
        now = self._clock.monotonic()
        self._for_caller += now - self._since
        self._since = now
        if self._for_caller > self.max_seconds:
            raise CallerTooSlow


def idle_seconds(provider: Provider, settings: Settings) -> float:
    """How long a provider's stream may be silent. A server of the operator's own may be loading a model, which takes as
    long as a call that is not streamed may take.
    """
    return max(_IDLE_SECONDS, settings.upstream_seconds) if provider.self_hosted else _IDLE_SECONDS


class _Choice(msgspec.Struct):
    delta: dict[str, Any] | None = None
    finish_reason: Any = None

    @property
    def is_empty(self) -> bool:
        return not self.finish_reason and not any((self.delta or {}).values())


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


_decode_chunk = msgspec.json.Decoder(_Chunk).decode
_decode_head = msgspec.json.Decoder(ChunkHead).decode


class ProviderEvents:
    """Complete events from the bytes of a provider's chat stream."""

    __slots__ = ("buffer",)

    def __init__(self, max_event_bytes: int = _MAX_EVENT_BYTES) -> None:
        self.buffer = EventBuffer(max_event_bytes)

    def feed(self, data: bytes, *, has_content: bool) -> bytes:
        """Return the events that are complete now; without comments, as long as there was no content."""
        try:
            events = self.buffer.feed(data)
        except EventTooLong:
            raise StreamBroken("sent an event that is too long") from None
        if not events.isascii():
            _check_utf8(events)
        if not has_content and (events.startswith(b":") or b"\n:" in events):
            events = _without_comments(events)
        return events


@dataclass(slots=True)
class Relay:
    """Turns the bytes of a provider's stream into complete events, and reads the usage from them.

    A provider whose first chunk lacks documented fields gets all its chunks repaired. Usage in a chunk with choices is
    taken out of it and comes in a chunk of its own, as from OpenAI. Each tool call gets an index of its own. The first
    chunk has the role, the last one an empty delta. Other chunks stay as they are.
    """

    keeps_usage: bool  # whether the caller asked for the usage chunk
    usage_everywhere: bool = False  # whether the caller asked for usage in every chunk, which vLLM can send
    model: str = ""  # for a provider that does not name it
    prompt_tokens: int = 0  # an estimate, for a provider that reports no usage
    finish_reasons: Mapping[bytes, bytes] = field(default_factory=dict)  # the provider's to those of the interface
    event_count: int = 0  # events with content
    text_bytes: int = 0  # in these events
    spoken_seconds: float = 0  # in these events
    usage: Usage | None = None
    is_answered: bool = False
    done: bool = False
    size_bytes: int = 0  # of what was passed on
    choices: int = 1  # how many the caller asked for
    _held: bytes = b""  # events before the first one with choices
    _finish_reasons: list[str] = field(default_factory=list)  # in the words of the interface
    _head: dict[str, Any] | None = None  # what all chunks have in common; None before the first one
    _repairs: bool = False
    _has_tool_calls: bool = False
    _usage_to_send: dict[str, Any] | None = None  # what was taken out of a chunk with choices
    _calls: CallNumbers = field(default_factory=CallNumbers, repr=False)
    _shapes: ChunkShapes = field(init=False, repr=False)
    _provider_events: ProviderEvents = field(default_factory=ProviderEvents, repr=False)

    def __post_init__(self) -> None:
        self._shapes = ChunkShapes(self.choices)

    @property
    def least_tokens(self) -> int:
        return least_tokens(self.event_count, self.text_bytes)

    @property
    def answered(self) -> Answered:
        head = self._head or {}
        return Answered(head.get("id"), head.get("model"), self._finish_reasons)

    @property
    def kept_bytes(self) -> int:
        return self._provider_events.buffer.size_bytes + len(self._held)

    def feed(self, data: bytes) -> bytes:
        """Take bytes from the provider and return the events that can be passed on; raise StreamBroken."""
        events = self._provider_events.feed(data, has_content=self.event_count > 0)
        if not events:
            return b""
        if self._head is None:
            events = self._begin(self._held + events)
            if not events:
                return b""
        if self._repairs or contains_any(events, _DECODED):
            events = self._filter_events(events)
        else:
            self.event_count += events.count(b"data:")
        events = self._shapes.apply(events)
        if contains_any(events, TOOL_CALL_MARKS):
            events = self._calls.renumber(events)
        self.text_bytes += written_bytes(events)
        self.spoken_seconds += spoken_seconds(events)
        if _EMPTY_REASON in events:
            events = events.replace(_EMPTY_REASON, _NO_REASON)
        if contains_any(events, REASON_MARKS):
            self.is_answered = True
            events = rename_finish_reasons(events, self.finish_reasons)
            self._finish_reasons += found_finish_reasons(events)
        self.size_bytes += len(events)
        return events

    def _filter_events(self, events: bytes) -> bytes:
        """Read each event; leave out or add the usage chunk, as the caller asked for it or not."""
        kept = []
        for event in events.split(b"\n\n"):
            data = event_data(event)
            if not data:
                if event:
                    kept.append(event)
            elif data == b"[DONE]":
                self.done = True
                kept += self._added_usage_chunk()
                kept.append(event)
            else:
                kept += self._read_chunk(event, data)
        return b"\n\n".join([*kept, b""]) if kept else b""

    def _begin(self, events: bytes) -> bytes:
        """Read what all chunks have in common, and see whether they need repair, as soon as one has choices. The events
        before that one are held back, because they may lack what it says.
        """
        found: list[ChunkHead] = []
        is_ready = len(events) > _MAX_HELD_BYTES
        for data in data_of_events(events):
            if data == b"[DONE]" or b'"error"' in data:
                is_ready = True
                break
            try:
                found.append(_decode_head(data))
            except msgspec.DecodeError:  # which is found again when the event is read
                is_ready = True
                break
            if found[-1].choices:
                is_ready = True
                break
        if is_ready and found:
            self._head = stream_head(found, self.model, int(time.time()))
            self._repairs = not all(head.is_documented for head in found)
        self._held = b"" if is_ready else events
        return events if is_ready else b""

    def _repaired(self, data: bytes) -> bytes:
        chunk = msgspec.json.decode(data)
        deltas = [choice.get("delta") or {} for choice in chunk.get("choices") or ()]
        self._has_tool_calls = self._has_tool_calls or any(delta.get("tool_calls") for delta in deltas)
        fields = repaired_chunk(chunk, self._head or {}, has_tool_calls=self._has_tool_calls)
        return b"data: " + msgspec.json.encode(fields)

    def _added_usage_chunk(self) -> list[bytes]:
        """The usage chunk that the caller asked for and the provider did not send, just before the end.

        Where the provider reported no usage at all, it is estimated, as it is charged.
        """
        is_sent = self.usage is not None and self._usage_to_send is None
        if not self.keeps_usage or is_sent or self._head is None:
            return []
        found = self.usage or Usage(prompt_tokens=self.prompt_tokens, completion_tokens=self.least_tokens)
        usage = {**(self._usage_to_send or {}), **usage_fields(found)}
        chunk = repaired_chunk({"choices": [], "usage": usage}, self._head, has_tool_calls=False)
        return [b"data: " + msgspec.json.encode(chunk)]

    def _read_chunk(self, event: bytes, data: bytes) -> list[bytes]:
        """Read the usage of a chunk and return the event that is passed on, if any."""
        try:
            chunk = _decode_chunk(data)
        except msgspec.DecodeError:
            return self._read_without_usage(data)
        if bytes(chunk.error) != b"null":
            raise StreamBroken("reported an error in its stream", data)
        self.event_count += bool(chunk.choices)
        if chunk.usage is not None:
            self.usage = chunk.usage
            if not chunk.choices:
                self._usage_to_send = None
                if not self.keeps_usage:
                    return []
            elif not self.usage_everywhere:
                data = self._take_out_usage(data)
                event = b"data: " + data
                if all(choice.is_empty for choice in chunk.choices):
                    return []
        return [self._repaired(data) if self._repairs else event]

    def _read_without_usage(self, data: bytes) -> list[bytes]:
        """Read a chunk whose usage is malformed as if it had none. Raises StreamBroken if that was not all."""
        try:
            data = without_usage(data)
            chunk = _decode_chunk(data)
        except msgspec.DecodeError:
            raise StreamBroken("sent a malformed chunk") from None
        is_needed = chunk.choices or bytes(chunk.error) != b"null"
        return self._read_chunk(b"data: " + data, data) if is_needed else []

    def _take_out_usage(self, data: bytes) -> bytes:
        """Keep the usage of a chunk for the end, and return the chunk without it."""
        fields: dict[str, Any] = msgspec.json.decode(data)
        self._usage_to_send = fields.pop("usage")
        return msgspec.json.encode(fields)


def _check_utf8(events: bytes) -> None:
    """Raise StreamBroken if the bytes are not UTF-8; most events are not decoded otherwise."""
    try:
        events.decode()
    except UnicodeDecodeError:
        raise StreamBroken("sent an event that is not valid UTF-8") from None


def _without_comments(events: bytes) -> bytes:
    """Remove comments, with which a provider keeps the connection open before its first event.

    As long as nothing is passed on, the call can still go to another provider.
    """
    return _COMMENTS_IN_EVENT.sub(b"", _EVENTS_OF_COMMENTS.sub(b"", events))
