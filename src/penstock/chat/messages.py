"""Check the messages of a chat call, and find the text, the images and the sounds in them."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import msgspec

from penstock.errors import InvalidRequest
from penstock.long_bodies.json_encoding import encoded_size
from penstock.net.checked_urls import check_media_url, egress_rules, names_file
from penstock.settings import Settings

_ROLES = ("system", "user", "assistant", "tool")
_ACCEPTED_ROLES = (*_ROLES, "developer", "function")  # OpenAI's clients also send the last two
_DATA_URI = re.compile(r"data:image/(?:png|jpe?g|webp|gif|avif|heic|heif);base64,", re.IGNORECASE)


class ChatImage(msgspec.Struct, frozen=True):
    """An image in a message: a checked URL, or a data URI."""

    message: int
    part: int
    source: str

    @property
    def param(self) -> str:
        return _image_param(self.message, self.part)

    @property
    def is_url(self) -> bool:
        return not _is_data_uri(self.source)


class ChatSound(msgspec.Struct, frozen=True):
    """A sound in a message, in base64, and how long it is once it was measured."""

    message: int
    part: int
    data: str
    format: str
    seconds: float = 0

    @property
    def param(self) -> str:
        return f"messages[{self.message}].content[{self.part}].input_audio.data"


class Content(NamedTuple):
    """What messages have."""

    text_bytes: int
    images: list[ChatImage]
    sounds: list[ChatSound]


def check_messages(messages: list[Any], settings: Settings, size_bytes: int) -> tuple[Content, bool]:
    """Return what all messages have, and whether the content of each is a string; raise InvalidRequest for a malformed
    one.

    `size_bytes` are those of the whole body, here and below.
    """
    if not messages:
        raise InvalidRequest("`messages` must have at least one message.", param="messages")
    text_bytes = 0
    images: list[ChatImage] = []
    sounds: list[ChatSound] = []
    are_texts = True
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InvalidRequest(f"`messages[{number}]` must be an object.", param=f"messages[{number}]")
        content = message.get("content")
        role: Any = message.get("role")
        if role not in _ACCEPTED_ROLES:
            _refuse(number, "role", f"must be one of {', '.join(f'`{name}`' for name in _ROLES)}")
        if isinstance(content, str):
            text_bytes += len(content) if content.isascii() else len(content.encode())
        elif isinstance(content, list):
            are_texts = False
            found = _check_parts(number, role, content, settings, size_bytes)
            text_bytes += found.text_bytes
            images += found.images
            sounds += found.sounds
        elif content is None and role == "assistant":
            are_texts = False
        else:
            _refuse(number, "content", "must be a string or an array of parts, or null in assistant messages")
        if len(message) > 2 or content is None:
            text_bytes += _check_other_fields(number, role, message, size_bytes)
    return Content(text_bytes, images, sounds), are_texts


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _check_other_fields(number: int, role: str, message: Mapping[str, Any], size_bytes: int) -> int:
    """Check `name`, `tool_calls` and `tool_call_id`; return the bytes of all fields but `role` and `content`."""
    if not isinstance(message.get("name"), str | None):
        _refuse(number, "name", "must be a string")
    if message.get("audio") is not None:
        _refuse(number, "audio", "names speech that a provider stores; send its `transcript` as `content` instead")
    tool_call_id = message.get("tool_call_id")
    if tool_call_id is not None and not (role == "tool" and isinstance(tool_call_id, str)):
        _refuse(number, "tool_call_id", "must be a string, in tool messages only")
    tool_calls = message.get("tool_calls")
    if tool_calls is not None:
        is_list = isinstance(tool_calls, list) and all(isinstance(tool_call, dict) for tool_call in tool_calls)
        if role != "assistant" or not is_list:
            _refuse(number, "tool_calls", "must be an array of objects, in assistant messages only")
    return encoded_size({name: value for name, value in message.items() if name not in ("role", "content")}, size_bytes)


def _check_parts(number: int, role: str, parts: list[Any], settings: Settings, size_bytes: int) -> Content:
    """Return what the parts of one message have."""
    text_bytes = 0
    images = []
    sounds = []
    for index, part in enumerate(parts):
        where = f"content[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            if not isinstance(part.get("text"), str):
                _refuse(number, f"{where}.text", "must be a string")
            text_bytes += _text_size(part["text"])
            if len(part) > 2:
                others = {name: value for name, value in part.items() if name != "text"}
                text_bytes += encoded_size(others, size_bytes)
        elif kind == "image_url":
            images.append(_check_image(number, index, part.get("image_url"), settings))
            text_bytes += encoded_size({**part, "image_url": {**part["image_url"], "url": ""}}, size_bytes)
        elif kind == "input_audio" and role == "user":
            sounds.append(_check_sound(number, index, part.get("input_audio")))
            text_bytes += encoded_size({**part, "input_audio": None}, size_bytes)
        elif kind == "refusal" and role == "assistant":
            if not isinstance(part.get("refusal"), str):
                _refuse(number, f"{where}.refusal", "must be a string")
            text_bytes += encoded_size(part, size_bytes)
        else:
            _refuse(number, f"{where}.type", "must be `text`, `image_url` or, from the user, `input_audio`")
        if len(part) > 2:
            _check_other_part_fields(number, where, part)
    return Content(text_bytes, images, sounds)


def _check_image(number: int, index: int, image: Any, settings: Settings) -> ChatImage:
    url = image.get("url") if isinstance(image, dict) else None
    if not isinstance(url, str):
        _refuse(number, f"content[{index}].image_url.url", "must be an HTTPS URL or a base64 data URI")
    return ChatImage(number, index, _check_source(url, _image_param(number, index), settings))


def _check_sound(number: int, index: int, sound: Any) -> ChatSound:
    where = f"content[{index}].input_audio"
    if not isinstance(sound, dict) or not isinstance(sound.get("data"), str) or not sound["data"]:
        _refuse(number, f"{where}.data", "must be a sound in base64")
    if not isinstance(sound.get("format"), str):
        _refuse(number, f"{where}.format", "must be the format of the sound, such as `wav`")
    if other := next((name for name in sound if name not in ("data", "format")), None):
        _refuse(number, f"{where}.{other}", "is not a field of a sound")
    return ChatSound(number, index, sound["data"], sound["format"])


def _check_other_part_fields(number: int, where: str, part: Mapping[str, Any]) -> None:
    for name in part:
        if name != part["type"] and names_file(name):
            _refuse(number, f"{where}.{name}", f"is not a field of a part of type `{part['type']}`")


def lacks_text(message: Mapping[str, Any]) -> bool:
    """Whether a checked message is a model's answer as OpenAI writes it if there is no text: a refusal, or nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return False
    if content is None:
        return not (message.get("tool_calls") or message.get("function_call"))
    return any(part["type"] == "refusal" for part in content)


