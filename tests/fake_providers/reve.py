"""Reve on loopback: images in one call, in base64; what its description refuses is refused by it."""

import base64

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

CREDITS = {
    "reve-create@20250915": 18,
    "reve-edit@20250915": 30,
    "reve-remix@20250915": 30,
    "reve-edit-fast@20251030": 5,
    "reve-remix-fast@20251030": 5,
}


def error(status: int, code: str, message: str) -> FakeResponse:
    return FakeResponse({"error_code": code, "message": message, "params": {}, "instance_id": "agi-1"}, status)


class Reve(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/image/{path}")
    def make(self, call: Exchange) -> FakeResponse:
        fields, path = call.request.fields, call.params["path"]
        version = fields["version"]
        if not version.startswith(f"reve-{path}") or version not in CREDITS:
            return error(400, "INVALID_PARAMETER_VALUE", "version is invalid")
        response = {"request_id": self.new_id("rsid-"), "version": version, "credits_used": CREDITS[version]}
        if "forbidden" in fields.get("prompt", ""):
            return FakeResponse({**response, "image": "", "content_violation": True})
        image = base64.b64encode(png(64, 48)).decode()
        return FakeResponse({**response, "image": image, "content_violation": False, "credits_remaining": 982})

    def unauthorized(self) -> FakeResponse:
        return error(401, "INVALID_API_KEY", "Invalid API key")
