"""A model that speaks, for tests of what is asked of it and what that costs."""

from dataclasses import replace
from typing import Any

from penstock.providers.openai_compatible import SPEECH
from penstock.providers.spec import Model, Price
from penstock.providers.speech import Speech, named_formats
from penstock.speech.request import SpeechRequest
from penstock.speech.turns import Turn

TEXT = "one two three."


def model(price: Price | None = None, **speech: Any) -> Model:
    described = Speech(**{"formats": named_formats("response_format", "pcm mp3"), **speech})
    return Model(
        id="lab/voice",
        upstream="voice-1",
        op=replace(SPEECH, speech=described),
        prices=(price,) if price else (Price(unit="character", usd="0.00001"),),
    )


def request(text: str = TEXT, **changes: Any) -> SpeechRequest:
    usual: dict[str, Any] = {
        "model": "lab/voice",
        "turns": (Turn(text),),
        "voice": "alloy",
        "output_format": "mp3",
        "speed": 1,
        "rate": None,
        "in_events": False,
        "values": {},
        "extras": {},
        "preferences": None,
        "records": {},
    }
    return SpeechRequest(**{**usual, **changes})
