"""OpenAI-compatible chat for fake providers: the response repeats the last message."""

import json
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tests.fake_providers.exchange import FakeResponse

INPUT_USD, OUTPUT_USD = Decimal("0.000001"), Decimal("0.000002")


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
    head = {"id": name, "created": int(time.time()), "model": fields["model"], "system_fingerprint": None}
    if fields.get("stream"):
        wants_usage = (fields.get("stream_options") or {}).get("include_usage")
        return FakeResponse(events=[*_events(head, words, usage if wants_usage else None, joined), b"[DONE]"]), usd
    message = {"role": "assistant", "content": " ".join(words), "refusal": None}
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


def _events(head: dict[str, Any], words: list[str], usage: dict[str, Any] | None, joined: bool) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return encoded({**head, "object": "chat.completion.chunk", "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    for number, word in enumerate(words):
        yield chunk({"content": word if number == 0 else f" {word}"})
    if joined:
        yield chunk({}, "stop", usage=usage)
        return
    yield chunk({}, "stop")
    if usage is not None:
        yield encoded({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
