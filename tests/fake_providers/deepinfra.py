"""DeepInfra on loopback: OpenAI's images, always in base64, and chat."""

import base64

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route


class DeepInfra(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/openai/images/generations")
    def generate(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if unknown := sorted(fields.keys() - {"model", "prompt", "size", "n", "response_format"}):
            details = [{"loc": ["body", unknown[0]], "msg": "Extra inputs are not permitted"}]
            return FakeResponse({"detail": details}, 422)
        if "nsfw" in fields["prompt"]:
            return FakeResponse({"error": {"message": "The prompt was flagged by the safety checker"}}, 400)
        width, height = (int(side) for side in fields["size"].split("x"))
        image = base64.b64encode(png(width, height)).decode()
        return FakeResponse({"created": 1763175600, "data": [{"b64_json": image, "revised_prompt": fields["prompt"]}]})

    @route("POST /v1/openai/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        return chat.completion(call.request.fields, self.new_id("chatcmpl-"))[0]

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"detail": "User is not authenticated"}, 401)
