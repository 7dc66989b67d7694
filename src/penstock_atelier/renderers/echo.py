"""A chat model that repeats the last message, in every form that chat responses have."""

import hashlib
import json
import math
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

MAX_OUTPUT_TOKENS = 4096
_TOKEN = re.compile(r"\s*\S+|\s+")
_SAMPLES: Mapping[str, Any] = {"string": "echo", "integer": 1, "number": 1.5, "boolean": True, "null": None}
_DEEPEST = 8


# ------------------------------------------------------------------------------------------------------ encoded answers


def encode_completion(body: Mapping[str, Any]) -> bytes:
    """The whole response as JSON."""
    return msgspec.json.encode(completion(body))


def encode_events(body: Mapping[str, Any]) -> Iterator[bytes]:
    """The same response as server-sent events."""
    for chunk in chunks(body):
        yield b"data: " + msgspec.json.encode(chunk) + b"\n\n"
    yield b"data: [DONE]\n\n"


def answer_in_child(body: bytes, stream: bool) -> dict[str, list[bytes]]:
    """The task of a child process: the encoded events of a stream, or the whole response as the only piece."""
    fields = msgspec.json.decode(body)
    return {"pieces": list(encode_events(fields)) if stream else [encode_completion(fields)]}


# -------------------------------------------------------------------------------------------------------------- answers


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The whole response at once."""
    pieces, message, reason = _reply(body)
    choice = {"message": message, "finish_reason": reason, "logprobs": _logprobs(body, pieces)}
    choices = [{"index": index, **choice} for index in range(_choice_count(body))]
    return {**_head("chat.completion"), "choices": choices, "usage": _usage(body, pieces)}


def chunks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same response, one token at a time and one choice after the other."""
    head = _head("chat.completion.chunk")
    reply = _reply(body)
    for index in range(_choice_count(body)):
        yield from _choice_chunks(body, head, index, reply)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage(body, reply[0])}


def _choice_chunks(
    body: Mapping[str, Any], head: Mapping[str, Any], index: int, reply: tuple[list[str], dict[str, Any], str]
) -> Iterator[dict[str, Any]]:
    pieces, message, reason = reply

    def chunk(delta: Mapping[str, Any], finish: str | None = None, spoken: Sequence[str] = ()) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "finish_reason": finish}
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


def _choice_count(body: Mapping[str, Any]) -> int:
    return body.get("n") or 1


def _head(kind: str) -> dict[str, Any]:
    mark = secrets.token_hex(12)
    return {"id": f"chatcmpl-{mark}", "object": kind, "created": int(time.time()), "model": "atelier/echo"}


# -------------------------------------------------------------------------------------------------------------- message


def _reply(body: Mapping[str, Any]) -> tuple[list[str], dict[str, Any], str]:
    """Tokens, message and finish reason."""
    if function := _function_to_call(body):
        arguments = json.dumps(_sample(function.get("parameters") or {}, 0))
        mark = hashlib.blake2b(f"{function['name']}{arguments}".encode(), digest_size=8).hexdigest()
        call = {
            "id": f"call_{mark}",
            "type": "function",
            "function": {"name": function["name"], "arguments": arguments},
        }
        return _TOKEN.findall(arguments), {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    text = _cut_at_stops(_reply_text(body), body.get("stop"))
    pieces = _TOKEN.findall(text)
    wanted = body.get("max_tokens") or body.get("max_completion_tokens") or MAX_OUTPUT_TOKENS
    max_tokens = min(wanted, MAX_OUTPUT_TOKENS)
    reason = "stop"
    if len(pieces) > max_tokens:
        pieces = pieces[:max_tokens]
        reason = "length"
    return pieces, {"role": "assistant", "content": "".join(pieces)}, reason


def _function_to_call(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The function to call: the one that is demanded or mentioned, or the first when one must be called."""
    functions = [tool["function"] for tool in body.get("tools") or ()]
    choice = body.get("tool_choice") or ("auto" if functions else "none")
    if isinstance(choice, dict):
        return {"name": choice["function"]["name"], **_function_named(functions, choice["function"]["name"])}
    if choice == "none" or not functions or body["messages"][-1]["role"] == "tool":
        return None
    if choice == "required":
        return _function_mentioned(body, functions) or functions[0]
    return _function_mentioned(body, functions)


def _function_named(functions: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((function for function in functions if function["name"] == name), {})


def _function_mentioned(body: Mapping[str, Any], functions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    text = _last_input(body)
    return next((function for function in functions if function["name"] in text), None)


def _sample(schema: Any, depth: int) -> Any:
    """A value that fits a JSON Schema, as far as simple ones go; None for anything that is not a schema."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:  # `true` is a schema too
        return None
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    if "const" in schema:
        return schema["const"]
    kinds = schema.get("type", "object")
    kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
    if kind == "object":
        properties = schema.get("properties")
        named = properties if isinstance(properties, Mapping) else {}
        return {name: _sample(inner, depth + 1) for name, inner in named.items()}
    if kind == "array":
        return [_sample(schema.get("items") or {"type": "string"}, depth + 1)]
    return _SAMPLES.get(kind) if isinstance(kind, str) else None


def _reply_text(body: Mapping[str, Any]) -> str:
    text = _last_input(body)
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        wrapped = form.get("json_schema")
        return json.dumps(_sample(wrapped.get("schema") if isinstance(wrapped, Mapping) else None, 0))
    return json.dumps({"echo": text}) if form.get("type") == "json_object" else text


def _last_input(body: Mapping[str, Any]) -> str:
    """The text of the last message that is not the assistant's."""
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
    prompt_tokens = sum(len(_TOKEN.findall(_text(message))) + 3 for message in body["messages"])
    completion_tokens = len(pieces) * _choice_count(body)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "image") for part in content or ())


def _logprobs(body: Mapping[str, Any], pieces: Sequence[str]) -> dict[str, Any] | None:
    """Every token has probability 1; invented alternatives have nearly 0."""
    if not body.get("logprobs"):
        return None
    alternatives = int(body.get("top_logprobs") or 0)
    return {"content": [_token_logprob(piece, alternatives) for piece in pieces], "refusal": None}


def _token_logprob(piece: str, alternatives: int) -> dict[str, Any]:
    first = {"token": piece, "logprob": 0.0, "bytes": list(piece.encode())}
    others = [
        {"token": f"{piece}{number}", "logprob": round(math.log(1e-6 / number), 4), "bytes": None}
        for number in range(1, alternatives)
    ]
    return {**first, "top_logprobs": [first, *others] if alternatives else []}
