"""Have one candidate listen to a sound, one part after the other, and join what it understood."""

import re
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal

from penstock.accounts.prices import Line
from penstock.chat.pricing import Bill
from penstock.gateway import Gateway
from penstock.providers.spec import Reply, Upload
from penstock.providers.transcription import Segment, Transcript, Word
from penstock.transcription.plan import ListenPlan, transcription_of
from penstock.transcription.pricing import bill_lines, make_bill
from penstock.transcription.segments import has_detail
from penstock.transcription.sound import PreparedSound, SoundPart
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.upstream.replies import MALFORMED
from penstock.values import Nanos, OrgId, nanos

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[」』）]*")
_PROMPT_CHARACTERS = 400

ReadPart = Callable[[SoundPart], Awaitable[Upload]]


class Listening:
    """A call while one candidate listens."""

    def __init__(
        self,
        gateway: Gateway,
        candidate: Candidate,
        plan: ListenPlan,
        sound: PreparedSound,
        for_org: OrgId,
        *,
        read_part: ReadPart | None = None,
    ) -> None:
        """`read_part` reads the file of a part whose bytes are not in memory."""
        self._gateway = gateway
        self._candidate = candidate
        self._plan = plan
        self._sound = sound
        self._for_org = for_org
        self._read_part = read_part
        self._begun = 0  # parts that the provider was sent
        self._heard: list[Transcript] = []
        self._unfinished = ""  # what has come of the text of the part after those

    @property
    def seconds(self) -> list[float]:
        """How long the parts are that the provider was sent."""
        return [part.seconds for part in self._sound.parts[: self._begun]]

    def bill(self) -> Bill:
        """What the provider bills so far."""
        usage = joined_usage(self._heard, self._begun)
        return make_bill(self._plan.model, self.seconds, usage, self._text)

    def lines(self) -> tuple[Line, ...]:
        """The lines of `bill`, not yet rounded."""
        usage = joined_usage(self._heard, self._begun)
        return bill_lines(self._plan.model, self.seconds, usage, self._text)

    @property
    def _text(self) -> str:
        """What was understood so far."""
        return "".join([*(heard.text for heard in self._heard), self._unfinished])

    def lost_lines(self, failure: Failure) -> tuple[Line, ...]:
        """What the provider bills for a call that has failed: the parts that it has answered."""
        answered = self._begun if failure.kind == "unreadable" else len(self._heard)
        return bill_lines(self._plan.model, self.seconds[:answered], {}, self._text)

    def loss(self, failure: Failure) -> Nanos:
        """The total of `lost_lines`."""
        return nanos(sum((line.cost_usd for line in self.lost_lines(failure)), Decimal(0)))

    async def transcript(self, note_progress: Callable[[float], Awaitable[None]] | None = None) -> Transcript:
        """What is said in the whole sound; the progress is that of its parts. Raises AttemptFailed."""
        for number, part in enumerate(self._sound.parts):
            if note_progress:
                await note_progress(number / len(self._sound.parts))
            self._heard.append(await self._hear(part))
        return self.joined

    @property
    def joined(self) -> Transcript:
        """What was understood, once all parts were heard."""
        return joined(self._heard, [part.start for part in self._sound.parts])

    async def _hear(self, part: SoundPart) -> Transcript:
        file = part.file if self._read_part is None else await self._read_part(part)
        body = self._plan.body(file, self._prompt())
        self._begun += 1
        reply = await self._gateway.upstream.send_chat(
            self._candidate,
            body,
            self._gateway.settings.upstream_seconds,
            for_org=self._for_org,
            size_bytes=len(file.data),
        )
        return self._read(reply)

    def _read(self, reply: Reply) -> Transcript:
        """The transcript of a part in a whole response. Raises AttemptFailed."""
        try:
            transcript = transcription_of(self._plan.model).read(reply.json)
        except MALFORMED:
            message = f"{self._candidate.provider.name} returned a malformed response."
            raise AttemptFailed(Failure("unreadable", message)) from None
        return self._checked(transcript)

    def _checked(self, transcript: Transcript) -> Transcript:
        """The transcript of a part. Raises AttemptFailed if it has not the times that the caller needs."""
        if not has_detail(transcript, self._plan.detail):
            message = f"{self._candidate.provider.name} did not say when each {self._plan.detail} was said."
            raise AttemptFailed(Failure("unreadable", message))
        return transcript

    def _prompt(self) -> str | None:
        """Of a later part: the last sentence before it, where the model takes a prompt."""
        if not self._heard or not self._plan.model.op.takes("prompt"):
            return None
        return last_sentence(self._heard[-1].text)


def last_sentence(text: str) -> str | None:
    """The last sentence of a text, or the end of it."""
    text = text.strip()
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if match.end() < len(text)]
    return text[ends[-1] if ends else 0 :][-_PROMPT_CHARACTERS:] or None


def joined_usage(transcripts: Sequence[Transcript], parts: int) -> dict[str, int | float]:
    """What the provider counted; nothing unless it did so for each of the parts."""
    names = {name for heard in transcripts for name in heard.usage}
    if len(transcripts) != parts:
        return {}
    return {
        name: sum(heard.usage[name] for heard in transcripts)
        for name in names
        if all(name in heard.usage for heard in transcripts)
    }


def joined(transcripts: Sequence[Transcript], starts: Sequence[float]) -> Transcript:
    """One transcript of parts that begin at these seconds."""
    if len(transcripts) == 1:
        return transcripts[0]
    pairs = list(zip(transcripts, starts, strict=True))
    return Transcript(
        text=" ".join(filter(None, (heard.text.strip() for heard in transcripts))),
        language=next((heard.language for heard in transcripts if heard.language), None),
        segments=tuple(later_segment(segment, by) for heard, by in pairs for segment in heard.segments),
        words=tuple(
            Word(word.text, _later(word.start, by), _later(word.end, by), word.speaker)
            for heard, by in pairs
            for word in heard.words
        ),
        logprobs=tuple(logprob for heard in transcripts for logprob in heard.logprobs),
        usage=joined_usage(transcripts, len(transcripts)),
    )


def later_segment(segment: Segment, by: float) -> Segment:
    """A segment of a part that begins so many seconds after the whole."""
    return Segment(segment.text, _later(segment.start, by), _later(segment.end, by), segment.speaker, segment.numbers)


def _later(seconds: float, by: float) -> float:
    return round(seconds + by, 3)
