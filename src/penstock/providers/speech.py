"""How providers make speech: the formats they have, their voices, and how the sound comes back."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from penstock.providers.prices import Source
from penstock.providers.voice_lists import VoiceList
from penstock.sound.formats import DEFAULT_RATE, SoundFormat

PRICES = Source("litellm 1.109.1's price table", "2026-11-18", is_second_hand=True)

# The voices of OpenAI's clients. Every table maps them to voices of its own, by sex and character, and for good: a
# change of the map changes how callers' products sound.
OPENAI_VOICES = tuple("alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar".split())


class SpeechPart(NamedTuple):
    """What a reply, or one event of it, carries."""

    sound: bytes = b""
    # What the provider counted, by name: `input` and `output` tokens, or `billed` units of the price.
    usage: Mapping[str, int | float] = {}
    error: Literal["", "broken", "refused"] = ""  # why there is no speech, if the reply or the event says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How a model is asked for speech, beside the rows of its table, and how the sound comes back.

    Fields have dotted names where they nest; with a leading `?` they go into the query of the URL, and one in braces is
    filled into its path.
    """

    # The formats that the model makes, and the fields that ask for each. The others are made of the first one here, so
    # it should be the cheapest to convert.
    formats: Mapping[SoundFormat, Mapping[str, Any]]
    # `body`: the bytes of the response are the sound. `json`: one JSON object. `events` and `lines`: server-sent
    # events, or lines, with a JSON object each.
    reply: Literal["body", "json", "events", "lines"] = "body"
    read: Callable[[Any], SpeechPart] | None = None  # from a JSON object
    max_characters: int = 4096  # of one call; longer texts are split
    voices: Mapping[str, str] = field(default_factory=dict)  # names and descriptions; empty: any name is sent
    openai_voices: Mapping[str, str] = field(default_factory=dict)
    voice_names: Mapping[str, str] = field(default_factory=dict)  # of voices whose ids say nothing
    account_voices: VoiceList | None = None  # how an account is asked for the voices that it has besides
    languages: tuple[str, ...] = ()  # of the voices of this table; empty: not tied to one
    speeds: tuple[float, float] | None = None  # what the row `speed` may be sent; the gateway does the rest
    pcm_rate: int = DEFAULT_RATE
    latin_only: bool = False  # a text without a Latin letter or a digit is refused
    tokens_per_second: float = 0.0  # of sound, for prices by the token, where the provider reports no usage


def named_formats(field_name: str, names: str) -> dict[SoundFormat, Mapping[str, Any]]:
    """Formats that one field asks for by our own names for them."""
    return {name: {field_name: name} for name in names.split()}  # type: ignore[misc]


def voice_names(names: str) -> dict[str, str]:
    """Voices without descriptions."""
    return dict.fromkeys(names.split(), "")


def openai_names(names: str) -> dict[str, str]:
    """The map of OpenAI's voices, from this provider's names in the order of OPENAI_VOICES."""
    return dict(zip(OPENAI_VOICES, names.split(), strict=True))


def read_openai_event(fields: Any) -> SpeechPart:
    """Read an event of OpenAI's streams of speech; Mistral's differ in one name."""
    kind = fields.get("type")
    if kind == "speech.audio.delta":
        return SpeechPart(b64decode(fields.get("audio") or fields["audio_data"]))
    if kind == "error" or "error" in fields:
        return SpeechPart(error="broken")
    usage = fields.get("usage") or {}
    return SpeechPart(usage={name: usage.get(f"{name}_tokens") or 0 for name in ("input", "output")} if usage else {})
