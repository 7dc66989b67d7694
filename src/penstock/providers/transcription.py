"""How providers write down what is said: what they are asked for, and how the text comes back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.providers.prices import Source

# How exactly a transcript says when something was said. Each has all that the ones before it have.
Detail = Literal["text", "segment", "word"]
DETAILS: tuple[Detail, ...] = ("text", "segment", "word")


class Word(msgspec.Struct, frozen=True, omit_defaults=True):
    """A word, and when it was said, in seconds."""

    text: str
    start: float
    end: float
    speaker: str | None = None


class Segment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of the text, and when it was said, in seconds."""

    text: str
    start: float
    end: float
    speaker: str | None = None
    numbers: Mapping[str, Any] = {}  # what Whisper says of its segments, such as `avg_logprob`


class Transcript(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was said, as far as the provider tells."""

    text: str
    language: str | None = None
    segments: tuple[Segment, ...] = ()
    words: tuple[Word, ...] = ()
    logprobs: tuple[Any, ...] = ()
    # What the provider counted, by name: `input` and `output` tokens, or `billed` units of the price.
    usage: Mapping[str, int | float] = {}


class TranscriptEvent(NamedTuple):
    """What an event of a provider's stream says."""

    delta: str = ""  # more of the text
    logprobs: tuple[Any, ...] = ()  # of the delta
    segment: Segment | None = None  # one that is complete
    whole: Transcript | None = None  # the last event: all of the text; segments only if they have not come before
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """How a model is asked to write down a sound, beside the rows of its table, and how the text comes back.

    Fields have dotted names where they nest; with a leading `?` they go into the query of the URL.
    """

    # The fields that ask for each detail. What is missing here the model cannot tell; segments are made of words.
    details: Mapping[Detail, Mapping[str, Any]]
    read: Callable[[Any], Transcript]  # from the JSON of the response
    speakers: Mapping[str, Any] | None = None  # what asks who speaks; None: the model does not tell them apart
    logprobs: Mapping[str, Any] | None = None  # what asks for probabilities; None: the model has none
    streamed: Mapping[str, Any] | None = None  # what asks for a stream of events; None: the model has none
    read_event: Callable[[Any], TranscriptEvent] | None = None  # from the JSON of an event
    headers: Mapping[str, str] = field(default_factory=dict)  # of its requests
    max_bytes: int = 24 * 1024**2  # of one call; longer sounds are cut
    max_seconds: float = 4 * 3600
    least_seconds: float = 0  # that are billed for a shorter sound
    tokens_per_second: float = 0.0  # of sound, for prices by the token, where the provider reports no usage

    def asked(self, detail: Detail) -> Detail | None:
        """The least that the model can be asked for to get this detail; None if it cannot tell."""
        return next((each for each in DETAILS[DETAILS.index(detail) :] if each in self.details), None)


PRICES = Source("litellm 1.109.1's price table", "2026-11-18", is_second_hand=True)
WHISPER_NUMBERS = ("seek", "tokens", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob")
# What OpenAI's API is asked for. Whisper's words come without segments unless both are asked for.
WHISPER: Mapping[Detail, Mapping[str, Any]] = {
    "text": {"response_format": "json"},
    "segment": {"response_format": "verbose_json"},
    "word": {"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]},
}
LOGPROBS = {"include[]": ["logprobs"]}
_EMPTY: Mapping[str, Any] = {}


def read_openai(fields: Any) -> Transcript:
    """Read the response of OpenAI's API in any of its JSON forms."""
    return Transcript(
        text=_text(fields["text"]),
        language=fields.get("language") or None,
        segments=tuple(map(_segment, fields.get("segments") or ())),
        words=tuple(Word(_text(word["word"]), *_times(word)) for word in fields.get("words") or ()),
        logprobs=tuple(fields.get("logprobs") or ()),
        usage=openai_tokens(fields.get("usage") or _EMPTY),
    )


def read_openai_event(fields: Any) -> TranscriptEvent:
    """Read an event of OpenAI's streams; those that say nothing about the text are empty."""
    kind = fields.get("type")
    if kind == "transcript.text.delta":
        return TranscriptEvent(_text(fields["delta"]), tuple(fields.get("logprobs") or ()))
    if kind == "transcript.text.segment":
        return TranscriptEvent(segment=_segment(fields))
    if kind == "transcript.text.done":
        return TranscriptEvent(whole=read_openai(fields))
    return TranscriptEvent(is_error=kind == "error" or "error" in fields)


def openai_tokens(usage: Mapping[str, Any]) -> dict[str, int | float]:
    """The tokens that OpenAI's API reports; nothing where it counts seconds."""
    counts = {name: usage.get(f"{name}_tokens") for name in ("input", "output")}
    return {name: count for name, count in counts.items() if isinstance(count, int) and count >= 0}


def _segment(fields: Mapping[str, Any]) -> Segment:
    numbers = {name: fields[name] for name in WHISPER_NUMBERS if fields.get(name) is not None}
    speaker = fields.get("speaker")
    return Segment(_text(fields["text"]), *_times(fields), None if speaker is None else str(speaker), numbers)


def _times(fields: Mapping[str, Any]) -> tuple[float, float]:
    return float(fields["start"]), float(fields["end"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was expected")
    return value
