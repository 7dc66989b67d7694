"""Groq: open chat models over an OpenAI-compatible API, with the ids that OpenRouter gives them, speech and Whisper."""

from dataclasses import replace

from penstock.providers.chat_models import chat_models, chat_operation, messages_param
from penstock.providers.openai_compatible import SPEECH, TRANSCRIPTION, TRANSLATION, error_message, failure_kind
from penstock.providers.spec import (
    LITELLM,
    Model,
    Price,
    Provider,
    Transcription,
    bearer,
    complete_table,
    passthrough,
    refused,
    renamed,
)
from penstock.providers.speech import PRICES, Speech, named_formats, openai_names, voice_names
from penstock.providers.transcription import PRICES as LISTENING
from penstock.providers.transcription import WHISPER, read_openai

# Groq answers 400 to the refused fields, and to a `name` in a message.
CHAT = chat_operation(
    messages_param(drop=("name",)),
    renamed("max_tokens", to="max_completion_tokens"),
    *refused("logprobs", "top_logprobs", "logit_bias"),
)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
MODELS = """
    openai/gpt-oss-120b            0.15   0.6  0.075
    openai/gpt-oss-20b             0.075  0.3  0.0375
    openai/gpt-oss-safeguard-20b   0.075  0.3  0.037
    qwen/qwen3.8-27b               0.8    4
"""

ORPHEUS = replace(
    SPEECH,
    takes_extras=False,
    params=complete_table("speech", passthrough("input", required=True), passthrough("voice", required=True)),
    speech=Speech(
        formats=named_formats("response_format", "wav"),
        max_characters=200,
        voices=voice_names("autumn diana hannah austin daniel troy"),
        openai_voices=openai_names(
            "autumn austin daniel diana troy daniel hannah troy hannah diana austin autumn daniel"
        ),
    ),
)

# Ten seconds are billed for a shorter sound.
_WHISPER = Transcription(details=WHISPER, read=read_openai, least_seconds=10)
TRANSCRIBE = replace(TRANSCRIPTION, takes_extras=False, transcription=_WHISPER)
TRANSLATE = replace(
    TRANSLATION,
    takes_extras=False,
    transcription=replace(_WHISPER, details={detail: WHISPER[detail] for detail in ("text", "segment")}),
)
_V3 = Price(unit="second", usd="0.00003083", source=LISTENING)
_TURBO = Price(unit="second", usd="0.00001111", source=LISTENING)
WHISPER_MODELS = tuple(
    Model(id=f"openai/{name}", upstream=name, op=op, prices=(price,))
    for name, op, price in (
        ("whisper-large-v3", TRANSCRIBE, _V3),
        ("whisper-large-v3", TRANSLATE, _V3),
        ("whisper-large-v3-turbo", TRANSCRIBE, _TURBO),
    )
)

PROVIDER = Provider(
    slug="groq",
    name="Groq",
    docs="https://console.groq.com/docs/openai",
    base_url="https://api.groq.com/openai/v1",
    key_env="GROQ_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        *chat_models("groq", LITELLM, MODELS, CHAT),
        Model(
            id="canopylabs/orpheus-v1-english",
            upstream="canopylabs/orpheus-v1-english",
            op=ORPHEUS,
            prices=(Price(unit="character", usd="0.000022", source=PRICES),),
        ),
        *WHISPER_MODELS,
    ),
)
