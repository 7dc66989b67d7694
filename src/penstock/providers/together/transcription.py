"""Together's Whisper: transcription with speakers, and translation."""

from dataclasses import replace
from typing import Any

from penstock.providers.openai_compatible import TRANSCRIPTION, TRANSLATION
from penstock.providers.spec import Model, Transcription, complete_table, passthrough
from penstock.providers.transcription import WHISPER, Segment, Transcript, read_openai


def read_transcript(fields: Any) -> Transcript:
    """As OpenAI's, with segments of speakers in place of the others if there are any."""
    spoken = fields.get("speaker_segments") or ()
    segments = tuple(
        Segment(segment["text"], float(segment["start"]), float(segment["end"]), segment["speaker_id"])
        for segment in spoken
    )
    heard = read_openai(fields)
    return Transcript(heard.text, heard.language, segments or heard.segments, heard.words)


TRANSCRIBE = replace(
    TRANSCRIPTION,
    send="POST /v1/audio/transcriptions",
    takes_extras=False,
    params=complete_table(
        "transcription",
        passthrough("file", required=True),
        passthrough("language"),
        passthrough("prompt"),
        passthrough("temperature"),
        passthrough("max_speakers"),
    ),
    transcription=Transcription(
        details=WHISPER, read=read_transcript, speakers={**WHISPER["segment"], "diarize": True}
    ),
)
TRANSLATE = replace(
    TRANSLATION,
    send="POST /v1/audio/translations",
    takes_extras=False,
    transcription=Transcription(
        details={detail: WHISPER[detail] for detail in ("text", "segment")}, read=read_transcript
    ),
)
_NAME = "openai/whisper-large-v3"
# No price of it has a witness here: the operator sets one under `[models."together/whisper-large-v3"]`.
MODELS = tuple(
    Model(id="together/whisper-large-v3", upstream=_NAME, op=op, prices=()) for op in (TRANSCRIBE, TRANSLATE)
)
