"""Check a chat call: its parameters, messages and tools, or say what is wrong."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from penstock.errors import InvalidRequest
from penstock.fields import CHAT, Field, check_field
from penstock.providers.spec import Model
from penstock.schema import Call
from penstock.upstream import translate

_ROLES = ("system", "user", "assistant", "tool")
_OPENAI_ROLES = (*_ROLES, "developer", "function")  # what OpenAI's own clients also send
_CHOICES = ("none", "auto", "required")
_MOST_STOPS = 4
_OURS = ("session_id",)  # nobody else's business
# Not in the interface, and handed on; but both say how much may be written, so they are read like what is.
_AMOUNTS = (
    Field(name="max_completion_tokens", types=("integer",), about="OpenAI's newer name of `max_tokens`.", low=1),
    Field(name="n", types=("integer",), about="How many answers.", low=1, high=128),
)
_KNOWN = {**CHAT, **{row.name: row for row in _AMOUNTS}}
# Tokens cannot be counted without the model's own vocabulary; a ceiling can: no tokenizer makes more of text than this.
_BYTES_PER_TOKEN = 2
_TOKENS_PER_PICTURE = 3000
_TOKENS_PER_MESSAGE = 16


class ChatRequest(msgspec.Struct, frozen=True):
    """A valid chat call, still in the caller's own words."""

    model: str
    body: dict[str, Any]
    extras: dict[str, Any]  # of the body, what the interface does not name
    stream: bool
    wants_usage: bool
    has_images: bool
    input_ceiling: int  # tokens
    output_ceiling: int | None  # tokens of one answer, when the caller set any
    answers: int

    def output_tokens(self, usual: int) -> int:
        """The most that may be written; `usual` is for callers who set no limit."""
        return self.answers * (self.output_ceiling or usual)


def talk(call: Call) -> ChatRequest:
    body = call.json
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    extras: dict[str, Any] = {}
    for name, value in body.items():
        if name not in CHAT:
            extras[name] = value
        if value is not None:
            if name in _KNOWN:
                check_field(_KNOWN[name], value)
            if name in _RULES:
                _RULES[name](body, value)
    for name in ("model", "messages"):
        if body.get(name) is None:
            raise InvalidRequest(f"`{name}` is required.", param=name)
    text_bytes, pictures = _messages(body["messages"])
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if body.get(name)]
    return ChatRequest(
        model=body["model"],
        body=body,
        extras=extras,
        stream=bool(body.get("stream")),
        wants_usage=bool(body.get("stream_options")) and body["stream_options"].get("include_usage") is True,
        has_images=pictures > 0,
        input_ceiling=_ceiling(body, text_bytes, pictures),
        output_ceiling=max(limits, default=None),
        answers=body.get("n") or 1,
    )


def check(said: ChatRequest, model: Model) -> None:
    """What this model cannot do is said before it is asked. A field at the interface's default asks for nothing."""
    if said.extras:
        translate.check_extras(model.op, said.extras)
    for row in model.op.params:
        value = said.body.get(row.name)
        if value is not None and value != (CHAT[row.name].default if row.name in CHAT else None):
            translate.check_row(model, row, value)


def told(said: ChatRequest, model: Model) -> dict[str, Any]:
    """The caller's body as the provider reads it: its table speaks only of what differs from OpenAI's."""
    fields = {name: value for name, value in said.body.items() if name not in _OURS}
    reports_usage = True
    for row in model.op.params:
        value = fields.pop(row.name, None) if row.handling != "fixed" else row.value
        reports_usage &= row.name != "stream_options"
        if value is not None and row.convert:
            value = row.convert(value)
        if value is not None and row.to:
            name, _, inner = row.to[0].partition(".")
            fields[name] = {**_table(fields.get(name)), inner: value} if inner else value
    if said.stream and reports_usage:
        fields["stream_options"] = {**(said.body.get("stream_options") or {}), "include_usage": True}
    fields["model"] = model.upstream
    return fields


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _ceiling(body: Mapping[str, Any], text_bytes: int, pictures: int) -> int:
    tools = _json_size(body["tools"]) if body.get("tools") else 0
    words = (text_bytes + tools) // _BYTES_PER_TOKEN
    return words + pictures * _TOKENS_PER_PICTURE + len(body["messages"]) * _TOKENS_PER_MESSAGE


# ---------------------------------------------------------------------------------------------------------- parameters


def _check_stop(body: Mapping[str, Any], stop: Any) -> None:
    if isinstance(stop, list) and not (1 <= len(stop) <= _MOST_STOPS and all(isinstance(one, str) for one in stop)):
        raise InvalidRequest(f"`stop` must be a string or an array of 1 to {_MOST_STOPS} strings.", param="stop")


def _check_top_logprobs(body: Mapping[str, Any], top: Any) -> None:
    if body.get("logprobs") is not True:
        raise InvalidRequest("`top_logprobs` needs `logprobs` to be true.", param="top_logprobs")


