"""A chat partner without a mind: says back what it heard, in every shape that chat answers have."""

import hashlib
import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TOKEN = re.compile(r"\s*\S+|\s+")
_SAMPLES: Mapping[str, Any] = {"string": "echo", "integer": 1, "number": 1.5, "boolean": True, "null": None}
_DEEPEST = 8


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The whole answer at once."""
    pieces, message, reason = _answer(body)
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": _logprobs(body, pieces)}
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage(body, pieces)}


def chunks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same answer a token at a time."""
    head = _head(body, "chat.completion.chunk")
    pieces, message, reason = _answer(body)

    def chunk(delta: Mapping[str, Any], finish: str | None = None, spoken: Sequence[str] = ()) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        if spoken and (logprobs := _logprobs(body, spoken)):
            choice["logprobs"] = logprobs
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": None if "tool_calls" in message else ""})
    for call in message.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        yield chunk({"tool_calls": [{"index": 0, **call, "function": {**call["function"], "arguments": ""}}]})
        for start in range(0, len(arguments), 12):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments[start : start + 12]}}]})
    if "tool_calls" not in message:
        for piece in pieces:
            yield chunk({"content": piece}, spoken=[piece])
    yield chunk({}, reason)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage(body, pieces)}


def _head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    mark = hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=12).hexdigest()
    return {"id": f"chatcmpl-{mark}", "object": kind, "created": int(time.time()), "model": "atelier/echo"}


# ------------------------------------------------------------------------------------------------------------- answers


def _answer(body: Mapping[str, Any]) -> tuple[list[str], dict[str, Any], str]:
    """Tokens, message and finish reason."""
    if function := _called(body):
        arguments = json.dumps(_sample(function.get("parameters") or {}, 0))
        mark = hashlib.blake2b(f"{function['name']}{arguments}".encode(), digest_size=8).hexdigest()
        call = {
            "id": f"call_{mark}",
            "type": "function",
            "function": {"name": function["name"], "arguments": arguments},
        }
        return _TOKEN.findall(arguments), {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    text = _cut_at_stops(_spoken(body), body.get("stop"))
    pieces = _TOKEN.findall(text)
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    reason = "stop"
    if most and len(pieces) > most:
        pieces, reason = pieces[:most], "length"
    return pieces, {"role": "assistant", "content": "".join(pieces)}, reason


def _called(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The function to call: a named one, or the first when one must be called or its name was mentioned."""
    functions = [tool["function"] for tool in body.get("tools") or ()]
    choice = body.get("tool_choice") or ("auto" if functions else "none")
    if isinstance(choice, dict):
        return {"name": choice["function"]["name"], **_named(functions, choice["function"]["name"])}
    if choice == "none" or not functions or body["messages"][-1]["role"] == "tool":
        return None
    if choice == "required":
        return _mentioned(body, functions) or functions[0]
    return _mentioned(body, functions)


def _named(functions: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((one for one in functions if one["name"] == name), {})


def _mentioned(body: Mapping[str, Any], functions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    heard = _heard(body)
    return next((one for one in functions if one["name"] in heard), None)


def _sample(schema: Mapping[str, Any], depth: int) -> Any:
    """A value that fits a JSON Schema, as far as simple ones go."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if depth > _DEEPEST:
        return None
    if kind == "object":
        return {name: _sample(one, depth + 1) for name, one in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [_sample(schema.get("items") or {"type": "string"}, depth + 1)]
    return _SAMPLES.get(kind)


def _spoken(body: Mapping[str, Any]) -> str:
    heard = _heard(body)
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return json.dumps(_sample((form.get("json_schema") or {}).get("schema") or {}, 0))
    return json.dumps({"echo": heard}) if form.get("type") == "json_object" else heard


def _heard(body: Mapping[str, Any]) -> str:
    """The last thing that somebody other than the assistant said."""
    for message in reversed(body["messages"]):
        if message["role"] != "assistant":
            content = message.get("content")
            if isinstance(content, str):
                return content
            words = [part["text"] if part["type"] == "text" else "[image]" for part in content or ()]
            return " ".join(words)
    return ""


def _cut_at_stops(text: str, stops: Any) -> str:
    ends = [text.find(stop) for stop in ([stops] if isinstance(stops, str) else stops or ()) if stop]
    return text[: min((end for end in ends if end >= 0), default=len(text))]


# ------------------------------------------------------------------------------------------------------------- figures


def _usage(body: Mapping[str, Any], pieces: Sequence[str]) -> dict[str, int]:
    asked = sum(len(_TOKEN.findall(_text(message))) + 3 for message in body["messages"])
    return {"prompt_tokens": asked, "completion_tokens": len(pieces), "total_tokens": asked + len(pieces)}


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "picture") for part in content or ())


def _logprobs(body: Mapping[str, Any], pieces: Sequence[str]) -> dict[str, Any] | None:
    """It is always certain of what it says; the alternatives it never considered get what little is left."""
    if not body.get("logprobs"):
        return None
    alternatives = int(body.get("top_logprobs") or 0)
    return {"content": [_certain(piece, alternatives) for piece in pieces], "refusal": None}


def _certain(piece: str, alternatives: int) -> dict[str, Any]:
    first = {"token": piece, "logprob": 0.0, "bytes": list(piece.encode())}
    others = [
        {"token": f"{piece}{number}", "logprob": round(math.log(1e-6 / number), 4), "bytes": None}
        for number in range(1, alternatives)
    ]
    return {**first, "top_logprobs": [first, *others] if alternatives else []}
