"""OpenAI's models that listen, at OpenAI's prices, for OpenAI itself and for Azure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.providers.openai_compatible import TRANSCRIPTION, TRANSLATION
from penstock.providers.spec import Model, Price, complete_table, passthrough, renamed
from penstock.providers.speech import PRICES
from penstock.providers.transcription import LOGPROBS, WHISPER, Detail, Transcription, read_openai

_FILE = passthrough("file", required=True)
_TEXT: Mapping[Detail, Mapping[str, Any]] = {"text": WHISPER["text"]}
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
    transcription=Transcription(
        details=_TEXT, read=read_openai, logprobs=LOGPROBS, max_seconds=_MAX_SECONDS, tokens_per_second=10
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
    transcription=Transcription(details=_TEXT, read=read_openai, logprobs=LOGPROBS, max_seconds=_MAX_SECONDS),
)


def transcription_models(shutdown_dates: Mapping[str, str]) -> tuple[Model, ...]:
    """The models as one provider serves them, with the days from which on it no longer does."""
    rows = (
        ("gpt-transcribe", GPT_TRANSCRIBE, "0.000075"),
        ("whisper-1", WHISPER_1, "0.0001"),
        ("whisper-1", WHISPER_1_ENGLISH, "0.0001"),
    )
    return tuple(
        Model(
            id=name,
            upstream=name,
            op=op,
            prices=(Price(unit="second", usd=usd, source=PRICES),),
            shutdown_date=shutdown_dates.get(name, ""),
        )
        for name, op, usd in rows
    )
