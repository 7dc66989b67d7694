"""Gemini speech models for Google's API: samples in server-sent events."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from penstock.providers.gemini_images import REFUSALS
from penstock.providers.openai_compatible import read_nothing
from penstock.providers.spec import Model, Operation, Price, complete_table, fixed, renamed
from penstock.providers.speech import PRICES, Speech, SpeechPart, openai_names

VOICES = {
    "Zephyr": "bright", "Puck": "upbeat", "Charon": "informative", "Kore": "firm", "Fenrir": "excitable",
    "Leda": "youthful", "Orus": "firm", "Aoede": "breezy", "Callirrhoe": "easy-going", "Autonoe": "bright",
    "Enceladus": "breathy", "Iapetus": "clear", "Umbriel": "easy-going", "Algieba": "smooth", "Despina": "smooth",
    "Erinome": "clear", "Algenib": "gravelly", "Rasalgethi": "informative", "Laomedeia": "upbeat",
    "Achernar": "soft", "Alnilam": "firm", "Schedar": "even", "Gacrux": "mature", "Pulcherrima": "forward",
    "Achird": "friendly", "Zubenelgenubi": "casual", "Vindemiatrix": "gentle", "Sadachbia": "lively",
    "Sadaltager": "knowledgeable", "Sulafat": "warm",
}  # fmt: skip
_CONFIG = "generationConfig.speechConfig"


def build_contents(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the text and how to speak it into one part of one message."""
    part: dict[str, Any] = {"text": fields.pop("text")}
    if style := fields.pop("style", None):
        part["speechMetadata"] = {"style": style}
    return {**fields, "contents": [{"role": "user", "parts": [part]}]}


def read_event(fields: Mapping[str, Any]) -> SpeechPart:
    """The samples of one event. The counts of tokens are of the response up to here."""
    candidates = fields.get("candidates") or []
    parts = [part for each in candidates for part in (each.get("content") or {}).get("parts") or ()]
    sound = b"".join(b64decode(part["inlineData"]["data"]) for part in parts if "inlineData" in part)
    blocked = (fields.get("promptFeedback") or {}).get("blockReason")
    reasons = {each.get("finishReason") for each in candidates}
    counted = fields.get("usageMetadata") or {}
    usage = {"input": counted.get("promptTokenCount", 0), "output": counted.get("candidatesTokenCount", 0)}
    is_refused = bool(blocked or reasons & REFUSALS)
    return SpeechPart(sound, usage if counted else {}, "refused" if is_refused else "")


SPEAK = Operation(
    task="speech",
    send="POST /models/{model}:streamGenerateContent?alt=sse",
    read=read_nothing,
    model_field=None,
    takes_extras=False,
    adjust_body=build_contents,
    params=complete_table(
        "speech",
        renamed("input", to="text", required=True),
        renamed("voice", to=f"{_CONFIG}.voiceConfig.prebuiltVoiceConfig.voiceName"),
        renamed("instructions", to="style"),
        renamed("language", to=f"{_CONFIG}.languageCode"),
        fixed("generationConfig.responseModalities", ["AUDIO"]),
    ),
    speech=Speech(
        formats={"pcm": {}},
        reply="events",
        read=read_event,
        max_characters=4000,
        voices=VOICES,
        openai_voices=openai_names(
            "Kore Puck Achird Aoede Charon Rasalgethi Leda Algenib Vindemiatrix Zephyr Fenrir Sulafat Iapetus"
        ),
        tokens_per_second=32,
    ),
)
MODELS = tuple(
    Model(
        id=f"google/{name}",
        upstream=name,
        op=SPEAK,
        prices=(Price(unit="token", input_usd="0.0000005", usd=usd, source=PRICES),),
    )
    for name, usd in (("gemini-3.8-flash-tts", "0.000009"), ("gemini-3.8-flash-lite-tts", "0.000006"))
)
