"""Translate a call of OpenAI's Responses API into a chat call."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.chat.responses_fields import check_values, refuse
from penstock.errors import InvalidRequest
from penstock.fields import RESPONSES, check_field
from penstock.long_bodies.json_encoding import encoded_size
from penstock.net.checked_urls import names_file
from penstock.schema import Call

IMAGE_TOOL = "image_generation"
# Fields with an effect that needs something stored between two calls, or something that runs after a call.
_STATEFUL = {
    "previous_response_id": "send the whole conversation in `input` instead",
    "conversation": "send the whole conversation in `input` instead",
    "prompt": "send `instructions` and `input` instead of a stored prompt",
    "background": "use `stream`, or wait for the response",
}
# Fields that change nothing about a chat call, or that are translated; all others are passed on unchanged.
_NOT_PASSED_ON = frozenset(
    """n input instructions tools tool_choice text reasoning max_output_tokens metadata store include truncation
    stream_options max_tool_calls prompt_cache_key prompt_cache_retention safety_identifier parallel_tool_calls
    top_logprobs previous_response_id conversation prompt background""".split()
)
# What only a provider that speaks the Responses API itself takes: tools whose input is no JSON.
_CUSTOM = frozenset({"custom", "custom_tool_call", "custom_tool_call_output"})
_REASONING_ID = "rs_"
_ROLES = ("user", "assistant", "system", "developer")
_IMAGE_ACTIONS = ("auto", "generate", "edit")
IMAGE_FUNCTION: dict[str, Any] = {
    "name": IMAGE_TOOL,
    "description": "Generate an image from a description. The image is shown to the user.",
    "parameters": {
        "type": "object",
        "properties": {"prompt": {"type": "string", "description": "What the image shows, in detail."}},
        "required": ["prompt"],
        "additionalProperties": False,
    },
}


class Origin(NamedTuple):
    """The field of the caller's body from which a message of the chat call comes, and that of its content."""

    item: str
    content: str
    number: int = 0  # of the item in `input`

    @property
    def field(self) -> str:
        """The field of the item that has the parts of the message."""
        return self.content.rpartition(".")[2]


class ResponsesRequest(msgspec.Struct, frozen=True):
    """A call of the Responses API: as the caller sent it, and as a chat call."""

    body: dict[str, Any]
    chat: dict[str, Any]
    image_tool: dict[str, Any] | None  # the caller's options for images, if it offers the model this tool
    origins: tuple[Origin, ...] = ()  # where each message of the chat call comes from
    not_in_chat: str | None = None  # the first field that has no translation
    has_images_of_ours: bool = False  # made by the image tool in an earlier turn
    reasoning_bytes: int = 0  # of the items with encrypted reasoning, which chat does not have

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def keeps_items(self) -> bool:
        """Whether the caller's later calls may refer to the items of the response."""
        return self.body.get("store") is not False

    @property
    def may_pass_through(self) -> bool:
        """Whether a provider that speaks the Responses API may get the call as it is.

        Not if it is about images: the gateway's own image models make them, whatever model holds the conversation.
        """
        return self.image_tool is None and not self.has_images_of_ours


def read_responses_request(call: Call) -> ResponsesRequest:
    """Translate the body of a call; raise InvalidRequest for what has no translation."""
    body = call.json
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    body = {name: value for name, value in body.items() if value is not None}
    for name, value in body.items():
        if name in RESPONSES:
            check_field(RESPONSES[name], value)
        if name in _STATEFUL and value:
            message = f"`{name}` is not supported, because this gateway stores no responses: {_STATEFUL[name]}."
            raise InvalidRequest(message, param=name)
    for name in ("model", "input"):
        if name not in body:
            raise InvalidRequest(f"`{name}` is required.", param=name)
    check_values(body, call.size_bytes)
    chat = {name: value for name, value in body.items() if name not in _NOT_PASSED_ON}
    chat["messages"], origins = _messages(body)
    functions, image_tool = _tools(body.get("tools") or [])
    chat |= _tool_fields(body, functions) | _text_fields(body) | _other_fields(body)
    items = body["input"] if isinstance(body["input"], list) else []
    return ResponsesRequest(
        body,
        chat,
        image_tool,
        origins,
        not_in_chat=_not_in_chat(body, items),
        has_images_of_ours=any(item.get("type") == "image_generation_call" for item in items),
        reasoning_bytes=sum(encoded_size(item, call.size_bytes) for item in items if has_encrypted_reasoning(item)),
    )


def is_reference(item: Any) -> bool:
    """Whether an item stands for one of an earlier response, which it names. OpenAI lets callers leave out the type."""
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and item.keys() <= {"id", "type"})


