"""The items of a response of the Responses API, as they are encoded: messages, reasoning, and calls of tools."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from penstock.long_bodies.base64_pieces import FileAsBase64

Status = Literal["in_progress", "completed", "incomplete", "failed"]


class TextPart(msgspec.Struct, tag_field="type", tag="output_text"):
    """Text of a message."""

    text: str = ""
    annotations: list[Any] = []
    logprobs: list[Any] = []


class RefusalPart(msgspec.Struct, tag_field="type", tag="refusal"):
    """What a model says instead of text when it refuses."""

    refusal: str = ""


class ReasoningPart(msgspec.Struct, tag_field="type", tag="reasoning_text"):
    """Text of a model's reasoning."""

    text: str = ""


class Message(msgspec.Struct, kw_only=True, eq=False):
    """What a model says."""

    id: str
    type: Literal["message"] = "message"
    status: Status = "completed"
    role: Literal["assistant"] = "assistant"
    content: list[TextPart | RefusalPart] = []


class Reasoning(msgspec.Struct, kw_only=True, eq=False):
    """What a model thinks before it says something."""

    id: str
    type: Literal["reasoning"] = "reasoning"
    status: Status = "completed"
    summary: list[Any] = []
    content: list[ReasoningPart] = []


class FunctionCall(msgspec.Struct, kw_only=True, eq=False):
    """A call of a function of the caller's."""

    id: str
    type: Literal["function_call"] = "function_call"
    status: Status = "completed"
    call_id: str
    name: str
    arguments: str


class ImageCall(msgspec.Struct, kw_only=True, eq=False):
    """A call of the gateway's image tool; what is not known yet is left out."""

    id: str
    type: Literal["image_generation_call"] = "image_generation_call"
    status: Status = "in_progress"
    result: str | FileAsBase64 | None = None  # the image
    revised_prompt: str | msgspec.UnsetType = msgspec.UNSET
    action: str | msgspec.UnsetType = msgspec.UNSET
    size: str | msgspec.UnsetType = msgspec.UNSET
    output_format: str | msgspec.UnsetType = msgspec.UNSET
    metadata: Mapping[str, Any] | msgspec.UnsetType = msgspec.UNSET
    error: Mapping[str, str] | msgspec.UnsetType = msgspec.UNSET


Item = Message | Reasoning | FunctionCall | ImageCall
