"""OpenAI on loopback: GPT Image, which rejects unknown fields and reports tokens, and chat."""

import base64
from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

KNOWN = set(
    "prompt model n size quality background output_format output_compression moderation complexity stream "
    "partial_images safety_identifier user".split()
)
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
        body = {
            "created": 1_767_225_600,
            "background": "opaque",
            "output_format": "png",
            "quality": "medium",
            "size": f"{width}x{height}",
            "data": [{"b64_json": image}] * count,
            "usage": usage(len(given), count * TOKENS[quality]),
        }
        return FakeResponse(body, headers={"x-request-id": self.new_id("req_")})

    def unauthorized(self) -> FakeResponse:
        return refusal("Incorrect API key provided.", "invalid_api_key", 401)


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
