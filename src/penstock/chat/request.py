"""Check a chat call: its parameters and tools."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.chat.messages import ChatImage, ChatSound, check_messages, lacks_text, with_text
from penstock.chat.responses_request import ResponsesRequest
from penstock.errors import InvalidRequest
from penstock.fields import CHAT, Field, check_field
from penstock.long_bodies.json_encoding import encoded_size
from penstock.schema import Call
from penstock.settings import Settings
from penstock.upstream.extra_fields import check_extras_size

_TOOL_CHOICES = ("none", "auto", "required")
_MAX_STOPS = 4
# Not in the interface and passed through, but checked because both limit the output.
_EXTRA_FIELDS = (
    Field(name="max_completion_tokens", types=("integer",), about="OpenAI's newer name of `max_tokens`.", low=1),
    Field(name="n", types=("integer",), about="Number of choices.", low=1, high=128),
)
_FIELDS = {**CHAT, **{row.name: row for row in _EXTRA_FIELDS}}
# Values that OpenAI's clients send and that mean the same as no value.
_NO_EFFECT: Mapping[str, tuple[Any, ...]] = {
    "service_tier": ("auto", "default"),
    "stop": ([],),
    "modalities": (["text"],),
    "functions": ([],),
}
# A guess of the answer, which makes it come sooner and nothing else. Wrong guesses are billed beyond any limit of
# tokens, so it is not passed on.
_PREDICTION = "prediction"
_MODALITIES = "modalities"
_SPOKEN = (_MODALITIES, "audio")  # not in the interface, and passed on to models whose speech has a price
_MODALITY_NAMES = ("text", "audio")
TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
# An upper bound of tokens, because counting them exactly needs the tokenizer of each model. A tokenizer makes at most
# one token of each byte of a text, and of rare letters and digits it does. Providers add to that:
_MAX_TOKENS_PER_MESSAGE = 16  # for its role and delimiters
_MAX_TOKENS_FOR_TOOLS = 1000  # to tell the model how tools are called
_IN_PROMPT = frozenset({"tools", "functions", "response_format"})  # what providers put there, beside the messages


class ChatRequest(msgspec.Struct, frozen=True):
    """A checked chat call with its body as the caller sent it, but URLs of images, and messages that have a refusal in
    place of text, are written in one form.
    """

    model: str
    body: dict[str, Any]
    extras: dict[str, Any]  # fields of the body that the interface does not name
    stream: bool
    wants_usage: bool
    images: tuple[ChatImage, ...]
    max_text_tokens: int  # the most that everything in the body but its images can be
    prompt_bytes: int  # of the text that a model reads in any case
    token_limit: int | None  # the caller's limit for one choice
    choices: int
    size_bytes: int  # about, of the body
    responses: ResponsesRequest | None = None  # the same call as its caller wrote it, in the Responses API
    sounds: tuple[ChatSound, ...] = ()
    speaks: bool = False  # whether the model is asked to speak its answer

    @property
    def sound_seconds(self) -> float:
        return sum(sound.seconds for sound in self.sounds)

    def max_output_tokens(self, default: int) -> int:
        """Return how many tokens all choices together can have; the default is for callers who set no limit."""
        return self.choices * (self.token_limit or default)


def read_chat_request(call: Call, settings: Settings, responses: ResponsesRequest | None = None) -> ChatRequest:
    """Check the body of a call; raise InvalidRequest for the first fault.

    With `responses`, the body is the translation of this call of the Responses API.
    """
    body = call.json
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    body, extras = _check_fields(body)
    for name in ("model", "messages"):
        if body.get(name) is None:
            raise InvalidRequest(f"`{name}` is required.", param=name)
    size_bytes = call.size_bytes
    if extras:
        check_extras_size(extras, size_bytes)
    content, are_texts = check_messages(body["messages"], settings, size_bytes)
    text_bytes, images = content.text_bytes, content.images
    if not are_texts and any(map(lacks_text, body["messages"])):
        body = {**body, "messages": [with_text(message) for message in body["messages"]]}
    prompt_bytes = text_bytes
    if not _IN_PROMPT.isdisjoint(body):
        prompt_bytes += sum(encoded_size(body[name], size_bytes) for name in _IN_PROMPT if body.get(name))
    return ChatRequest(
        model=body["model"],
        body=_with_images(body, images) if images else body,
        extras=extras,
        stream=bool(body.get("stream")),
        wants_usage=bool(body.get("stream_options")) and body["stream_options"].get("include_usage") is True,
        images=tuple(images),
        max_text_tokens=_max_text_tokens(body, text_bytes, size_bytes)
        + (responses.reasoning_bytes if responses else 0),
        prompt_bytes=prompt_bytes,
        token_limit=_token_limit(body),
        choices=body.get("n") or 1,
        size_bytes=size_bytes,
        responses=responses,
        sounds=tuple(content.sounds),
        speaks=body.get(_MODALITIES) is not None,
    )


def _check_fields(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check each field by itself; return the body without values that have no effect, and those of its fields that the
    interface does not name.
    """
    if isinstance(body.get(_PREDICTION), dict):
        body = {name: value for name, value in body.items() if name != _PREDICTION}
    if not _NO_EFFECT.keys().isdisjoint(body):
        body = {name: value for name, value in body.items() if name not in _NO_EFFECT or value not in _NO_EFFECT[name]}
    extras: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    for name, value in body.items():
        if value is None:  # null is the same as no field
            continue
        if name not in CHAT and name not in _SPOKEN:
            extras[name] = value
        if name in _FIELDS and (checked := check_field(_FIELDS[name], value)) is not value:
            changed[name] = checked
        if name in _RULES:
            _RULES[name](body, value)
    if changed:
        body = {**body, **changed}
        extras |= {name: value for name, value in changed.items() if name in extras}
    return body, extras


