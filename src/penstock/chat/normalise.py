"""Bring the chat responses of servers that leave out or invent fields into the documented shape."""

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from penstock.chat.pricing import Usage
from penstock.net.event_stream import contains_any

COMPLETION = "chat.completion"
CHUNK = "chat.completion.chunk"
FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter"})
# Reasons that servers give in place of the documented ones; any other one means that the model came to its end.
_REASONS = {
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "token_limit": "length",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "tool_call": "tool_calls",
    "safety": "content_filter",
    "content_filtered": "content_filter",
}
# Quotes inside a JSON string are escaped, so this never matches generated text.
_FINISH_REASON = re.compile(rb'("finish_reason":\s*")([^"\\]+)"')
_FINISH_REASON_BYTES = {reason.encode() for reason in FINISH_REASONS}
_TOOL_CALLS = re.compile(rb'"tool_calls":\s*\[')
_COMMON = ("id", "created", "model")
REASON_MARKS = (b'"finish_reason":"', b'"finish_reason": "')


_NULL = msgspec.Raw(b"null")


class _Message(msgspec.Struct):
    role: Any = None
    content: msgspec.Raw = _NULL
    tool_calls: msgspec.Raw = _NULL

    @property
    def is_documented(self) -> bool:
        if self.role != "assistant" or bytes(self.content)[:1] not in (b'"', b"n"):
            return False
        if bytes(self.tool_calls) in (b"null", b"[]"):
            return True
        return not text_fields({"tool_calls": msgspec.json.decode(self.tool_calls)})


class _Choice(msgspec.Struct):
    index: Any = None
    finish_reason: Any = None
    message: _Message | None = None


class Completion(msgspec.Struct):
    """What is read of a whole response; values of the wrong type are read too, and repaired later."""

    choices: list[_Choice] = []
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")
    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None

    @property
    def is_documented(self) -> bool:
        """Whether the response has every documented field."""
        return (
            self.object == COMPLETION
            and _has_head(self)
            and self.usage is not None
            and None not in (self.usage.prompt_tokens, self.usage.completion_tokens, self.usage.total_tokens)
            and all(map(_is_documented, self.choices))
        )


class ChunkHead(msgspec.Struct):
    """What every chunk of one stream has in common."""

    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    choices: list[_Choice] | None = None

    @property
    def is_documented(self) -> bool:
        indexes = [choice.index for choice in self.choices or ()]
        return self.object == CHUNK and _has_head(self) and all(type(index) is int for index in indexes)


def _has_head(found: Completion | ChunkHead) -> bool:
    return type(found.id) is str and type(found.created) is int and type(found.model) is str


def _is_documented(choice: _Choice) -> bool:
    is_message = choice.message is not None and choice.message.is_documented
    return type(choice.index) is int and choice.finish_reason in FINISH_REASONS and is_message


def rename_finish_reasons(body: bytes, provider_reasons: Mapping[bytes, bytes]) -> bytes:
    """Replace finish reasons that are not documented: the provider's own by its table, others by what they mean."""
    if not contains_any(body, REASON_MARKS):
        return body
    found = {match[2] for match in _FINISH_REASON.finditer(body)}
    if found <= _FINISH_REASON_BYTES:
        return body
    has_tool_calls = _TOOL_CALLS.search(body) is not None

    def rename(match: re.Match[bytes]) -> bytes:
        reason = provider_reasons.get(match[2], match[2]).decode(errors="replace")
        return match[1] + finish_reason(reason, has_tool_calls).encode() + b'"'

    return _FINISH_REASON.sub(rename, body)


def found_finish_reasons(events: bytes) -> list[str]:
    """The reasons why choices ended, from events in which those of the provider were renamed."""
    return [match[2].decode() for match in _FINISH_REASON.finditer(events)]


def repaired_completion(body: bytes, model: str, usage: Usage, at_seconds: int) -> bytes:
    """The response with every documented field; what the server sent in addition stays."""
    fields: dict[str, Any] = msgspec.json.decode(body)
    fields |= _head(fields, model, at_seconds)
    fields["object"] = COMPLETION
    reported = fields.get("usage")
    fields["usage"] = {**(reported if isinstance(reported, dict) else {}), **usage_fields(usage)}
    for number, choice in enumerate(fields["choices"]):
        message = {**(choice.get("message") or {}), "role": "assistant"}
        message |= text_fields(message, gives_ids=True)
        message.setdefault("content", None)
        choice |= {"index": _index(choice, number), "message": message}
        choice["finish_reason"] = finish_reason(choice.get("finish_reason"), bool(message.get("tool_calls")))
    return msgspec.json.encode(fields)


