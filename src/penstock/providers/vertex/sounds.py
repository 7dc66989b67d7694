"""Speech of Gemini on Vertex AI, with the messages of the Gemini API, and Lyria 2, which answers at once.

Gemini's models are served from `locations/global`.
"""

import re
from dataclasses import replace
from typing import Any

from penstock.providers import gemini_speech, openai_compatible
from penstock.providers.sounds import MUSIC
from penstock.providers.spec import (
    ANY_SOUND_FORMAT,
    FailureKind,
    File,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    complete_table,
    ignored,
    renamed,
)
from penstock.providers.speech import PRICES
from penstock.providers.vertex import veo

_BLOCKED = re.compile(r"blocked by|recitation", re.IGNORECASE)
SPEECH_MODELS = tuple(
    replace(
        model,
        op=replace(model.op, send="POST /publishers/google/models/{model}:streamGenerateContent?alt=sse"),
        priority=10,
    )
    for model in gemini_speech.MODELS
)


def failure_kind(reply: Reply) -> FailureKind | None:
    """As for Veo; Lyria says in words only that it has blocked something."""
    is_blocked = reply.status == 400 and _BLOCKED.search(openai_compatible.error_message(reply) or "")
    return "refused" if is_blocked else veo.failure_kind(reply)


def build_body(fields: dict[str, Any]) -> dict[str, Any]:
    return {"instances": [fields["instance"]], "parameters": {}}


def read_music(reply: Reply) -> Result:
    """Read the music, which is WAV. What was blocked is an error, or is missing."""
    made = [each.get("bytesBase64Encoded") or each.get("audioContent") for each in reply.json.get("predictions") or ()]
    if not made or not made[0]:
        return Result(status="failed", failure_kind="broken", message="Lyria made no music.")
    return Result(files=(File(data=made[0], content_type="audio/wav"),))


COMPOSE = Operation(
    task="sound",
    send="POST /publishers/google/models/{model}:predict",
    read=read_music,
    model_field=None,
    takes_extras=False,
    settings=MUSIC,
    adjust_body=build_body,
    params=complete_table(
        "sound",
        renamed("prompt", to="instance.prompt", required=True),
        renamed("negative_prompt", to="instance.negative_prompt"),
        renamed("seed", to="instance.seed", low=0, high=2**32 - 1),
        *ignored("instrumental"),
        replace(ANY_SOUND_FORMAT, default="wav"),
    ),
)
MODELS = (
    *SPEECH_MODELS,
    Model(
        id="google/lyria-002",
        upstream="lyria-002",
        op=COMPOSE,
        prices=(Price(unit="call", usd="0.06", source=PRICES),),
        name="Lyria 2",
        description="Half a minute of music without a voice.",
    ),
)
