"""LocalAI and sd-server on loopback, after their sources: OpenAI-compatible images, and paths of their own."""

import base64
import time
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route


class LocalAI(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/images/generations")
    def generate(self, call: Exchange) -> FakeResponse:
        return self._inline(call.request.fields)

    @route("POST /v1/images/edits")
    def edit(self, call: Exchange) -> FakeResponse:
        """An endpoint of sd-server only."""
        return self._inline(call.request.fields)

    @route("POST /v1/images/inpainting")
    def inpaint(self, call: Exchange) -> FakeResponse:
        return self._lacking(call, "model", "prompt", "image", "mask") or self._linked()

    @route("POST /v1/images/upscale")
    def upscale(self, call: Exchange) -> FakeResponse:
        if call.request.fields.get("scale", "2") not in ("2", "4"):
            return self._error("scale must be 2 or 4")
        return self._lacking(call, "model", "image") or self._linked()

    def _inline(self, fields: dict[str, Any]) -> FakeResponse:
        size = fields.get("size", "")
        width, height = (int(side) // 8 for side in (size if "x" in size else "512x512").split("x"))
        data = base64.b64encode(png(width, height)).decode()
        return FakeResponse({"created": int(time.time()), "data": [{"b64_json": data}] * int(fields.get("n", 1))})

    def _linked(self) -> FakeResponse:
        """A response with a URL on the same server."""
        return FakeResponse(
            {"id": "0c1", "created": int(time.time()), "data": [{"url": self.put(png(64, 64), "image/png")}]}
        )

    def _lacking(self, call: Exchange, *names: str) -> FakeResponse | None:
        missing = [name for name in names if name not in call.request.fields]
        return self._error(f"missing {missing[0]} file") if missing else None

    @staticmethod
    def _error(message: str, status: int = 400) -> FakeResponse:
        return FakeResponse({"error": {"code": status, "message": message, "type": ""}}, status)

    def unauthorized(self) -> FakeResponse:
        return self._error("Authentication required", 401)
