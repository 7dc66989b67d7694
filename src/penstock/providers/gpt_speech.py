"""OpenAI's speech models at OpenAI's prices, for OpenAI itself and for Azure."""

from collections.abc import Mapping
from dataclasses import replace

from penstock.providers.openai_compatible import SPEECH
from penstock.providers.spec import Model, Price, complete_table, emulated, fixed, ignored, passthrough
from penstock.providers.speech import (
    OPENAI_VOICES,
    PRICES,
    Speech,
    named_formats,
    read_openai_event,
    voice_names,
)

FORMATS = named_formats("response_format", "pcm wav flac mp3 opus aac")
# The older models have nine of the thirteen voices; each of the others speaks with the nearest one.
_OLDER = "alloy ash coral echo fable nova onyx sage shimmer"
_NEAREST = {"ballad": "fable", "verse": "ash", "marin": "coral", "cedar": "onyx"}

TTS_1 = replace(
    SPEECH,
    takes_extras=False,
    params=(
        *(row for row in SPEECH.params if row.name != "instructions"),
        *ignored("instructions"),
    ),
    speech=Speech(
        formats=FORMATS,
        voices=voice_names(_OLDER),
        openai_voices={name: _NEAREST.get(name, name) for name in OPENAI_VOICES},
        speeds=(0.25, 4),
    ),
)


# Only events say how many tokens were used. The model does not keep to `speed`, so the gateway does that.
MINI = replace(
    SPEECH,
    takes_extras=False,
    params=complete_table(
        "speech",
        passthrough("input", required=True),
        passthrough("voice"),
        passthrough("instructions"),
        emulated("speed"),
        fixed("stream_format", "sse"),
    ),
    speech=Speech(
        formats=FORMATS,
        reply="events",
        read=read_openai_event,
        max_characters=2000,
        voices=voice_names(" ".join(OPENAI_VOICES)),
        openai_voices={name: name for name in OPENAI_VOICES},
        tokens_per_second=25,
    ),
)


def speech_models(shutdown_dates: Mapping[str, str]) -> tuple[Model, ...]:
    """The models as one provider serves them, with the days from which on it no longer does."""
    rows = (
        ("gpt-4o-mini-tts", MINI, Price(unit="token", input_usd="0.0000006", usd="0.000012", source=PRICES)),
        ("tts-1", TTS_1, Price(unit="character", usd="0.000015", source=PRICES)),
        ("tts-1-hd", TTS_1, Price(unit="character", usd="0.00003", source=PRICES)),
    )
    return tuple(
        Model(id=name, upstream=name, op=op, prices=(price,), shutdown_date=shutdown_dates[name])
        for name, op, price in rows
    )
