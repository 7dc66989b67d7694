"""MiniMax speech: JSON with the sound in hexadecimal digits."""

from collections.abc import Mapping
from typing import Any

from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import Model, Operation, Price, complete_table, emulated, fixed, renamed
from penstock.providers.speech import PRICES, Speech, SpeechPart, openai_names
from penstock.providers.voice_lists import ListedVoice, VoiceList, VoicePage

_FORMAT = "audio_setting.format"
_RATE = "audio_setting.sample_rate"


def read_sound(fields: Mapping[str, Any]) -> SpeechPart:
    """A failure has status 200, and a code that is not 0. More may be billed than the characters of the text."""
    if (fields.get("base_resp") or {}).get("status_code"):
        return SpeechPart(error="broken")
    billed = (fields.get("extra_info") or {}).get("usage_characters")
    return SpeechPart(bytes.fromhex(fields["data"]["audio"]), {} if billed is None else {"billed": billed})


def read_voices(fields: Mapping[str, Any]) -> VoicePage:
    """Read the voices of an account: those of all accounts, those that were cloned, and those that were designed."""
    kinds = (("system_voice", False), ("voice_cloning", True), ("voice_generation", True))
    return VoicePage(
        tuple(
            ListedVoice(
                id=voice["voice_id"],
                name=voice.get("voice_name") or "",
                description=" ".join(voice.get("description") or ()),
                is_own=is_own,
            )
            for kind, is_own in kinds
            for voice in fields.get(kind) or ()
        )
    )


SPEAK = Operation(
    task="speech",
    send="POST /v1/t2a_v2",
    read=read_nothing,
    takes_extras=False,
    params=complete_table(
        "speech",
        renamed("input", to="text", required=True),
        renamed("voice", to="voice_setting.voice_id"),
        emulated("speed", to="voice_setting.speed"),
        fixed("stream", False),
        fixed("output_format", "hex"),
        fixed("audio_setting.channel", 1),
    ),
    speech=Speech(
        formats={
            "pcm": {_FORMAT: "pcm", _RATE: 24000},
            "wav": {_FORMAT: "wav", _RATE: 24000},
            "flac": {_FORMAT: "flac", _RATE: 24000},
            "mp3": {_FORMAT: "mp3", _RATE: 32000, "audio_setting.bitrate": 128000},
        },
        reply="json",
        read=read_sound,
        max_characters=5000,
        # Names of the system voices in Replicate's schema of speech-02 and speech-2.8, read 2026-11-18.
        openai_voices=openai_names(
            "Wise_Woman Casual_Guy Elegant_Man Lively_Girl Patient_Man Imposing_Manner Inspirational_girl "
            "Deep_Voice_Man Calm_Woman Sweet_Girl_2 Young_Knight Lovely_Girl Determined_Man"
        ),
        account_voices=VoiceList(send="POST /v1/get_voice", body={"voice_type": "all"}, read=read_voices),
        speeds=(0.5, 2),
    ),
)
# Dollars for a million characters. Chinese characters count as two, so twice as many are held.
MODELS = tuple(
    Model(
        id=f"minimax/{name}",
        upstream=name,
        op=SPEAK,
        prices=(Price(unit="character", usd=usd, is_counted_by_provider=True, ceiling="2", source=PRICES),),
    )
    for name, usd in (
        ("speech-2.6-hd", "0.0001"),
        ("speech-2.6-turbo", "0.00006"),
        ("speech-02-hd", "0.0001"),
        ("speech-02-turbo", "0.00006"),
    )
)
