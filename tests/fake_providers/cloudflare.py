"""Cloudflare Workers AI on loopback: one model takes JSON and makes squares, the other takes a form and a size."""

import base64

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

SCHNELL = "@cf/black-forest-labs/flux-1-schnell"
FIELDS = {
    SCHNELL: {"prompt", "seed", "steps"},
    "@cf/black-forest-labs/flux-2-klein-4b": {"prompt", "seed", "width", "height"},
}
FLAGGED = 3030


def error(status: int, code: int, message: str) -> FakeResponse:
    return FakeResponse(
        {"result": {}, "success": False, "errors": [{"code": code, "message": message}], "messages": []}, status
    )


class Cloudflare(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /run/{model*}")
    def run(self, call: Exchange) -> FakeResponse:
        fields, model = call.request.fields, call.params["model"]
        if model not in FIELDS:
            return error(400, 7000, "No route for that URI")
        is_json = call.request.headers["content-type"].startswith("application/json")
        if is_json != (model == SCHNELL) or "prompt" not in fields or fields.keys() - FIELDS[model]:
            return error(400, 5006, "required properties are missing or unknown")
        if "nude" in fields["prompt"]:
            return error(400, FLAGGED, "Your input has been flagged.")
        image = png(int(fields.get("width", 1024)), int(fields.get("height", 1024)))
        result = {"image": base64.b64encode(image).decode()}
        return FakeResponse({"result": result, "success": True, "errors": [], "messages": []})

    def unauthorized(self) -> FakeResponse:
        return error(401, 10000, "Authentication error")
