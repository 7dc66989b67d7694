"""Cartesia: Sonic speech, whose voices an account lists, and Ink transcription."""

from typing import Any

from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import (
    Model,
    Operation,
    Provider,
    Reply,
    Transcription,
    bearer,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    renamed,
)
from penstock.providers.speech import Speech, openai_names
from penstock.providers.transcription import Transcript, Word
from penstock.providers.voice_lists import ListedVoice, VoiceList, VoicePage

# Public voices, in the order of OPENAI_VOICES; ids and names are those of catalogues in public programs, read
# 2026-11-19.
_NAMES = "Katie Theo Archie Brooke Carson Oliver Jacqueline Ronald Caroline Tessa Kyle Cathy Kiefer"
_VOICES = """
    f786b574-daa5-4673-aa0c-cbe3e8534c02 79f8b5fb-2cc8-479a-80df-29f7a7cf1a3e ef191366-f52f-447a-a398-ed8c0f2943a1
    e07c00bc-4134-4eae-9ea4-1a55fb45746b 86e30c1d-714b-4074-a1f2-1cb6b552fb49 ee7ea9f8-c0c1-498c-9279-764d6b56d189
    9626c31c-bec5-4cca-baa8-f8ba9e84c8bc 5ee9feff-1265-424a-9d7f-8e4d431a12c7 f9836c6e-a0bd-460e-9d3c-f7299fa60f94
    6ccbfb76-1fc6-48f7-b71d-91ac6298247b c961b81c-a935-4c17-bfb3-ba2239de8c2f e8e5fffb-252c-436d-b842-8879b84445b6
    228fca29-3a0a-435c-8728-5cb483251068
"""
_PAGE = 100


def read_voices(fields: Any) -> VoicePage:
    """Read a page of the voices that the account may use; a full one is followed by another."""
    found = fields["data"]
    voices = tuple(
        ListedVoice(
            id=voice["id"],
            name=voice["name"],
            description=voice.get("tagline") or voice.get("description") or "",
            languages=tuple(each["locale"] for each in voice.get("locales") or ()) or (voice["language"],),
            gender=voice.get("gender") or "",
            sample=voice.get("preview_file_url") or "",
            is_own=voice["is_owner"],
        )
        for voice in found
    )
    return VoicePage(voices, {"starting_after": found[-1]["id"]} if len(found) == _PAGE else {})


SPEAK = Operation(
    task="speech",
    send="POST /tts/bytes",
    read=read_nothing,
    model_field="model_id",
    takes_extras=False,
    params=complete_table(
        "speech",
        renamed("input", to="transcript", required=True),
        renamed("voice", to="voice.id"),
        emulated("speed", to="generation_config.speed"),
        converted("language", to="locale", convert=lambda language: language.replace("_", "-")),
        fixed("output_format.sample_rate", 24000),
    ),
    speech=Speech(
        formats={
            "pcm": {"output_format.container": "raw", "output_format.encoding": "pcm_s16le"},
            "wav": {"output_format.container": "wav", "output_format.encoding": "pcm_s16le"},
            "mp3": {"output_format.container": "mp3", "output_format.bit_rate": 128000},
        },
        openai_voices=openai_names(_VOICES),
        voice_names=dict(zip(_VOICES.split(), _NAMES.split(), strict=True)),
        account_voices=VoiceList(
            send=f"GET /voices?limit={_PAGE}&expand[]=preview_file_url", read=read_voices, private_samples=True
        ),
        speeds=(0.6, 1.5),
    ),
)


def read_transcript(fields: Any) -> Transcript:
    """Read a transcript; words have times where they were asked for."""
    return Transcript(
        text=fields["text"].strip(),
        language=fields.get("language"),
        words=tuple(Word(word["word"], float(word["start"]), float(word["end"])) for word in fields.get("words") or ()),
    )


LISTEN = Operation(
    task="transcription",
    send="POST /stt",
    body="form",
    read=read_nothing,
    takes_extras=False,
    params=complete_table("transcription", passthrough("file", required=True), passthrough("language")),
    transcription=Transcription(
        details={"text": {}, "word": {"timestamp_granularities[]": ["word"]}}, read=read_transcript
    ),
)


def error_message(reply: Reply) -> str | None:
    return str(reply.json.get("message") or reply.json["title"])


# Cartesia counts credits, whose price in dollars depends on the plan: the operator states a price for each model.
PROVIDER = Provider(
    slug="cartesia",
    name="Cartesia",
    docs="https://docs.cartesia.ai/api-reference/tts/bytes",
    base_url="https://api.cartesia.ai",
    key_env="CARTESIA_API_KEY",
    auth=bearer,
    headers={"cartesia-version": "2026-08-14"},
    domain="cartesia.ai",
    error_message=error_message,
    models=(
        *(Model(id=f"cartesia/{name}", upstream=name, op=SPEAK, prices=()) for name in ("sonic-3.5", "sonic-3")),
        Model(id="cartesia/ink-whisper", upstream="ink-whisper", op=LISTEN, prices=()),
    ),
)
