"""OpenAI's models that listen, at OpenAI's prices, for OpenAI itself and for Azure."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.providers.openai_compatible import TRANSCRIPTION, TRANSLATION
from penstock.providers.spec import Model, Price, complete_table, fixed, passthrough, renamed
from penstock.providers.transcription import (
    LOGPROBS,
    PRICES,
    WHISPER,
    Detail,
    Transcription,
    read_openai,
    read_openai_event,
)

_FILE = passthrough("file", required=True)
_TEXT: Mapping[Detail, Mapping[str, Any]] = {"text": WHISPER["text"]}
_SPEAKERS = {"response_format": "diarized_json"}
_STREAM = partial(Transcription, read=read_openai, streamed={"stream": True}, read_event=read_openai_event)
# Longer sounds are refused by its models that are not Whisper.
_MAX_SECONDS = 1400

WHISPER_1 = replace(TRANSCRIPTION, takes_extras=False)
WHISPER_1_ENGLISH = replace(TRANSLATION, takes_extras=False)
GPT_4O = replace(
    TRANSCRIPTION,
    takes_extras=False,
    params=complete_table(
        "transcription",
        _FILE,
        passthrough("language"),
        passthrough("prompt"),
        passthrough("temperature"),
        passthrough("chunking_strategy"),
    ),
    transcription=_STREAM(details=_TEXT, logprobs=LOGPROBS, max_seconds=_MAX_SECONDS, tokens_per_second=10),
)
# It takes no prompt, and no sound above half a minute without being told how to cut it.
DIARIZE = replace(
    GPT_4O,
    params=complete_table(
        "transcription",
        _FILE,
        passthrough("language"),
        passthrough("temperature"),
        renamed("known_speaker_names", to="known_speaker_names[]"),
        renamed("known_speaker_references", to="known_speaker_references[]"),
        fixed("chunking_strategy", "auto"),
        passthrough("chunking_strategy"),
    ),
    transcription=_STREAM(
        details={"text": WHISPER["text"], "segment": _SPEAKERS},
        speakers=_SPEAKERS,
        max_seconds=_MAX_SECONDS,
        tokens_per_second=10,
    ),
)
GPT_TRANSCRIBE = replace(
    GPT_4O,
    params=complete_table(
        "transcription",
        _FILE,
        passthrough("language"),
        renamed("languages", to="languages[]"),
        renamed("keywords", to="keywords[]"),
        passthrough("prompt"),
        passthrough("temperature"),
        passthrough("chunking_strategy"),
    ),
    transcription=_STREAM(details=_TEXT, logprobs=LOGPROBS, max_seconds=_MAX_SECONDS),
)


def transcription_models(shutdown_dates: Mapping[str, str]) -> tuple[Model, ...]:
    """The models that one provider serves, with the days from which on it no longer does."""
    second = partial(Price, unit="second", source=PRICES)
    token = partial(Price, unit="token", source=PRICES)
    rows = (
        ("gpt-transcribe", GPT_TRANSCRIBE, second(usd="0.000075")),
        ("gpt-4o-transcribe", GPT_4O, token(input_usd="0.0000025", usd="0.00001")),
        ("gpt-4o-mini-transcribe", GPT_4O, token(input_usd="0.00000125", usd="0.000005")),
        ("gpt-4o-transcribe-diarize", DIARIZE, token(input_usd="0.0000025", usd="0.00001")),
        ("whisper-1", WHISPER_1, second(usd="0.0001")),
        ("whisper-1", WHISPER_1_ENGLISH, second(usd="0.0001")),
    )
    return tuple(
        Model(id=name, upstream=name, op=op, prices=(price,), shutdown_date=shutdown_dates[name])
        for name, op, price in rows
        if name in shutdown_dates
    )
