"""The tool `image_generation` of a Responses call: whether it generates or edits, with which model and options."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.chat.responses_request import IMAGE_FUNCTION, IMAGE_TOOL, ResponsesRequest
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.long_bodies.base64_pieces import STEP

_OPTIONS = ("size", "quality", "output_format", "output_compression", "background", "moderation")
_ACTION = {
    "type": "string",
    "enum": ["edit", "generate"],
    "description": "`edit` changes the images of the conversation, `generate` makes a new image.",
}


class ImageOrder(msgspec.Struct, frozen=True):
    """What the model asked for: the body of an image call, and whether it is an edit."""

    body: dict[str, Any]
    is_edit: bool


class ImageTool:
    """The caller's options for images, and the images of the conversation that can be edited."""

    def __init__(self, gateway: Gateway, request: ResponsesRequest, images: tuple[str, ...]) -> None:
        """`images` are those of the conversation."""
        self._options: Mapping[str, Any] = request.image_tool or {}
        named = self._options.get("model")
        self._model: str = named or default_model(gateway, "image")
        self._images = images
        self._edit_model = _edit_model(gateway, named) if self._images else None
        partial_images = self._options.get("partial_images") if request.stream else 0
        self._stream_fields = {"stream": True, "partial_images": partial_images} if partial_images else {}
        self._action: str = self._options.get("action") or "auto"
        if self._action == "edit" and not (self._images and self._edit_model):
            raise InvalidRequest("`tools` has an `action` `edit`, but there is nothing to edit.", param="tools")

    def chat_tools(self, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tools of the chat call; where there is something to edit, the model may choose to."""
        if self._edit_model is None or self._action != "auto":
            return tools
        parameters = IMAGE_FUNCTION["parameters"]
        offered = {
            **IMAGE_FUNCTION,
            "description": "Generate an image from a description, or edit the images of the conversation. "
            "The image is shown to the user.",
            "parameters": {
                **parameters,
                "properties": {**parameters["properties"], "action": _ACTION},
                "required": ["prompt", "action"],
            },
        }
        return [{**tool, "function": offered} if tool["function"]["name"] == IMAGE_TOOL else tool for tool in tools]

    def order(self, arguments: str) -> ImageOrder:
        """The image call for what the model wrote; raise InvalidRequest if it has no prompt."""
        try:
            written = msgspec.json.decode(arguments)
            prompt = written["prompt"]
        except (msgspec.DecodeError, KeyError, TypeError):
            written = prompt = None
        if not isinstance(prompt, str) or not prompt.strip():
            raise InvalidRequest("The model called the image tool without a prompt.")
        options = {name: self._options[name] for name in _OPTIONS if self._options.get(name) not in (None, "auto")}
        body = {**options, **self._stream_fields, "prompt": prompt, "response_format": "b64_json"}
        chosen = self._action if self._action != "auto" else written.get("action", "generate")
        if chosen != "edit" or self._edit_model is None:
            return ImageOrder({**body, "model": self._model}, is_edit=False)
        mask = (self._options.get("input_image_mask") or {}).get("image_url")
        inputs = {"image": list(self._images), **({"mask": mask} if mask else {})}
        return ImageOrder({"size": "auto", **body, **inputs, "model": self._edit_model}, is_edit=True)


def default_model(gateway: Gateway, task: str) -> str:
    """The model where the caller names none: OpenAI's if it is here, else the first in the list."""
    models = gateway.catalog.listed_ids((task,))
    if not models:
        raise InvalidRequest("This gateway has no image model for the image tool.", param="tools")
    return next((model for model in models if model.startswith("gpt-image")), models[0])


def _edit_model(gateway: Gateway, named: str | None) -> str | None:
    """The named model if it edits, or a default one; None if images cannot be edited."""
    able = gateway.catalog.listed_ids(("edit",))
    if named is not None:
        return named if gateway.catalog.public_id(named) in able else None
    return default_model(gateway, "edit") if able else None


def conversation_images(given: Any) -> tuple[str, ...]:
    """The images of the newest item that has any: those that a user sent, or one that was generated before."""
    for item in reversed(given if isinstance(given, list) else []):
        if item.get("type") == "image_generation_call" and isinstance(item.get("result"), str):
            return (_data_uri(item.get("output_format") or "png", item["result"]),)
        parts = item.get("content") if item.get("role") == "user" else None
        if isinstance(parts, list) and (found := [part["image_url"] for part in parts if "image_url" in part]):
            return tuple(found)
    return ()


def _data_uri(output_format: str, text: str) -> str:
    """The data URI of an image in base64. A long text is copied in steps, between which other threads run."""
    uri = f"data:image/{output_format};base64,"
    for start in range(0, len(text), STEP):
        # This makes a long text longer without a copy, as long as there is no other reference to it.
        uri += text[start : start + STEP]
    return uri
