"""Have one candidate listen to a sound and stream what it understands."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import msgspec

from penstock.chat.stream import StreamBroken, WaitingTimes
from penstock.chat.streamed_call import EXTRA_SECONDS
from penstock.gateway import Gateway
from penstock.net.event_stream import EventBuffer, EventTooLong, data_of_events
from penstock.net.response import ByteStream, OpenResponse
from penstock.providers.spec import Reply
from penstock.providers.transcription import Segment, Transcript, TranscriptEvent
from penstock.transcription.listening import Listening, later_segment
from penstock.transcription.plan import ListenPlan, transcription_of
from penstock.transcription.segments import segments_of
from penstock.transcription.sound import PreparedSound, SoundPart
from penstock.upstream.candidate import Candidate
from penstock.upstream.replies import MALFORMED
from penstock.values import OrgId

_MAX_EVENT_BYTES = 16 * 2**20
_MAX_JSON_BYTES = 64 * 2**20
_EVENTS = "text/event-stream"
_PART_END = TranscriptEvent()
_BETWEEN_PARTS = TranscriptEvent(" ")


class StreamedListening(Listening):
    """A call while one candidate listens and streams."""

    def __init__(
        self, gateway: Gateway, candidate: Candidate, plan: ListenPlan, sound: PreparedSound, for_org: OrgId
    ) -> None:
        super().__init__(gateway, candidate, plan, sound, for_org)
        self.times = WaitingTimes(gateway.clock, gateway.settings.stream_seconds)

    async def events(self) -> AsyncGenerator[TranscriptEvent, None]:
        """What the provider says, with times in the whole sound. A part whose text or segments come with its end only
        has one event of each; an empty event ends each part, so that a silent sound is a stream, too.

        Raises AttemptFailed, StreamBroken, MaybeSent, NotSent, ProviderTooSlow or CallerTooSlow.
        """
        for part in self._sound.parts:
            if self._heard:
                yield _BETWEEN_PARTS
            has_text = has_segments = False
            async with aclosing(self._events_of(part)) as events:
                async for event in events:
                    has_text |= bool(event.delta)
                    has_segments |= event.segment is not None
                    yield _moved(event, part.start)
            heard = self._heard[-1]
            if not has_text and heard.text:
                yield TranscriptEvent(heard.text, heard.logprobs)
            if not has_segments:
                for segment in segments_of(heard):
                    yield TranscriptEvent(segment=later_segment(segment, part.start))
            yield _PART_END

    async def _events_of(self, part: SoundPart) -> AsyncGenerator[TranscriptEvent, None]:
        """The events of one part, which is among those that were heard at their end."""
        body = self._plan.body(part.file, self._prompt(), is_streamed=True)
        self._begun += 1
        seconds = self._gateway.settings.upstream_seconds
        source = await self._gateway.upstream.stream_chat(
            self._candidate,
            body,
            idle_seconds=seconds,
            total_seconds=2 * (self.times.max_seconds + EXTRA_SECONDS),
            for_org=self._for_org,
            size_bytes=len(part.file.data),
        )
        async with aclosing(source):
            if isinstance(source, OpenResponse) and not source.headers.get("content-type", "").startswith(_EVENTS):
                reply = await source.read(_MAX_JSON_BYTES)
                self._heard.append(self._read(Reply(source.status, source.headers, reply)))
                return
            segments: list[Segment] = []
            whole: Transcript | None = None
            async with aclosing(self._read_events(source)) as events:
                async for event in events:
                    self.times.end_wait_for_provider()
                    whole = event.whole or whole
                    self._unfinished += event.delta
                    if event.segment:
                        segments.append(event.segment)
                    yield event
                    self.times.end_wait_for_caller()
        if whole is None:
            raise StreamBroken("ended its stream before the end of the transcript")
        if segments and not whole.segments:
            whole = msgspec.structs.replace(whole, segments=tuple(segments))
        self._heard.append(self._checked(whole))
        self._unfinished = ""

    async def _read_events(self, source: ByteStream) -> AsyncGenerator[TranscriptEvent, None]:
        buffer = EventBuffer(_MAX_EVENT_BYTES)
        async for data in _with_end(source):
            try:
                complete = buffer.feed(data)
            except EventTooLong:
                raise StreamBroken("sent an event that is too long") from None
            for each in data_of_events(complete):
                if each != b"[DONE]":
                    yield self._read_event(each)

    def _read_event(self, data: bytes) -> TranscriptEvent:
        read = transcription_of(self._plan.model).read_event
        assert read is not None, "only models with events are asked for them"
        try:
            event = read(msgspec.json.decode(data))
        except MALFORMED:
            raise StreamBroken("sent a malformed event") from None
        if event.is_error:
            raise StreamBroken("reported an error", data)
        return event


async def _with_end(source: ByteStream) -> AsyncIterator[bytes]:
    """The bytes of a stream; what a last event without an empty line lacks is added."""
    async for data in source:
        yield data
    yield b"\n\n"


def _moved(event: TranscriptEvent, by: float) -> TranscriptEvent:
    return event._replace(segment=later_segment(event.segment, by)) if event.segment and by else event
