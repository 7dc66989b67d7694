"""Azure on loopback: OpenAI's API under another path, and the images of AI Foundry, which reject unknown fields."""

import base64
from collections.abc import Mapping
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.openai import OpenAI
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import route

BLOCKED = {
    "error": {
        "code": "contentFilter",
        "message": "Your task failed as a result of our safety system.",
        "inner_error": {"code": "ResponsibleAIPolicyViolation"},
    }
}
FLUX_FIELDS = {"model", "prompt", "width", "height", "seed", "output_format", "safety_tolerance"}
TOKEN_PIXELS = 1024  # of an image of MAI, for each token


def error(code: str, message: str, status: int = 400) -> FakeResponse:
    return FakeResponse({"error": {"code": code, "message": message}}, status)


def made(width: int, height: int, **fields: Any) -> FakeResponse:
    data = base64.b64encode(png(width, height)).decode()
    return FakeResponse({"created": 1_767_225_600, "data": [{"b64_json": data}], **fields})


class Azure(OpenAI):
    credential = ("api-key", KEY)

    @route("POST /openai/v1/images/generations")
    def azure_generate(self, call: Exchange) -> FakeResponse:
        return self.generate(call)

    @route("POST /openai/v1/images/edits")
    def azure_edit(self, call: Exchange) -> FakeResponse:
        return self.edit(call)

    @route("POST /openai/v1/chat/completions")
    def azure_chat(self, call: Exchange) -> FakeResponse:
        return self.chat(call)

    @route("POST /mai/v1/images/generations")
    def mai(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if fields.keys() != {"model", "prompt", "width", "height"}:
            return error("BadRequest", f"Fields: {sorted(fields)}")
        width, height = fields["width"], fields["height"]
        if min(width, height) < 768 or width * height > 1536 * 1536:
            return error("BadRequest", "width and height are out of range")
        tokens = {"num_input_text_tokens": 4, "num_output_tokens": width * height // TOKEN_PIXELS}
        return made(width, height, usage=tokens)

    @route("POST /mai/v1/images/edits")
    def mai_edit(self, call: Exchange) -> FakeResponse:
        if call.request.fields.keys() != {"model", "prompt", "image"}:
            return error("BadRequest", f"Fields: {sorted(call.request.fields)}")
        tokens = {"num_input_text_tokens": 4, "num_input_image_tokens": 300, "num_output_tokens": 1024}
        return made(1024, 1024, usage=tokens)

    @route("POST /providers/blackforestlabs/v1/{model}")
    def flux(self, call: Exchange) -> FakeResponse:
        fields: Mapping[str, Any] = call.request.fields
        inputs = {name for name in fields if name.startswith("input_image")}
        if "api-version=preview" not in call.request.path:
            return error("Missing required query parameter: api-version", "api-version")
        if not {"model", "prompt"} <= fields.keys() <= FLUX_FIELDS | inputs:
            return error("BadRequest", f"Fields: {sorted(fields)}")
        return made(fields["width"], fields["height"])

    def unauthorized(self) -> FakeResponse:
        return error("401", "Access denied due to invalid subscription key or wrong API endpoint.", 401)
