"""xAI's speech to text."""

from typing import Any

from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import Model, Operation, Price, Transcription, complete_table, passthrough
from penstock.providers.transcription import PRICES, Transcript, Word


def read_transcript(fields: Any) -> Transcript:
    """Read a transcript, which always has the times of words."""
    return Transcript(
        text=fields["text"],
        language=fields.get("language"),
        words=tuple(Word(word["text"], float(word["start"]), float(word["end"])) for word in fields.get("words") or ()),
    )


LISTEN = Operation(
    task="transcription",
    send="POST /stt",
    body="form",
    read=read_nothing,
    takes_extras=False,
    params=complete_table("transcription", passthrough("file", required=True), passthrough("language")),
    transcription=Transcription(details={"word": {}}, read=read_transcript),
)
MODELS = (
    Model(
        id="x-ai/grok-voice-transcribe-2.0",
        upstream="grok-voice-transcribe-2.0",
        op=LISTEN,
        prices=(Price(unit="second", usd="0.00002778", source=PRICES),),
    ),
)
