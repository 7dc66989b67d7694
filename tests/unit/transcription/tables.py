"""A model that listens, for tests of what is asked of it and what that costs."""

from dataclasses import replace
from typing import Any

from penstock.fields import UploadedFile
from penstock.providers.openai_compatible import TRANSCRIPTION
from penstock.providers.spec import Model, Price, Transcription
from penstock.providers.transcription import WHISPER, read_openai
from penstock.transcription.request import ListenRequest


def model(price: Price | None = None, **transcription: Any) -> Model:
    described = Transcription(**{"details": WHISPER, "read": read_openai, **transcription})
    return Model(
        id="lab/listen",
        upstream="listen-1",
        op=replace(TRANSCRIPTION, transcription=described, takes_extras=False),
        prices=(price or Price(unit="second", usd="0.0001"),),
    )


def request(**changes: Any) -> ListenRequest:
    usual: dict[str, Any] = {
        "task": "transcription",
        "model": "lab/listen",
        "source": UploadedFile(b"RIFF"),
        "param": "file",
        "form": "json",
        "words": False,
        "speakers": False,
        "logprobs": False,
        "stream": False,
        "original": False,
        "values": {},
        "extras": {},
        "preferences": None,
        "records": {},
        "written": {},
    }
    return ListenRequest(**{**usual, **changes})
