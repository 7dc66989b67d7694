"""Recraft on loopback: OpenAI's images, tools of its own beside them, and the units that each call took.

Its documentation has OpenAI's client do the talking, and so do we; the tools are as recraft.ai/docs shows them.
"""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

# A vector image as a hostile or broken provider might send it.
SVG = (
    b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="64" height="32" onload="alert(1)">'
    b'<script>alert(1)</script><path d="M0 0L9 9z"/></svg>'
)
VECTOR_UNITS = {"recraftv4_1_vector": 80, "recraftv4_1_pro_vector": 300}
UNITS = {
    **VECTOR_UNITS,
    "recraftv4_1": 35,
    "recraftv4_1_pro": 210,
    "recraftv3": 40,
    "crispUpscale": 4,
    "creativeUpscale": 250,
}
NEEDS = {"imageToImage": {"image", "prompt", "strength"}, "inpaint": {"image", "mask", "prompt"}}


class Recraft(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/images/generations")
    def generate(self, call: Exchange) -> FakeResponse:
        return self._made(call.request.fields)

    @route("POST /v1/images/{tool}")
    def tool(self, call: Exchange) -> FakeResponse:
        fields, name = call.request.fields, call.params["tool"]
        if lacking := sorted(NEEDS.get(name, {"file"}) - fields.keys()):
            return FakeResponse({"code": "invalid_request", "message": f"{lacking[0]} is required"}, 400)
        if name in NEEDS:
            return self._made(fields)
        return FakeResponse({"created": 1763175600, "credits": UNITS[name], "image": self._image()})

    def _made(self, fields: dict[str, Any]) -> FakeResponse:
        count = int(fields.get("n", 1))
        model = fields.get("model", "recraftv3")
        units = count * UNITS[model]
        if model in VECTOR_UNITS and "image_format" in fields:
            return FakeResponse({"code": "invalid_request", "message": "image_format is for raster images"}, 400)
        if model in VECTOR_UNITS:
            data = [{"image_id": self.new_id("cbb1"), "url": self.put(SVG, "image/svg+xml")} for _ in range(count)]
        else:
            data = [self._image(str(fields.get("size", "64x64"))) for _ in range(count)]
        return FakeResponse({"created": 1763175600, "credits": units, "data": data})

    def _image(self, size: str = "64x64") -> dict[str, str]:
        width, height = (int(side) // 16 for side in size.split("x"))
        return {"image_id": self.new_id("cbb1770e-"), "url": self.put(png(width, height), "image/png")}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"code": "unauthorized", "message": "Invalid token"}, 401)
