"""OpenAI's Responses API for fake providers: it thinks, then repeats the last message or calls the tool it must call.

Bodies are checked with the types of OpenAI's client, and refused where OpenAI refuses them; what is sent is built with
these types, too.
"""

import json
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_input_param import ResponseInputParam
from pydantic import TypeAdapter, ValidationError

from tests.fake_providers.chat import INPUT_USD, OUTPUT_USD
from tests.fake_providers.exchange import FakeResponse

KNOWN = {*ResponseCreateParamsBase.__annotations__, "stream"}
SECRET = "gAAAA-thoughts-of-the-fake"
THINKING_TOKENS = 7
_INPUT: TypeAdapter[Any] = TypeAdapter(str | ResponseInputParam)
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def respond(fields: dict[str, Any], name: str) -> tuple[FakeResponse, Decimal]:
    """The response, and what it costs."""
    if refused := _refusal(fields):
        return refused, Decimal(0)
    response = _response(fields, name)
    usd = response["usage"]["input_tokens"] * INPUT_USD + response["usage"]["output_tokens"] * OUTPUT_USD
    if fields.get("stream"):
        return FakeResponse(events=[_encoded(event) for event in _numbered(_events(response))]), usd
    return FakeResponse(Response.model_validate(response).model_dump(mode="json", exclude_unset=True)), usd


def refusal(message: str, param: str, code: str | None = None, status: int = 400) -> FakeResponse:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return FakeResponse({"error": error}, status)


def _refusal(fields: dict[str, Any]) -> FakeResponse | None:
    if unknown := sorted(fields.keys() - KNOWN):
        return refusal(f"Unknown parameter: '{unknown[0]}'.", unknown[0], "unknown_parameter")
    if fields.get("max_output_tokens", 16) < 16:
        message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
        return refusal(message, "max_output_tokens", "integer_below_min_value")
    try:
        _INPUT.validate_python(fields["input"])
    except ValidationError as problem:
        return refusal(f"Invalid 'input': {problem.errors()[0]['msg']}", "input", "invalid_type")
    return next(filter(None, map(_reasoning_refusal, _items(fields))), None)


def _reasoning_refusal(item: dict[str, Any]) -> FakeResponse | None:
    if item.get("type") != "reasoning":
        return None
    if not item.get("encrypted_content"):
        message = f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false."
        return refusal(message, "input", None, 404)
    if item["encrypted_content"] != SECRET:
        message = "The encrypted content could not be verified."
        return refusal(message, "input", "invalid_encrypted_content")
    return None


def _items(fields: dict[str, Any]) -> list[dict[str, Any]]:
    given = fields["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _words(item: dict[str, Any]) -> list[str]:
    content = item.get("content") or item.get("output") or ""
    text = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
    return text.split()


def _response(fields: dict[str, Any], name: str) -> dict[str, Any]:
    items = _items(fields)
    words = _words(items[-1]) or ["…"]
    reasoning: dict[str, Any] = {"id": f"rs_{name}", "type": "reasoning", "summary": []}
    if "reasoning.encrypted_content" in fields.get("include", ()):
        reasoning["encrypted_content"] = SECRET
    used = sum(len(_words(item)) for item in items)
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": fields.get("instructions"),
        "max_output_tokens": fields.get("max_output_tokens"),
        "metadata": fields.get("metadata", {}),
        "model": f"{fields['model']}-2026-11-01",
        "output": [reasoning, _written(fields, name, words)],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": fields.get("tool_choice", "auto"),
        "tools": fields.get("tools", []),
        "top_p": 1.0,
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": len(words) + THINKING_TOKENS,
            "output_tokens_details": {"reasoning_tokens": THINKING_TOKENS},
            "total_tokens": used + len(words) + THINKING_TOKENS,
        },
    }


def _written(fields: dict[str, Any], name: str, words: list[str]) -> dict[str, Any]:
    """The call of the tool that must be called, otherwise a message."""
    if fields.get("tool_choice") == "required":
        tool = fields["tools"][0]
        kind = "custom_tool_call" if tool["type"] == "custom" else "function_call"
        written = {"input": "*** Begin"} if tool["type"] == "custom" else {"arguments": "{}"}
        return {"id": f"fc_{name}", "type": kind, "call_id": f"call_{name}", "name": tool["name"], **written}
    part = {"type": "output_text", "text": " ".join(words), "annotations": [], "logprobs": []}
    return {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            words = item["content"][0]["text"].split()
            for number, word in enumerate(words):
                text = word if number == 0 else f" {word}"
                yield {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}
            yield {"type": "response.output_text.done", **place, "text": " ".join(words), "logprobs": []}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _numbered(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _encoded(event: dict[str, Any]) -> bytes:
    _EVENT.validate_python(event)
    return f"event: {event['type']}\ndata: {json.dumps(event)}".encode()
