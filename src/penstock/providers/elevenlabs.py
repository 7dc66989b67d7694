"""ElevenLabs: speech in many voices, effects, music, and Scribe transcription."""

from dataclasses import replace
from typing import Any

from penstock.providers.openai_compatible import read_nothing
from penstock.providers.sounds import GENERATE, MUSIC, file_formats
from penstock.providers.spec import (
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Transcription,
    complete_table,
    converted,
    emulated,
    fixed,
    header,
    passthrough,
    renamed,
)
from penstock.providers.speech import PRICES, Speech, openai_names
from penstock.providers.transcription import PRICES as LISTENING
from penstock.providers.transcription import Transcript, Word
from penstock.providers.voice_lists import ListedVoice, VoiceList, VoicePage

# Voices that every account has, in the order of OPENAI_VOICES; ids and names are those of ComfyUI's nodes for
# ElevenLabs, read 2026-11-18.
_NAMES = "Sarah Will Callum Matilda Eric George Jessica Brian Alice Laura Liam Lily Daniel"
_VOICES = """
    EXAVITQu4vr4xnSDxMaL bIHbv24MWeRgasZH58o N2lVS1w4EtoT3dr4eOWO XrExE9yKIg1WjnnlVkGX cjVigY5qzO86Huf0OWal
    JBFqnCBsd6RMkjVDRZzb cgSgspJ2msm6clMCkdW9 nPczCjzI2devNBz1zQrb Xb7hH8MSUJpSbSDYk0k2 FGY2WhTYpPnrIDTdsKH5
    TX3LPaxmHKxFdv7VOQHJ pFZP5JQG7iQjIQuC4Bku onwK4e9ZLuTAKqWW03F9
"""


def read_voices(fields: Any) -> VoicePage:
    """Read a page of the account's voices, and where the next one begins."""
    voices = tuple(
        ListedVoice(
            id=voice["voice_id"],
            name=voice.get("name") or "",
            description=voice.get("description") or "",
            languages=tuple(each["language"] for each in voice.get("verified_languages") or ()),
            gender=(voice.get("labels") or {}).get("gender") or "",
            sample=voice.get("preview_url") or "",
            is_own=voice.get("category") != "premade",
        )
        for voice in fields["voices"]
    )
    return VoicePage(voices, {"next_page_token": fields["next_page_token"]} if fields["has_more"] else {})


_SPEECH = Speech(
    formats={
        "pcm": {"?output_format": "pcm_24000"},
        "mp3": {"?output_format": "mp3_44100_128"},
        "opus": {"?output_format": "opus_48000_64"},
    },
    openai_voices=openai_names(_VOICES),
    voice_names=dict(zip(_VOICES.split(), _NAMES.split(), strict=True)),
    account_voices=VoiceList(send="GET ../v2/voices?page_size=100", read=read_voices),
    speeds=(0.7, 1.2),
    max_characters=5000,
)
SPEAK = Operation(
    task="speech",
    send="POST /text-to-speech/{voice}/stream",
    read=read_nothing,
    model_field="model_id",
    takes_extras=False,
    params=complete_table(
        "speech",
        renamed("input", to="text", required=True),
        renamed("voice", to="{voice}", max_length=64),
        emulated("speed", to="voice_settings.speed"),
        renamed("language", to="language_code"),
        passthrough("seed", low=0, high=4_294_967_295),
    ),
    speech=_SPEECH,
)
_FORMAT = file_formats("?output_format", {"mp3": "mp3_44100_128", "opus": "opus_48000_128"})
_EFFECT_ROWS = (
    renamed("prompt", to="text", required=True),
    renamed("seconds", to="duration_seconds", low=0.5, high=30),
    passthrough("prompt_influence", low=0, high=1),
    _FORMAT,
)
EFFECT = replace(
    GENERATE,
    takes_extras=False,
    params=complete_table("sound", *_EFFECT_ROWS, passthrough("loop", one_of=(True, False))),
)
COMPOSE = replace(
    EFFECT,
    send="POST /music",
    settings=MUSIC,
    params=complete_table(
        "sound",
        passthrough("prompt", required=True, max_length=4100),
        converted("seconds", "music_length_ms", lambda seconds: round(seconds * 1000), low=3, high=600),
        renamed("instrumental", to="force_instrumental"),
        _FORMAT,
    ),
)
# No price in dollars was found, so an operator has to state one.
SOUNDS = tuple(
    Model(id=f"elevenlabs/{name}", upstream=name, op=op, prices=())
    for op, names in (
        (EFFECT, "eleven_text_to_sound_v2 eleven_text_to_sound_v3"),
        (COMPOSE, "music_v1 music_v2 music_v2_5"),
    )
    for name in names.split()
)


def read_transcript(fields: Any) -> Transcript:
    """Read a transcript, whose list of words has the spaces between them, too."""
    words = [word for word in fields.get("words") or () if word["type"] == "word" and word.get("start") is not None]
    return Transcript(
        text=fields["text"],
        language=fields.get("language_code"),
        words=tuple(
            Word(word["text"], float(word["start"]), float(word["end"]), word.get("speaker_id")) for word in words
        ),
    )


_GRANULARITY = "timestamps_granularity"
# Keywords are not sent: they may cost more.
LISTEN = Operation(
    task="transcription",
    send="POST /speech-to-text",
    body="form",
    read=read_nothing,
    model_field="model_id",
    takes_extras=False,
    params=complete_table(
        "transcription",
        passthrough("file", required=True),
        renamed("language", to="language_code"),
        renamed("max_speakers", to="num_speakers", low=1, high=32),
        passthrough("temperature", low=0, high=2),
        fixed("tag_audio_events", False),
    ),
    transcription=Transcription(
        details={"text": {_GRANULARITY: "none"}, "word": {_GRANULARITY: "word"}},
        read=read_transcript,
        speakers={_GRANULARITY: "word", "diarize": True},
    ),
)
_SECOND = Price(unit="second", usd="0.0000611", source=LISTENING)
LISTENING_MODELS = tuple(
    Model(id=f"elevenlabs/{name}", upstream=name, op=LISTEN, prices=(_SECOND,)) for name in ("scribe_v2", "scribe_v1")
)
# Dollars for a million characters.
_PRICES = """
    eleven_v4 80
    eleven_v4_turbo 40
    eleven_v3 80
    eleven_v3_conversational 40
    eleven_multilingual_v2 80
    eleven_flash_v2_5 40
    eleven_turbo_v2_5 40
"""

SPEECH_MODELS = tuple(
    Model(
        id=f"elevenlabs/{name}",
        upstream=name,
        op=SPEAK,
        prices=(Price(unit="character", usd=f"0.0000{usd}", source=PRICES),),
    )
    for name, usd in (line.split() for line in _PRICES.strip().splitlines())
)


def error_message(reply: Reply) -> str | None:
    """The message of an error: a text, an object with one, or a list of faults by field."""
    detail: Any = reply.json["detail"]
    if isinstance(detail, list):
        return "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in detail)
    return detail if isinstance(detail, str) else detail.get("message")


PROVIDER = Provider(
    slug="elevenlabs",
    name="ElevenLabs",
    docs="https://elevenlabs.io/docs/api-reference",
    base_url="https://api.elevenlabs.io/v1",
    key_env="ELEVENLABS_API_KEY",
    auth=header("xi-api-key"),
    error_message=error_message,
    models=(*SPEECH_MODELS, *SOUNDS, *LISTENING_MODELS),
)
