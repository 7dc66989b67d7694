"""Together's speech: Kokoro and Orpheus."""

from dataclasses import replace

from penstock.providers.open_speech import (
    KOKORO,
    KOKORO_OPENAI_VOICES,
    KOKORO_VOICES,
    ORPHEUS,
    ORPHEUS_OPENAI_VOICES,
    ORPHEUS_VOICES,
)
from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import Model, Operation, Price, Source, complete_table, converted, fixed, passthrough
from penstock.providers.speech import Speech

_KOKORO = Speech(
    formats={
        "pcm": {"response_format": "raw", "response_encoding": "pcm_s16le"},
        "wav": {"response_format": "wav"},
        "mp3": {"response_format": "mp3"},
    },
    max_characters=2000,
    voices=KOKORO_VOICES,
    openai_voices=KOKORO_OPENAI_VOICES,
)
SPEAK = Operation(
    task="speech",
    send="POST /v1/audio/speech",
    read=read_nothing,
    takes_extras=False,
    params=complete_table(
        "speech",
        passthrough("input", required=True),
        passthrough("voice", required=True),
        converted("language", to="language", convert=lambda language: language.replace("_", "-").lower()),
        fixed("sample_rate", 24000),
    ),
    speech=_KOKORO,
)
SPEAK_ORPHEUS = replace(SPEAK, speech=replace(_KOKORO, voices=ORPHEUS_VOICES, openai_voices=ORPHEUS_OPENAI_VOICES))
_SOURCE = Source("Together's page of models, as another project recorded it", "2026-04-22", is_second_hand=True)
MODELS = tuple(
    Model(
        id=name,
        upstream=upstream,
        op=op,
        prices=(Price(unit="character", usd=usd, source=_SOURCE),),
        priority=10,
    )
    for name, upstream, op, usd in (
        (KOKORO, "hexgrad/Kokoro-82M", SPEAK, "0.000004"),
        (ORPHEUS, "canopylabs/orpheus-3b-0.1-ft", SPEAK_ORPHEUS, "0.000015"),
    )
)