def _token_limit(body: Mapping[str, Any]) -> int | None:
    """The lower of the caller's limits."""
    older: int | None = body.get("max_tokens")
    newer: int | None = body.get("max_completion_tokens")
    return min(older, newer) if older and newer else older or newer or None


def with_images(chat: ChatRequest, images: Sequence[ChatImage]) -> ChatRequest:
    """Return the call with other sources of some of its images."""
    size_bytes = chat.size_bytes + sum(len(image.source) for image in images)
    return msgspec.structs.replace(chat, body=_with_images(chat.body, images), size_bytes=size_bytes)


def with_sounds(chat: ChatRequest, sounds: Sequence[ChatSound]) -> ChatRequest:
    """Return the call with these sounds, which were measured and may have another format than before."""
    size_bytes = chat.size_bytes + sum(len(sound.data) for sound in sounds)
    body = _with_sounds(chat.body, sounds)
    return msgspec.structs.replace(chat, body=body, sounds=tuple(sounds), size_bytes=size_bytes)


def _with_images(body: Mapping[str, Any], images: Sequence[ChatImage]) -> dict[str, Any]:
    return _with_parts(body, {(image.message, image.part): ("image_url", {"url": image.source}) for image in images})


def _with_sounds(body: Mapping[str, Any], sounds: Sequence[ChatSound]) -> dict[str, Any]:
    changes = {
        (sound.message, sound.part): ("input_audio", {"data": sound.data, "format": sound.format}) for sound in sounds
    }
    return _with_parts(body, changes)


