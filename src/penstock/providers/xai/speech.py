"""xAI's text to speech."""

from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import Model, Operation, Price, Source, complete_table, fixed, renamed
from penstock.providers.speech import Speech, openai_names, voice_names

_CODEC = "output_format.codec"
_RATE = "output_format.sample_rate"
SPEAK = Operation(
    task="speech",
    send="POST /tts",
    read=read_nothing,
    model_field=None,
    takes_extras=False,
    params=complete_table(
        "speech",
        renamed("input", to="text", required=True),
        renamed("voice", to="voice_id"),
        fixed("language", "auto"),
        renamed("language", to="language"),
    ),
    speech=Speech(
        formats={
            "pcm": {_CODEC: "pcm", _RATE: 24000},
            "wav": {_CODEC: "wav", _RATE: 24000},
            "mp3": {_CODEC: "mp3", _RATE: 24000, "output_format.bit_rate": 128000},
        },
        max_characters=15_000,
        voices=voice_names("eve ara rex sal leo"),
        openai_voices=openai_names("eve leo sal ara rex leo eve rex ara eve leo ara rex"),
    ),
)
_SOURCE = Source("docs.x.ai, its page on voice", "2026-11-18")
MODELS = (
    Model(
        id="x-ai/tts",
        upstream="tts",
        op=SPEAK,
        prices=(Price(unit="character", usd="0.000015", source=_SOURCE),),
        name="Grok text to speech",
    ),
)
