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