def _with_parts(
    body: Mapping[str, Any], changes: Mapping[tuple[int, int], tuple[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """The body with other values in some parts of its messages: by message and part, a name and the fields there."""
    messages = list(body["messages"])
    copied: set[int] = set()
    for (number, index), (name, fields) in changes.items():
        if number not in copied:
            copied.add(number)
            messages[number] = {**messages[number], "content": list(messages[number]["content"])}
        part = messages[number]["content"][index]
        messages[number]["content"][index] = {**part, name: {**part[name], **fields}}
    return {**body, "messages": messages}


def _max_text_tokens(body: Mapping[str, Any], text_bytes: int, size_bytes: int) -> int:
    """Return the most tokens that the body without its images can be; `text_bytes` are those of the messages."""
    other_bytes = encoded_size({name: value for name, value in body.items() if name != "messages"}, size_bytes)
    tools_tokens = _MAX_TOKENS_FOR_TOOLS if body.get("tools") or body.get("functions") else 0
    return text_bytes + other_bytes + tools_tokens + len(body["messages"]) * _MAX_TOKENS_PER_MESSAGE


# ---------------------------------------------------------------------------------------------------------- parameters


def _check_stop(body: Mapping[str, Any], stop: Any) -> None:
    if isinstance(stop, list) and not (1 <= len(stop) <= _MAX_STOPS and all(isinstance(text, str) for text in stop)):
        raise InvalidRequest(f"`stop` must be a string or an array of 1 to {_MAX_STOPS} strings.", param="stop")


def _check_top_logprobs(body: Mapping[str, Any], top: Any) -> None:
    if body.get("logprobs") is not True:
        raise InvalidRequest("`top_logprobs` needs `logprobs` to be true.", param="top_logprobs")


def _check_response_format(body: Mapping[str, Any], response_format: Mapping[str, Any]) -> None:
    if not isinstance(response_format.get("type"), str):
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
    for field, kind, rule in _FUNCTION_FIELDS:
        if not isinstance(function.get(field), kind | None):
            raise InvalidRequest(f"`{where}.{field}` must be {rule}.", param=f"{where}.{field}")


_FUNCTION_FIELDS = (("description", str, "a string"), ("parameters", dict, "a JSON Schema object"))


def _check_tool_choice(body: Mapping[str, Any], choice: Any) -> None:
    if isinstance(choice, str):
        is_valid = choice in _TOOL_CHOICES
    else:
        function = choice.get("function")
        is_valid = (
            choice.get("type") == "function" and isinstance(function, dict) and isinstance(function.get("name"), str)
        )
    if not is_valid:
        raise InvalidRequest(
            "`tool_choice` must be `none`, `auto`, `required`, or an object with `type` `function` and a function's "
            "`name`.",
            param="tool_choice",
        )
    names = _function_names(body)
    if choice == "required" and not names:
        raise InvalidRequest("`tool_choice` is `required`, which needs `tools`.", param="tool_choice")
    if isinstance(choice, dict) and choice["function"]["name"] not in names:
        name = choice["function"]["name"][:64]
        raise InvalidRequest(
            f"`tool_choice` names the function `{name}`, which `tools` does not have.", param="tool_choice"
        )


def _function_names(body: Mapping[str, Any]) -> list[Any]:
    """The names of the functions in `tools`, which may not be checked yet."""
    tools = body.get("tools")
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return [function.get("name") for function in functions if isinstance(function, dict)]


def _check_modalities(body: Mapping[str, Any], modalities: Any) -> None:
    is_list = isinstance(modalities, list) and all(name in _MODALITY_NAMES for name in modalities)
    if not is_list or "audio" not in modalities:
        raise InvalidRequest('`modalities` must be `["text"]` or `["text", "audio"]`.', param=_MODALITIES)


def _check_audio(body: Mapping[str, Any], audio: Any) -> None:
    if body.get(_MODALITIES) is None:
        raise InvalidRequest('`audio` needs `modalities` to be `["text", "audio"]`.', param="audio")
    if not isinstance(audio, dict):
        raise InvalidRequest("`audio` must be an object with a `voice` and a `format`, such as `wav`.", param="audio")
    if other := next((name for name in audio if name not in ("voice", "format")), None):
        raise InvalidRequest(f"`audio.{other}` is not a field of `audio`.", param=f"audio.{other}")


# Checks of single fields that the parameter tables cannot express.
_RULES: Mapping[str, Callable[[Mapping[str, Any], Any], None]] = {
    "stop": _check_stop,
    "top_logprobs": _check_top_logprobs,
    "tools": _check_tools,
    "tool_choice": _check_tool_choice,
    "response_format": _check_response_format,
    "stream_options": _check_stream_options,
    _MODALITIES: _check_modalities,
    "audio": _check_audio,
}
