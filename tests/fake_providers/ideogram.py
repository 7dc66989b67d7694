"""Ideogram on loopback, as its documentation shows it: forms in, addresses that do not last out.

There is no client. The shape is that of developer.ideogram.ai; exchanges are compared with Comfy's description of it.
"""

from collections import deque
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

NEEDS = {
    "ideogram-v3/generate": {"prompt"},
    "ideogram-v3/remix": {"prompt", "image"},
    "ideogram-v3/inpaint": {"prompt", "image", "mask"},
    "ideogram-v4/generate": {"text_prompt"},
}
V2_NEEDS = {"generate": {"prompt"}, "precise-edit": {"prompt", "image"}}
V2 = {"prompt", "quality", "num_images", "seed", "mask"}
V2_ALSO = {"generate": {"images", "size", "magic_prompt"}, "precise-edit": {"image", "reference_images"}}
V4 = {"text_prompt", "json_prompt", "resolution", "rendering_speed", "enable_copyright_detection"}


class Ideogram(FakeProvider):
    credential = ("api-key", KEY)

    def __init__(self) -> None:
        super().__init__()
        self.unsafe: deque[bool] = deque()  # of the next images

    @route("POST /v1/{family}/{operation}")
    def make(self, call: Exchange) -> FakeResponse:
        fields, path = call.request.fields, f"{call.params['family']}/{call.params['operation']}"
        if lacking := sorted(NEEDS[path] - fields.keys()):
            return FakeResponse({"error": f"{lacking[0]} is required."}, 400)
        if path.startswith("ideogram-v4") and (odd := sorted(fields.keys() - V4)):
            return FakeResponse({"error": f"{odd[0]} is not supported."}, 400)
        count = int(fields.get("num_images", 1))
        return FakeResponse(
            {"created": "2026-11-15T03:00:00+00:00", "data": [self._image(fields) for _ in range(count)]}
        )

    @route("POST /v2/image/{action}/ideogram-4-5")
    def make_v2(self, call: Exchange) -> FakeResponse:
        fields, action = call.request.fields, call.params["action"]
        if lacking := sorted(V2_NEEDS[action] - fields.keys()):
            return FakeResponse({"error": f"{lacking[0]} is required."}, 400)
        if odd := sorted(fields.keys() - V2 - V2_ALSO[action]):
            return FakeResponse({"error": f"{odd[0]} is not supported."}, 400)
        data = [self._image(fields) for _ in range(int(fields.get("num_images", 1)))]
        return FakeResponse({"generation_id": "gen-1", "generation_kind": "image", "seed": 7, "data": data})

    def _image(self, fields: dict[str, Any]) -> dict[str, Any]:
        unsafe = self.unsafe.popleft() if self.unsafe else False
        words = fields.get("prompt") or fields["text_prompt"]
        return {
            "prompt": words if fields.get("magic_prompt") == "OFF" else f"{words}, in detail",
            "resolution": "96x64",
            "is_image_safe": not unsafe,
            "seed": 7,
            "url": None if unsafe else self.put(png(96, 64), "image/png"),
            "style_type": "GENERAL",
        }

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"error": "Invalid API key"}, 401)