def repaired_chunk(chunk: Mapping[str, Any], head: Mapping[str, Any], *, has_tool_calls: bool) -> dict[str, Any]:
    """A chunk with every documented field; `head` is what all chunks of the stream have in common."""
    fields = {**chunk, **head, "object": CHUNK}
    choices = []
    for number, choice in enumerate(chunk.get("choices") or ()):
        reason = choice.get("finish_reason")
        reason = finish_reason(reason, has_tool_calls) if reason else None
        delta = choice.get("delta") or {}
        choices.append({**choice, "index": _index(choice, number), "delta": delta, "finish_reason": reason})
    return {**fields, "choices": choices}


def text_fields(message: Mapping[str, Any], *, gives_ids: bool = False) -> dict[str, Any]:
    """The fields of a message, or of a piece of one, that are texts in OpenAI's API and something else here.

    Mistral and others write content as parts, some of which are the model's thoughts; some servers write the arguments
    of tools as objects, and leave out the ids of calls, which `gives_ids` adds.
    """
    fields: dict[str, Any] = {}
    content = message.get("content")
    if isinstance(content, list):
        fields["content"] = "".join(_texts(content, "text"))
        if thoughts := "".join(_texts(content, "thinking")):
            fields["reasoning_content"] = thoughts
    calls = message.get("tool_calls")
    if isinstance(calls, list) and (repaired := [_repaired_call(call, gives_ids) for call in calls]) != calls:
        fields["tool_calls"] = repaired
    return fields


def _texts(parts: list[Any], kind: str) -> Iterator[str]:
    """The texts in the parts of this kind, whose field of the same name is a text or has such parts itself."""
    for part in parts:
        found = part.get(kind) if isinstance(part, dict) and part.get("type") == kind else None
        if isinstance(found, str):
            yield found
        elif isinstance(found, list):
            yield from _texts(found, "text")


def _repaired_call(call: Any, gives_ids: bool) -> Any:
    if not isinstance(call, dict):
        return call
    function = call.get("function")
    if isinstance(function, dict) and not isinstance(function.get("arguments", ""), str | None):
        function = {**function, "arguments": msgspec.json.encode(function["arguments"]).decode()}
        call = {**call, "function": function}
    if gives_ids and not (isinstance(call.get("id"), str) and call["id"]):
        call = {"type": "function", **call, "id": new_call_id()}
    return call


def new_call_id() -> str:
    """An id for a tool call of a server that gives none."""
    return f"call_{secrets.token_hex(12)}"


def _index(choice: Mapping[str, Any], number: int) -> int:
    index = choice.get("index")
    return index if type(index) is int else number


def finish_reason(reason: Any, has_tool_calls: bool) -> str:
    """The documented finish reason for what a server gave."""
    if reason in FINISH_REASONS:
        return str(reason)
    named = _REASONS.get(reason.lower()) if isinstance(reason, str) else None
    return named or ("tool_calls" if has_tool_calls else "stop")


def stream_head(found: Iterable[ChunkHead], model: str, at_seconds: int) -> dict[str, Any]:
    """The fields that all chunks of a stream have in common, from the first of these that has each: Azure's first chunk
    has the names of the others and nothing in them.
    """
    heads = list(found)
    fields = {name: next(filter(None, [getattr(head, name) for head in heads]), None) for name in _COMMON}
    return _head(fields, model, at_seconds)


def _head(fields: Mapping[str, Any], model: str, at_seconds: int) -> dict[str, Any]:
    found_id = fields.get("id")
    created = fields.get("created")
    found_model = fields.get("model")
    return {
        "id": found_id if isinstance(found_id, str) and found_id else f"chatcmpl-{secrets.token_hex(12)}",
        "created": int(created) if isinstance(created, int | float) and created else at_seconds,
        "model": found_model if isinstance(found_model, str) and found_model else model,
    }


def usage_fields(usage: Usage) -> dict[str, int]:
    """The documented fields of `usage`."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.completion_tokens or usage.output,
        "total_tokens": usage.total_tokens or usage.input + usage.output,
    }
