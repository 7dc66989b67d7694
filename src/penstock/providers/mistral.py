"""Mistral AI: OpenAI-compatible chat that rejects unknown fields and calls the seed `random_seed`, and Voxtral."""

from typing import Any

from penstock.providers.chat_models import MAX_TOKENS, chat_models, chat_operation, messages_param
from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import (
    LITELLM,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    bearer,
    complete_table,
    converted,
    fixed,
    ignored,
    passthrough,
    renamed,
)
from penstock.providers.speech import PRICES, Speech, named_formats, openai_names, read_openai_event
from penstock.providers.transcription import PRICES as LISTENING
from penstock.providers.transcription import Segment, Transcript, TranscriptEvent, Transcription
from penstock.providers.voice_lists import ListedVoice, VoiceList, VoicePage

# Its streams always report the usage; `stream_options`, which asks for it, is an unknown field there.
CHAT = chat_operation(
    messages_param(drop=("name",), roles={"developer": "system"}),
    MAX_TOKENS,
    renamed("seed", to="random_seed"),
    *ignored("user", "stream_options", "logit_bias", "store"),
    finish_reasons={b"model_length": b"length"},
)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns. Large 4 cost half
# as much until its launch offer ended on 2026-10-20, and some lists still have that price.
MODELS = """
    mistral-large-4     1.36  4.18  0.136
    mistral-large-2512  0.5   1.5   0.05
    mistral-medium-3-5  1.5   7.5   0.15
    mistral-small-2603  0.15  0.6   0.015
    ministral-14b-2512  0.2   0.2   0.02
    ministral-8b-2512   0.15  0.15  0.015
    ministral-3b-2512   0.1   0.1   0.01
    codestral-2508      0.3   0.9   0.03
"""


def error_message(reply: Reply) -> str | None:
    """The message of an error response: a text, a list of errors by field, or an object with such a list."""
    error = reply.json.get("message") or reply.json["detail"]
    if isinstance(error, dict):
        error = error["detail"]
    if isinstance(error, str):
        return error
    return "; ".join(f"{field['loc'][-1]}: {field['msg']}" for field in error)


def read_voices(fields: Any) -> VoicePage:
    """Read a page of the account's voices. A preset is called by its short name, as in the map below."""
    voices = tuple(
        ListedVoice(
            id=(voice["type"] == "preset" and voice.get("slug")) or voice["id"],
            name=voice["name"],
            description=voice.get("description") or "",
            languages=tuple(voice.get("languages") or ()),
            gender=voice.get("gender") or "",
            sample=f"/audio/voices/{voice['id']}/sample",
            is_own=voice["type"] == "custom",
        )
        for voice in fields["items"]
    )
    seen = fields["page"] * fields["page_size"]
    return VoicePage(voices, {"offset": seen} if fields["page"] < fields["total_pages"] else {})


SPEAK = Operation(
    task="speech",
    send="POST /audio/speech",
    read=read_nothing,
    takes_extras=False,
    params=complete_table(
        "speech",
        passthrough("input", required=True),
        renamed("voice", to="voice_id"),
        converted("reference_audio", to="ref_audio", convert=lambda voice: voice.encoded),
        fixed("stream", True),
    ),
    speech=Speech(
        formats=named_formats("response_format", "pcm wav flac mp3 opus"),
        reply="events",
        read=read_openai_event,
        openai_voices=openai_names(
            "en_paul_neutral en_paul_confident gb_oliver_neutral gb_jane_sarcasm gb_oliver_neutral en_paul_cheerful "
            "gb_jane_sarcasm en_paul_confident gb_jane_sarcasm gb_jane_sarcasm en_paul_cheerful gb_jane_sarcasm "
            "gb_oliver_neutral"
        ),
        account_voices=VoiceList(send="GET /audio/voices?limit=100", read=read_voices, private_samples=True),
    ),
)
SPEECH_MODELS = tuple(
    Model(
        id=f"mistralai/{name}",
        upstream=name,
        op=SPEAK,
        prices=(Price(unit="character", usd=usd, source=PRICES),),
    )
    for name, usd in (("voxtral-mini-tts-3", "0.000013"), ("voxtral-mini-tts-2603", "0.000016"))
)


def read_transcript(fields: Any) -> Transcript:
    """Read a transcript; segments without times are those of a model that was not asked for any."""
    segments = [segment for segment in fields.get("segments") or () if segment.get("start") is not None]
    return Transcript(
        text=fields["text"].strip(),
        language=fields.get("language"),
        segments=tuple(map(_segment, segments)),
    )


def read_transcript_event(fields: Any) -> TranscriptEvent:
    """Read an event of a stream; those that say nothing about the text are empty."""
    kind = fields.get("type")
    if kind == "transcription.text.delta":
        return TranscriptEvent(fields["text"])
    if kind == "transcription.segment":
        return TranscriptEvent(segment=_segment(fields))
    if kind == "transcription.done":
        return TranscriptEvent(whole=read_transcript(fields))
    return TranscriptEvent(is_error=kind == "error" or "error" in fields)


def _segment(fields: Any) -> Segment:
    return Segment(fields["text"], float(fields["start"]), float(fields["end"]), fields.get("speaker_id"))


_TIMED = {"timestamp_granularities": ["segment"]}
LISTEN = Operation(
    task="transcription",
    send="POST /audio/transcriptions",
    body="form",
    read=read_nothing,
    takes_extras=False,
    params=complete_table(
        "transcription",
        passthrough("file", required=True),
        passthrough("language"),
        passthrough("temperature"),
        renamed("keywords", to="context_bias"),
    ),
    transcription=Transcription(
        details={"text": {}, "segment": _TIMED},
        read=read_transcript,
        speakers={**_TIMED, "diarize": True},
        streamed={"stream": True},
        read_event=read_transcript_event,
    ),
)
LISTENING_MODELS = tuple(
    Model(id=f"mistralai/{name}", upstream=name, op=LISTEN, prices=(Price(unit="second", usd=usd, source=LISTENING),))
    for name, usd in (("voxtral-mini-transcribe-3", "0.0000583333"), ("voxtral-small-transcribe-3", "0.0000666667"))
)

PROVIDER = Provider(
    slug="mistral",
    name="Mistral AI",
    docs="https://docs.mistral.ai/api",
    base_url="https://api.mistral.ai/v1",
    key_env="MISTRAL_API_KEY",
    auth=bearer,
    error_message=error_message,
    models=(*chat_models("mistralai", LITELLM, MODELS, CHAT), *SPEECH_MODELS, *LISTENING_MODELS),
)