def _check_response_format(body: Mapping[str, Any], form: Mapping[str, Any]) -> None:
    if not isinstance(form.get("type"), str):
        raise InvalidRequest("`response_format` must have a `type`, such as `json_object`.", param="response_format")


def _check_stream_options(body: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    if not body.get("stream"):
        raise InvalidRequest("`stream_options` needs `stream` to be true.", param="stream_options")
    if not isinstance(options.get("include_usage", False), bool):
        raise InvalidRequest("`stream_options.include_usage` must be a boolean.", param="stream_options.include_usage")


def _check_tools(body: Mapping[str, Any], tools: list[Any]) -> None:
    for number, tool in enumerate(tools):
        where = f"tools[{number}]"
        if not isinstance(tool, dict) or tool.get("type") != "function" or not isinstance(tool.get("function"), dict):
            raise InvalidRequest(f"`{where}` must have `type` `function` and a `function`.", param=where)
        _check_function(f"{where}.function", tool["function"])


def _check_function(where: str, function: Mapping[str, Any]) -> None:
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"`{where}.name` is required and must be a string.", param=f"{where}.name")
    for field, kind, words in _FUNCTION:
        if not isinstance(function.get(field), kind | None):
            raise InvalidRequest(f"`{where}.{field}` must be {words}.", param=f"{where}.{field}")


_FUNCTION = (("description", str, "a string"), ("parameters", dict, "a JSON Schema object"))


def _check_choice(body: Mapping[str, Any], choice: Any) -> None:
    if isinstance(choice, str):
        good = choice in _CHOICES
    else:
        function = choice.get("function")
        good = choice.get("type") == "function" and isinstance(function, dict) and isinstance(function.get("name"), str)
    if not good:
        raise InvalidRequest(
            "`tool_choice` must be `none`, `auto`, `required`, or an object with `type` `function` and a function's "
            "`name`.",
            param="tool_choice",
        )


# What the tables cannot say of a field that is there.
_RULES: Mapping[str, Callable[[Mapping[str, Any], Any], None]] = {
    "stop": _check_stop,
    "top_logprobs": _check_top_logprobs,
    "tools": _check_tools,
    "tool_choice": _check_choice,
    "response_format": _check_response_format,
    "stream_options": _check_stream_options,
}

# ------------------------------------------------------------------------------------------------------------ messages


def _messages(messages: list[Any]) -> tuple[int, int]:
    """Bytes of text and number of pictures in a conversation that is well formed."""
    if not messages:
        raise InvalidRequest("`messages` must have at least one message.", param="messages")
    text_bytes = pictures = 0
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InvalidRequest(f"`messages[{number}]` must be an object.", param=f"messages[{number}]")
        content = message.get("content")
        role: Any = message.get("role")
        if role not in _OPENAI_ROLES:
            _refuse(number, "role", f"must be one of {', '.join(f'`{one}`' for one in _ROLES)}")
        if isinstance(content, str):
            text_bytes += _size(content)
        elif isinstance(content, list):
            more, seen = _parts(number, content)
            text_bytes += more
            pictures += seen
        elif content is not None or not (role == "assistant" and message.get("tool_calls")):
            _refuse(number, "content", "must be a string, an array of parts, or null beside tool calls")
        if len(message) > 2 or content is None:
            text_bytes += _check_extras(number, role, message)
    return text_bytes, pictures


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _json_size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _check_extras(number: int, role: str, message: Mapping[str, Any]) -> int:
    """`name`, `tool_calls` and `tool_call_id`, where they belong; the bytes of the calls."""
    if not isinstance(message.get("name"), str | None):
        _refuse(number, "name", "must be a string")
    answered, calls = message.get("tool_call_id"), message.get("tool_calls")
    if answered is not None and not (role == "tool" and isinstance(answered, str)):
        _refuse(number, "tool_call_id", "must be a string, in tool messages only")
    if calls is None:
        return 0
    if role != "assistant" or not isinstance(calls, list) or not all(isinstance(one, dict) for one in calls):
        _refuse(number, "tool_calls", "must be an array of objects, in assistant messages only")
    return _json_size(calls)


def _parts(number: int, parts: list[Any]) -> tuple[int, int]:
    text_bytes = pictures = 0
    for index, part in enumerate(parts):
        where = f"content[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            if not isinstance(part.get("text"), str):
                _refuse(number, f"{where}.text", "must be a string")
            text_bytes += _size(part["text"])
        elif kind == "image_url":
            picture = part.get("image_url")
            url = picture.get("url") if isinstance(picture, dict) else None
            if not isinstance(url, str) or not url.startswith(("https://", "data:image/")):
                _refuse(number, f"{where}.image_url.url", "must be an HTTPS address or a base64 data URI")
            pictures += 1
        else:
            _refuse(number, f"{where}.type", "must be `text` or `image_url`")
    return text_bytes, pictures


def _refuse(number: int, field: str, rule: str) -> NoReturn:
    where = f"messages[{number}].{field}"
    raise InvalidRequest(f"`{where}` {rule}.", param=where)
