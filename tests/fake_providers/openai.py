"""OpenAI on loopback: GPT Image, which rejects unknown fields and reports tokens, and chat."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from openai.types import ImageEditStreamEvent, ImageGenStreamEvent
from pydantic import TypeAdapter

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

KNOWN = set(
    "prompt model n size quality background output_format output_compression moderation complexity stream "
    "partial_images safety_identifier user".split()
)
COLOURS = ("silver", "gray", "navy")  # of unfinished images
PARTIAL_TOKENS = 100
_EVENT: TypeAdapter[Any] = TypeAdapter(ImageGenStreamEvent | ImageEditStreamEvent)
TOKENS = {"low": 196, "medium": 1756, "high": 7024, "auto": 1756}


class OpenAI(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/images/generations")
    def generate(self, call: Exchange) -> FakeResponse:
        return self._images(call, KNOWN)

    @route("POST /v1/images/edits")
    def edit(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if not fields.get("image"):
            return refusal("Missing required parameter: 'image'.", "missing_required_parameter")
        return self._images(call, KNOWN | {"image", "mask", "input_fidelity"})

    @route("POST /v1/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if "max_tokens" in fields:
            words = "Unsupported parameter: 'max_tokens' is not supported with this model."
            return refusal(f"{words} Use 'max_completion_tokens' instead.", "unsupported_parameter")
        return chat.completion(fields, self.new_id("chatcmpl-"))[0]

    def _images(self, call: Exchange, known: set[str]) -> FakeResponse:
        fields = call.request.fields
        if unknown := sorted(fields.keys() - known):
            return refusal(f"Unknown parameter: '{unknown[0]}'.", "unknown_parameter")
        quality = fields.get("quality", "auto")
        if quality not in TOKENS:
            return refusal(f"Invalid value: '{quality}'.", "invalid_value")
        count, given = int(fields.get("n", 1)), fields.get("image", [])
        width, height = (int(side) for side in fields.get("size", "1024x1024").split("x"))
        image = base64.b64encode(png(width, height)).decode()
        shown = {"background": "opaque", "output_format": "png", "quality": "medium", "size": f"{width}x{height}"}
        partial = int(fields.get("partial_images", 0))
        used = usage(len(given), count * TOKENS[quality] + partial * PARTIAL_TOKENS)
        if fields.get("stream") in (True, "true"):
            name = "image_edit" if given else "image_generation"
            return FakeResponse(events=list(_image_events(name, partial, {**shown, "created_at": 1_767_225_600}, used)))
        if "partial_images" in fields:
            return refusal("'partial_images' requires 'stream'.", "invalid_value")
        body = {"created": 1_767_225_600, **shown, "data": [{"b64_json": image}] * count, "usage": used}
        return FakeResponse(body, headers={"x-request-id": self.new_id("req_")})

    def unauthorized(self) -> FakeResponse:
        return refusal("Incorrect API key provided.", "invalid_api_key", 401)


def _image_events(name: str, partial: int, shown: dict[str, Any], used: dict[str, Any]) -> Iterator[bytes]:
    """The events of one image, checked with the types of OpenAI's client; unfinished images have other colours."""
    width, height = (int(side) for side in shown["size"].split("x"))

    def event(kind: str, colour: str, **more: Any) -> bytes:
        image = base64.b64encode(png(width, height, colour)).decode()
        fields = {"type": f"{name}.{kind}", "b64_json": image, **shown, **more}
        _EVENT.validate_python(fields)
        return f"event: {fields['type']}\ndata: {json.dumps(fields)}".encode()

    for number in range(partial):
        yield event("partial_image", COLOURS[number], partial_image_index=number)
    yield event("completed", "teal", usage=used)


def usage(images: int, output: int) -> dict[str, Any]:
    return {
        "input_tokens": 10 + 300 * images,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 300 * images},
        "output_tokens": output,
        "output_tokens_details": {"image_tokens": output, "text_tokens": 0},
        "total_tokens": 10 + 300 * images + output,
    }


def refusal(message: str, code: str, status: int = 400, kind: str = "invalid_request_error") -> FakeResponse:
    return FakeResponse({"error": {"message": message, "type": kind, "param": None, "code": code}}, status)
