"""Google's Lyria music models for the Gemini API: songs, and clips of half a minute."""

from typing import Any

from penstock.providers.gemini_images import REFUSALS
from penstock.providers.sounds import MUSIC
from penstock.providers.spec import File, Model, Operation, Price, Reply, Result, complete_table, fixed, passthrough
from penstock.providers.speech import PRICES


def build_contents(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the prompt and the words that are to be sung into one message."""
    texts = [fields.pop("prompt", ""), fields.pop("lyrics", "")]
    return {**fields, "contents": [{"role": "user", "parts": [{"text": text} for text in texts if text]}]}


def read_music(reply: Reply) -> Result:
    """Read the music, and the words that the model has written for it."""
    response = reply.json
    candidates = response.get("candidates") or []
    parts = [part for each in candidates for part in (each.get("content") or {}).get("parts") or ()]
    sounds = [part["inlineData"]["data"] for part in parts if "inlineData" in part]
    if not sounds:
        blocked = (response.get("promptFeedback") or {}).get("blockReason")
        reason = blocked or next((each.get("finishReason") for each in candidates), "no candidates")
        is_refused = blocked or reason in REFUSALS
        message = f"Lyria made no music: {reason}."
        return Result(status="failed", failure_kind="refused" if is_refused else "broken", message=message)
    lyrics = "\n".join(part["text"] for part in parts if part.get("text")) or None
    return Result(files=(File(data=sounds[0], lyrics=lyrics),), upstream_id=response.get("responseId"))


COMPOSE = Operation(
    task="sound",
    send="POST /models/{model}:generateContent",
    read=read_music,
    model_field=None,
    takes_extras=False,
    settings=MUSIC,
    adjust_body=build_contents,
    params=complete_table(
        "sound",
        passthrough("prompt"),
        passthrough("lyrics"),
        fixed("generationConfig.responseModalities", ["AUDIO", "TEXT"]),
    ),
)
MODELS = tuple(
    Model(id=f"google/{name}", upstream=name, op=COMPOSE, prices=(Price(unit="call", usd=usd, source=PRICES),))
    for name, usd in (("lyria-3-clip-preview", "0.04"), ("lyria-3-pro-preview", "0.08"))
)
