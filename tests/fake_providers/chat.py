"""OpenAI-compatible chat for fake providers: the response repeats the last message, and speaks it if it is to."""

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tests import sounds
from tests.fake_providers.exchange import FakeResponse

INPUT_USD, OUTPUT_USD = Decimal("0.000001"), Decimal("0.000002")
HEARD_USD, SPOKEN_USD = Decimal("0.00001"), Decimal("0.00002")
SOUND_TOKENS_PER_SECOND = 10
SPOKEN_SECONDS = 2.0


def completion(
    fields: dict[str, Any],
    name: str,
    thought: int = 0,
    more: Mapping[str, Any] | None = None,
    joined: bool = False,
) -> tuple[FakeResponse, Decimal]:
    """The completion, and what it costs. Tokens of thought are in the total alone; `more` goes with what was used,
    which a stream may tell with its last words.
    """
    words = _last_words(fields["messages"])
    usage: dict[str, Any] = _usage(fields["messages"], words)
    usage |= {"total_tokens": usage["total_tokens"] + thought, **(more or {})}
    usd = usage["prompt_tokens"] * INPUT_USD + usage["completion_tokens"] * OUTPUT_USD
    heard, spoken = _heard(fields["messages"]), "audio" in (fields.get("modalities") or ())
    if heard or spoken:
        usd += _add_sounds(usage, heard, SPOKEN_SECONDS if spoken else 0)
    audio = _audio(" ".join(words), fields["audio"]["format"]) if spoken else None
    head = {"id": name, "created": int(time.time()), "model": fields["model"], "system_fingerprint": None}
    if fields.get("stream"):
        wants_usage = (fields.get("stream_options") or {}).get("include_usage")
        events = _events(head, words, usage if wants_usage else None, joined, audio)
        return FakeResponse(events=[*events, b"[DONE]"]), usd
    message: dict[str, Any] = {"role": "assistant", "content": " ".join(words), "refusal": None}
    if audio is not None:
        message |= {"content": None, "audio": audio}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return FakeResponse({**head, "object": "chat.completion", "choices": [choice], "usage": usage}), usd


def encoded(chunk: dict[str, Any]) -> bytes:
    return json.dumps(chunk).encode()


def _last_words(messages: list[dict[str, Any]]) -> list[str]:
    content = messages[-1].get("content") or ""
    text = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
    return text.split() or ["…"]


def _usage(messages: list[dict[str, Any]], words: list[str]) -> dict[str, int]:
    prompt = sum(len(_last_words([message])) for message in messages)
    return {"prompt_tokens": prompt, "completion_tokens": len(words), "total_tokens": prompt + len(words)}


def _heard(messages: list[dict[str, Any]]) -> float:
    """The seconds of the sounds in messages; only WAV and MP3 are taken, as by OpenAI."""
    parts = [part for message in messages if isinstance(message.get("content"), list) for part in message["content"]]
    found = [part["input_audio"] for part in parts if part["type"] == "input_audio"]
    assert all(sound["format"] in ("wav", "mp3") for sound in found)
    return sum(sounds.seconds_of(b64decode(sound["data"]), sound["format"]) for sound in found)


def _add_sounds(usage: dict[str, Any], heard: float, spoken: float) -> Decimal:
    """Add tokens of sound to the usage, and return what they cost."""
    heard_tokens, spoken_tokens = (int(seconds * SOUND_TOKENS_PER_SECOND) for seconds in (heard, spoken))
    usage["prompt_tokens"] += heard_tokens
    usage["completion_tokens"] += spoken_tokens
    usage["total_tokens"] += heard_tokens + spoken_tokens
    usage["prompt_tokens_details"] = {"audio_tokens": heard_tokens, "cached_tokens": 0}
    usage["completion_tokens_details"] = {"audio_tokens": spoken_tokens, "reasoning_tokens": 0}
    return heard_tokens * HEARD_USD + spoken_tokens * SPOKEN_USD


def _audio(transcript: str, output_format: str) -> dict[str, Any]:
    made = sounds.encoded("pcm" if output_format == "pcm16" else output_format, SPOKEN_SECONDS)
    return {"id": "audio_1", "expires_at": 2_000_000_000, "transcript": transcript, "data": b64encode(made).decode()}


def _events(
    head: dict[str, Any],
    words: list[str],
    usage: dict[str, Any] | None,
    joined: bool,
    audio: Mapping[str, Any] | None = None,
) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return encoded({**head, "object": "chat.completion.chunk", "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    if audio is not None:
        yield chunk({"audio": {"id": audio["id"], "transcript": audio["transcript"]}})
        for start in range(0, len(audio["data"]), 16_000):
            yield chunk({"audio": {"id": audio["id"], "data": audio["data"][start : start + 16_000]}})
        words = []
    for number, word in enumerate(words):
        yield chunk({"content": word if number == 0 else f" {word}"})
    if joined:
        yield chunk({}, "stop", usage=usage)
        return
    yield chunk({}, "stop")
    if usage is not None:
        yield encoded({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
