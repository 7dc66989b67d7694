"""Deepgram: Aura speech, whose voices are models of their own there, and Nova transcription."""

from typing import Any

from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import (
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Source,
    Transcription,
    complete_table,
    converted,
    header,
    passthrough,
    renamed,
)
from penstock.providers.speech import Speech, openai_names, voice_names
from penstock.providers.transcription import Transcript, Word
from penstock.providers.voice_lists import ListedVoice, VoiceList, VoicePage

_VOICES = """
    amalthea andromeda apollo arcas aries asteria athena atlas aurora callista cora cordelia delia draco electra
    harmonia helena hera hermes hyperion iris janus juno jupiter luna mars minerva neptune odysseus ophelia orion
    orpheus pandora phoebe pluto saturn selene thalia theia vesta zeus
"""


def read_voices(fields: Any) -> VoicePage:
    """Read the voices that are models at Deepgram: of those in the table, what more is known."""
    return VoicePage(
        tuple(
            ListedVoice(
                id=voice["name"],
                languages=tuple(voice.get("languages") or ()),
                gender=next((tag for tag in voice["metadata"].get("tags") or () if tag in _GENDERS), ""),
                sample=voice["metadata"].get("sample") or "",
            )
            for voice in fields["tts"]
            if voice["canonical_name"] == f"aura-2-{voice['name']}-en"
        )
    )


_GENDERS = ("masculine", "feminine")
SPEAK = Operation(
    task="speech",
    send="POST /speak",
    read=read_nothing,
    model_field=None,
    takes_extras=False,
    params=complete_table(
        "speech",
        renamed("input", to="text", required=True),
        converted("voice", to="?model", convert=lambda name: f"aura-2-{name}-en"),
    ),
    speech=Speech(
        formats={
            "pcm": {"?encoding": "linear16", "?container": "none", "?sample_rate": 24000},
            "wav": {"?encoding": "linear16", "?container": "wav", "?sample_rate": 24000},
            "flac": {"?encoding": "flac", "?sample_rate": 24000},
            "mp3": {"?encoding": "mp3"},
            "opus": {"?encoding": "opus", "?container": "ogg"},
            "aac": {"?encoding": "aac"},
        },
        max_characters=2000,
        account_voices=VoiceList(send="GET /models", read=read_voices),
        languages=("en",),
        voices=voice_names(_VOICES),
        openai_voices=openai_names(
            "andromeda apollo hyperion thalia arcas draco aurora zeus athena luna orion helena jupiter"
        ),
    ),
)


def read_transcript(fields: Any) -> Transcript:
    """Read the first alternative of the first channel: the gateway sends one."""
    channel = fields["results"]["channels"][0]
    heard = channel["alternatives"][0]
    return Transcript(
        text=heard["transcript"],
        language=channel.get("detected_language"),
        words=tuple(
            Word(word.get("punctuated_word") or word["word"], float(word["start"]), float(word["end"]))
            for word in heard.get("words") or ()
        ),
    )


# Who speaks, and keywords, are billed on top, at prices without a witness here: neither is asked for.
LISTEN = Operation(
    task="transcription",
    send="POST /listen",
    body="file",
    read=read_nothing,
    model_field="?model",
    takes_extras=False,
    params=complete_table("transcription", passthrough("file", required=True), renamed("language", to="?language")),
    transcription=Transcription(details={"word": {"?smart_format": True}}, read=read_transcript),
)
# What others recorded of Deepgram's page on prices; older lists have less than that.
_LISTENING = Source("pages that quote deepgram.com/pricing", "2026-08-01", is_second_hand=True)


def error_message(reply: Reply) -> str | None:
    return str(reply.json.get("err_msg") or reply.json["message"])


# No price of its speech has a witness here: the operator sets one under `[models."deepgram/aura-2"]`.
PROVIDER = Provider(
    slug="deepgram",
    name="Deepgram",
    docs="https://developers.deepgram.com/reference/text-to-speech-api",
    base_url="https://api.deepgram.com/v1",
    key_env="DEEPGRAM_API_KEY",
    auth=header("authorization", "Token "),
    error_message=error_message,
    models=(
        Model(id="deepgram/aura-2", upstream="aura-2", op=SPEAK, prices=()),
        Model(
            id="deepgram/nova-3",
            upstream="nova-3",
            op=LISTEN,
            prices=(Price(unit="second", usd="0.000128334", source=_LISTENING),),
        ),
    ),
)