def with_text(message: dict[str, Any]) -> dict[str, Any]:
    """The message as every provider takes it: refusals are its text."""
    if not lacks_text(message):
        return message
    content = message.get("content")
    if content is None:
        refusal = message.get("refusal")
        others = {name: value for name, value in message.items() if name != "refusal"}
        return {**others, "content": refusal if isinstance(refusal, str) else ""}
    parts = [{"type": "text", "text": part["refusal"]} if part["type"] == "refusal" else part for part in content]
    return {**message, "content": parts}


def _check_source(source: str, param: str, settings: Settings) -> str:
    """Return the data URI or the checked URL of an image; raise InvalidRequest for others, or for one too large."""
    if not _is_data_uri(source):
        return check_media_url(source, param, egress_rules(settings))
    head = _DATA_URI.match(source)
    if head is None:
        raise InvalidRequest(
            f"`{param}` must be a base64 data URI of a PNG, JPEG, WebP, GIF, AVIF or HEIC image.", param=param
        )
    if (len(source) - head.end()) // 4 * 3 > settings.image_bytes + 2:  # with up to two bytes of padding
        raise InvalidRequest(f"`{param}` may have at most {settings.image_bytes} bytes.", param=param)
    return source


def _is_data_uri(source: str) -> bool:
    return source[:5].lower() == "data:"


def _image_param(message: int, part: int) -> str:
    return f"messages[{message}].content[{part}].image_url.url"


def _refuse(number: int, field: str, rule: str) -> NoReturn:
    where = f"messages[{number}].{field}"
    raise InvalidRequest(f"`{where}` {rule}.", param=where)