def has_encrypted_reasoning(item: Mapping[str, Any]) -> bool:
    """Whether an item is the reasoning of an earlier turn that its provider can read again."""
    return item.get("type") == "reasoning" and isinstance(item.get("encrypted_content"), str)


def _not_in_chat(body: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> str | None:
    """The first field that only a provider of the Responses API takes."""
    if body.get("truncation") == "auto":
        return "truncation"
    for name, given in (("tools", body.get("tools") or []), ("input", items)):
        for number, fields in enumerate(given):
            if fields.get("type") in _CUSTOM:
                return f"{name}[{number}]"
    return None


def _other_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "max_output_tokens" in body:
        fields["max_tokens"] = body["max_output_tokens"]
    if effort := body.get("reasoning", {}).get("effort"):
        fields["reasoning_effort"] = effort
    if "safety_identifier" in body and "user" not in body:
        fields["user"] = body["safety_identifier"]
    if "message.output_text.logprobs" in body.get("include", ()):
        fields["logprobs"] = True
        fields["top_logprobs"] = body.get("top_logprobs", 0)
    return fields


# ------------------------------------------------------------------------------------------------------------ messages


def _messages(body: Mapping[str, Any]) -> tuple[list[dict[str, Any]], tuple[Origin, ...]]:
    """The messages of the chat call, and where each of them comes from."""
    messages: list[dict[str, Any]] = []
    origins: list[Origin] = []
    if instructions := body.get("instructions"):
        messages.append({"role": "system", "content": instructions})
        origins.append(Origin("instructions", "instructions"))
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    for number, item in enumerate(items):
        where = f"input[{number}]"
        if not isinstance(item, dict):
            refuse(where, "must be an object")
        kind = "item_reference" if is_reference(item) else item.get("type", "message")
        if not isinstance(kind, str) or kind not in _ITEMS:
            known = ", ".join(f"`{name}`" for name in _ITEMS)
            refuse(f"{where}.type", f"must be one of {known}")
        _check_names(item, where)
        _ITEMS[kind](messages, item, where)
        content = "output" if kind.endswith("_output") else "content"
        origin = Origin(where, f"{where}.{content}", number) if given is items else Origin("input", "input")
        origins += [origin] * (len(messages) - len(origins))
    if not messages:
        refuse("input", "must have at least one item")
    return messages, tuple(origins)


def _add_message(messages: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    role = item.get("role")
    if role not in _ROLES:
        refuse(f"{where}.role", f"must be one of {', '.join(f'`{name}`' for name in _ROLES)}")
    content = item.get("content")
    if isinstance(content, list):
        content = _parts(content, f"{where}.content")
        if all(part["type"] == "text" for part in content):
            content = "".join(part["text"] for part in content)
        elif role == "assistant":
            refuse(f"{where}.content", "must be text in messages of the role `assistant`")
    elif not isinstance(content, str):
        refuse(f"{where}.content", "must be a string or an array of parts")
    messages.append({"role": role, "content": content})


def _parts(parts: Sequence[Any], where: str) -> list[dict[str, Any]]:
    translated: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("input_text", "output_text", "text") and isinstance(part.get("text"), str):
            translated.append({"type": "text", "text": part["text"]})
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            translated.append({"type": "text", "text": part["refusal"]})
        elif kind == "input_image" and isinstance(part.get("image_url"), str):
            detail = {"detail": part["detail"]} if part.get("detail") else {}
            translated.append({"type": "image_url", "image_url": {"url": part["image_url"], **detail}})
        else:
            rule = "must be `input_text`, `output_text`, `refusal`, or `input_image` with an `image_url`; no files"
            refuse(f"{where}[{number}]", rule)
        _check_names(part, f"{where}[{number}]")
    return translated


def _check_names(fields: Mapping[str, Any], where: str) -> None:
    """Refuse fields of an item or a part that may name a file, except the one that is checked."""
    for name, value in fields.items():
        is_checked = name == "image_url" and fields.get("type") == "input_image"
        if value is not None and not is_checked and names_file(name):
            refuse(f"{where}.{name}", "cannot be passed on; images are parts of the type `input_image`")


def _add_function_call(messages: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """A call of a tool belongs to the assistant's message before it, as in chat."""
    written = "input" if item["type"] == "custom_tool_call" else "arguments"
    for name in ("call_id", "name", written):
        if not isinstance(item.get(name), str):
            refuse(f"{where}.{name}", "must be a string")
    call = {
        "id": item["call_id"],
        "type": "function",
        "function": {"name": item["name"], "arguments": item[written]},
    }
    if messages and messages[-1]["role"] == "assistant":
        messages[-1].setdefault("tool_calls", []).append(call)
    else:
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})


def _add_function_output(messages: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    output = item.get("output")
    if not isinstance(item.get("call_id"), str):
        refuse(f"{where}.call_id", "must be a string")
    if isinstance(output, list):
        parts = _parts(output, f"{where}.output")
        output = parts if any(part["type"] != "text" for part in parts) else "".join(part["text"] for part in parts)
    elif not isinstance(output, str):
        refuse(f"{where}.output", "must be a string or an array of parts")
    messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": output})


def _add_image_call(messages: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """An image that was made in an earlier turn; the model is only told that there is one."""
    messages.append({"role": "assistant", "content": "[An image was generated and shown to the user.]"})


def _skip(messages: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """Reasoning of earlier turns has no place in a chat call."""


def _skip_reference(messages: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """A reference to an item that is not kept. Reasoning can be left out, and nothing else."""
    if not str(item.get("id")).startswith(_REASONING_ID):
        refuse(where, "refers to an item that this gateway does not keep, or no longer: send the item itself")


_ITEMS: Mapping[str, Callable[[list[dict[str, Any]], Mapping[str, Any], str], None]] = {
    "message": _add_message,
    "function_call": _add_function_call,
    "function_call_output": _add_function_output,
    "custom_tool_call": _add_function_call,
    "custom_tool_call_output": _add_function_output,
    "image_generation_call": _add_image_call,
    "reasoning": _skip,
    "item_reference": _skip_reference,
}

# --------------------------------------------------------------------------------------------------------------- tools


def _tools(tools: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The tools of the chat call, and the caller's options for the image tool."""
    functions: list[dict[str, Any]] = []
    image_tool: dict[str, Any] | None = None
    for number, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind in ("function", "custom"):
            if not isinstance(tool.get("name"), str):
                refuse(f"tools[{number}].name", "must be a string")
            named = {name: tool[name] for name in ("name", "description", "parameters", "strict", "format")
                     if tool.get(name) is not None}  # fmt: skip
            functions.append({"type": "function", "function": named})
        elif kind == IMAGE_TOOL:
            _check_image_tool(tool, f"tools[{number}]")
            image_tool = tool
            functions.append({"type": "function", "function": IMAGE_FUNCTION})
        else:
            rule = f"must be `function`, `custom` or `{IMAGE_TOOL}`: the gateway has no other tools"
            refuse(f"tools[{number}].type", rule)
    return functions, image_tool


def _check_image_tool(tool: Mapping[str, Any], where: str) -> None:
    """Check the options that decide which call is made; those of the image itself are checked with that call."""
    if not isinstance(tool.get("model"), str | None):
        refuse(f"{where}.model", "must be a string")
    if tool.get("action") not in (None, *_IMAGE_ACTIONS):
        refuse(f"{where}.action", f"must be one of {', '.join(f'`{name}`' for name in _IMAGE_ACTIONS)}")
    if not isinstance(tool.get("input_image_mask"), dict | None):
        refuse(f"{where}.input_image_mask", "must be an object with an `image_url`")


def _tool_fields(body: Mapping[str, Any], functions: list[dict[str, Any]]) -> dict[str, Any]:
    if not functions:
        return {}
    choice = body.get("tool_choice", "auto")
    fields: dict[str, Any] = {"tools": functions}
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        listed = choice.get("tools", [])
        if not isinstance(listed, list) or not all(isinstance(tool, dict) for tool in listed):
            refuse("tool_choice.tools", "must be an array of objects")
        allowed = [tool.get("name", tool.get("type")) for tool in listed]
        fields["tools"] = [tool for tool in functions if tool["function"]["name"] in allowed]
        choice = choice.get("mode", "auto")
    elif isinstance(choice, dict):
        name = choice.get("name") if choice.get("type") in ("function", "custom") else choice.get("type")
        if name not in [tool["function"]["name"] for tool in functions]:
            refuse("tool_choice", "must be `none`, `auto`, `required`, or name one of `tools`")
        choice = {"type": "function", "function": {"name": name}}
    fields["tool_choice"] = choice
    if "parallel_tool_calls" in body:
        fields["parallel_tool_calls"] = body["parallel_tool_calls"]
    return fields


def _text_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The format of the text, and how long it is to be."""
    text = body.get("text", {})
    fields: dict[str, Any] = {"verbosity": text["verbosity"]} if text.get("verbosity") else {}
    written = text.get("format") or {"type": "text"}
    if not isinstance(written, dict) or written.get("type") not in ("text", "json_object", "json_schema"):
        refuse("text.format.type", "must be one of `text`, `json_object`, `json_schema`")
    if written["type"] == "json_schema":
        named = {name: written[name] for name in ("name", "description", "schema", "strict")
                 if written.get(name) is not None}  # fmt: skip
        fields["response_format"] = {"type": "json_schema", "json_schema": named}
    elif written["type"] == "json_object":
        fields["response_format"] = {"type": "json_object"}
    return fields
