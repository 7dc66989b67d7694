"""Hugging Face's router on loopback: the providers behind it answer at their own paths and in their own shapes."""

import base64

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route


class HuggingFace(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /nscale/v1/images/generations")
    def nscale(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if set(fields) != {"model", "prompt", "size", "response_format"}:
            return FakeResponse({"error": {"message": "Invalid request"}}, 400)
        width, height = (int(side) for side in fields["size"].split("x"))
        image = base64.b64encode(png(width, height)).decode()
        return FakeResponse({"created": 1763175600, "data": [{"b64_json": image}]})

    @route("POST /fal-ai/{model*}")
    def fal(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if "nude" in fields["prompt"]:
            detail = [
                {"loc": ["body", "prompt"], "msg": "The content was flagged.", "type": "content_policy_violation"}
            ]
            return FakeResponse({"detail": detail}, 422)
        image = self.put(png(fields["image_size"]["width"], fields["image_size"]["height"]), "image/png")
        return FakeResponse({"images": [{"url": image, "content_type": "image/png"}] * fields["num_images"], "seed": 7})

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"error": "Invalid username or password."}, 401)
