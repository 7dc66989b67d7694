"""Meta on loopback: images like OpenAI's; edits take their images in JSON."""

import base64

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route


class Meta(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/images/{task}")
    def images(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if call.params["task"] == "edits" and not fields.get("images"):
            return error(400, "`images` is required.", "invalid_value")
        if "nude" in fields["prompt"]:
            return error(400, "The request was blocked.", "moderation_blocked")
        image = base64.b64encode(png(96, 64)).decode()
        data = [{"b64_json": image, "revised_prompt": "A pear on a table."}] * fields.get("n", 1)
        return FakeResponse({"created": 1763175600, "background": "opaque", "output_format": "png", "data": data})

    def unauthorized(self) -> FakeResponse:
        return error(401, "Invalid API key.", "invalid_api_key")


def error(status: int, message: str, code: str) -> FakeResponse:
    return FakeResponse({"error": {"message": message, "type": "invalid_request_error", "code": code}}, status)
