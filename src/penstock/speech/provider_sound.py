"""Ask a provider for speech, one part of the text after the other, and read the sound from its replies."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec

from penstock.accounts.prices import Line
from penstock.chat.pricing import Bill
from penstock.chat.stream import StreamBroken, WaitingTimes, idle_seconds
from penstock.chat.streamed_call import EXTRA_SECONDS
from penstock.event_loop import LONG_BYTES, run_aside
from penstock.gateway import Gateway
from penstock.net.event_stream import EventBuffer, EventTooLong, data_of_events
from penstock.net.response import ByteStream, OpenResponse
from penstock.providers.speech import Speech, SpeechPart
from penstock.sound.formats import SAMPLE_BYTES
from penstock.speech.plan import SpeechPlan
from penstock.speech.pricing import bill_lines, make_bill
from penstock.speech.voices import speech_of
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, failure_in_body
from penstock.upstream.replies import MALFORMED
from penstock.values import OrgId

_MAX_EVENT_BYTES = 16 * 2**20
_MAX_JSON_BYTES = 64 * 2**20
_MAX_SOUND_BYTES = 640 * 2**20  # of one call: almost four hours of 24 kHz samples
_ERROR_BYTES = 64 * 1024
_TEXTS = ("application/json", "text/html", "text/plain", "application/problem+json")


class ProviderSound:
    """The sound that one provider makes of a call, while it arrives. Closing it ends the request that is under way."""

    def __init__(
        self,
        gateway: Gateway,
        candidate: Candidate,
        plan: SpeechPlan,
        for_org: OrgId,
        *,
        max_seconds: float | None = None,
    ) -> None:
        """`max_seconds` is how long the provider may take, and whoever reads; without it, as long as a stream may."""
        self._gateway = gateway
        self._candidate = candidate
        self._plan = plan
        self._for_org = for_org
        self._speech: Speech = speech_of(plan.model)
        self.times = WaitingTimes(gateway.clock, max_seconds or gateway.settings.stream_seconds)
        self.begun = 0  # parts of the text that the provider was sent
        self.usage: dict[str, int | float] = {}
        self._part_usage: dict[str, int | float] = {}  # of the part that is spoken: later counts replace earlier ones
        self.size_bytes = 0

    def seconds(self, rate: int) -> float:
        """How long the received sound is, if it has so many 16-bit samples a second."""
        return self.size_bytes / SAMPLE_BYTES / rate

    def bill_lines(self, *, is_whole: bool) -> tuple[Line, ...]:
        """What the sound that came so far costs, line by line."""
        return bill_lines(self._plan, self.begun, self.usage, self._heard, is_whole=is_whole)

    def bill(self, *, is_whole: bool) -> Bill:
        """What the sound that came so far costs."""
        return make_bill(self._plan, self.begun, self.usage, self._heard, is_whole=is_whole)

    @property
    def _heard(self) -> float | None:
        """How many seconds of sound came; None where only a decoder could tell."""
        return self.seconds(self._speech.pcm_rate) if self._plan.asked_format in ("pcm", "wav") else None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The bytes of the sound, and an empty piece at the end of each part of the text.

        Raises AttemptFailed, StreamBroken, MaybeSent, NotSent or ProviderTooSlow.
        """
        for number in range(len(self._plan.parts)):
            self.begun += 1
            source = await self._gateway.upstream.stream_chat(
                self._candidate,
                self._plan.body(number),
                idle_seconds=idle_seconds(self._candidate.provider, self._gateway.settings),
                total_seconds=2 * (self.times.max_seconds + EXTRA_SECONDS),
                for_org=self._for_org,
                size_bytes=self._plan.size_bytes(number),
            )
            size_before = self.size_bytes
            async with aclosing(source), aclosing(self._sound(source)) as sound:
                async for data in sound:
                    self.times.end_wait_for_provider()
                    if data:
                        self._count(data)
                        yield data
                        self.times.end_wait_for_caller()
            for name, count in self._part_usage.items():
                self.usage[name] = self.usage.get(name, 0) + count
            self._part_usage = {}
            if self.size_bytes == size_before:
                raise StreamBroken("sent no sound")
            yield b""

    def _count(self, data: bytes) -> None:
        self.size_bytes += len(data)
        if self.size_bytes > _MAX_SOUND_BYTES:
            raise StreamBroken("sent more sound than a call may have")

    def _sound(self, source: ByteStream) -> AsyncGenerator[bytes, None]:
        if self._speech.reply == "body":
            return self._body(source)
        if self._speech.reply == "json":
            return self._whole(source)
        return self._events(source)

    async def _body(self, source: ByteStream) -> AsyncGenerator[bytes, None]:
        """The response as it is, unless it is a text: then it is an error with status 200."""
        if isinstance(source, OpenResponse) and source.headers.get("content-type", "").startswith(_TEXTS):
            body = await source.read(_ERROR_BYTES)
            raise AttemptFailed(failure_in_body(self._candidate, body))
        async for data in source:
            yield data

    async def _whole(self, source: ByteStream) -> AsyncGenerator[bytes, None]:
        """The sound of one JSON object."""
        body = bytearray()
        async for data in source:
            body += data
            if len(body) > _MAX_JSON_BYTES:
                raise StreamBroken("sent a response that is too long")
        read = partial(self._read, bytes(body))
        yield read() if len(body) <= LONG_BYTES else await run_aside(len(body), read)

    async def _events(self, source: ByteStream) -> AsyncGenerator[bytes, None]:
        """The sound of server-sent events, or of lines."""
        is_lines = self._speech.reply == "lines"
        buffer = _Lines(_MAX_EVENT_BYTES) if is_lines else EventBuffer(_MAX_EVENT_BYTES)
        async for data in source:
            try:
                complete = buffer.feed(data)
            except EventTooLong:
                raise StreamBroken("sent an event that is too long") from None
            yield self._read_events(complete, is_lines=is_lines)
        yield self._read_events(buffer.feed(b"\n\n"), is_lines=is_lines)

    def _read_events(self, complete: bytes, *, is_lines: bool) -> bytes:
        found: Iterator[bytes] = filter(None, complete.split(b"\n")) if is_lines else data_of_events(complete)
        return b"".join(self._read(data) for data in found if data != b"[DONE]")

    def _read(self, data: bytes) -> bytes:
        """The sound of a JSON object, whose usage is noted. Raises StreamBroken for an error in it."""
        assert self._speech.read is not None, "only sound in JSON is read"
        try:
            part: SpeechPart = self._speech.read(msgspec.json.decode(data))
        except MALFORMED:
            raise StreamBroken("sent a malformed reply", data) from None
        if part.error == "refused":
            message = f"{self._candidate.provider.name} refused to speak the text."
            raise AttemptFailed(Failure("refused", message))
        if part.error:
            raise StreamBroken("reported an error", data)
        self._part_usage.update({name: count for name, count in part.usage.items() if _is_count(count)})
        return part.sound


def _is_count(count: Any) -> bool:
    return isinstance(count, int | float) and 0 <= count < _MAX_SOUND_BYTES


class _Lines:
    """Complete lines from the bytes of a stream, each with its end."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest = bytearray()

    def feed(self, data: bytes) -> bytes:
        self._rest += data
        end = self._rest.rfind(b"\n") + 1
        lines = bytes(self._rest[:end])
        del self._rest[:end]
        if len(self._rest) > self._max_bytes:
            raise EventTooLong
        return lines
