"""Gemini's model that listens: an interaction whose input is a sound, and whose text has the times of its words."""

from collections.abc import Mapping
from typing import Any

from penstock.providers.convert import plain_base64
from penstock.providers.exchange import Upload
from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import Model, Operation, Price, complete_table, converted
from penstock.providers.transcription import PRICES, Transcript, Transcription, Word
from penstock.values import InputFile

_CONFIG = "generation_config.transcription_config"
_MODE = f"{_CONFIG}.mode"
_WORDS = {f"{_MODE}.type": "verbatim", f"{_MODE}.timestamp_granularities": ["word"]}
_MAX_BYTES = 14 * 1024**2  # a request with a sound in it may have 20 MB, in base64


def sound_input(file: Upload) -> list[dict[str, Any]]:
    """The sound as one part of an interaction."""
    data = plain_base64(InputFile(file.data, file.content_type, 0, 0))
    return [{"type": "audio", "data": data, "mime_type": file.content_type}]


def read_transcript(fields: Any) -> Transcript:
    """Read the texts of all steps, and their words. Raises ValueError for an interaction that did not complete."""
    if fields["status"] != "completed":
        raise ValueError("it did not complete")
    contents = [content for step in fields["steps"] for content in step.get("content") or ()]
    texts = [content for content in contents if content["type"] == "text" and content.get("text")]
    annotations = [annotation for content in texts for annotation in content.get("annotations") or ()]
    counted = fields.get("usage") or {}
    usage = {name: counted.get(f"total_{name}_tokens") for name in ("input", "output")}
    return Transcript(
        text=" ".join(content["text"].strip() for content in texts),
        words=tuple(_word(annotation) for annotation in annotations if annotation["type"] == "word_info"),
        usage={name: count for name, count in usage.items() if isinstance(count, int)},
    )


def _word(annotation: Mapping[str, Any]) -> Word:
    start, end = (float(annotation[name].removesuffix("s")) for name in ("start_offset", "end_offset"))
    return Word(annotation["text"], start, end, annotation.get("speaker"))


LISTEN = Operation(
    task="transcription",
    send="POST /interactions",
    read=read_nothing,
    takes_extras=False,
    params=complete_table(
        "transcription",
        converted("file", to="input", convert=sound_input, required=True),
        converted("language", to=f"{_CONFIG}.language_codes", convert=lambda language: [language]),
    ),
    transcription=Transcription(
        details={"text": {}, "word": _WORDS},
        read=read_transcript,
        speakers={**_WORDS, f"{_MODE}.diarization_mode": "speaker"},
        headers={"api-revision": "2026-05-20"},
        max_bytes=_MAX_BYTES,
        tokens_per_second=32,
    ),
)
MODELS = (
    Model(
        id="google/gemini-3.5-transcribe",
        upstream="gemini-3.5-transcribe",
        op=LISTEN,
        prices=(Price(unit="token", input_usd="0.000002", usd="0.000012", source=PRICES),),
    ),
)
