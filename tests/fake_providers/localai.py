"""LocalAI and sd-server on loopback, as their sources have them: OpenAI's images, and paths that OpenAI never had."""

import base64
import time
from typing import Any

from tests.fake_providers.exchange import Exchange, Ware
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route


class LocalAI(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/images/generations")
    def generate(self, call: Exchange) -> Ware:
        return self._inline(call.heard.fields)

    @route("POST /v1/images/edits")
    def edit(self, call: Exchange) -> Ware:
        """Only sd-server has it."""
        return self._inline(call.heard.fields)

    @route("POST /v1/images/inpainting")
    def inpaint(self, call: Exchange) -> Ware:
        return self._lacking(call, "model", "prompt", "image", "mask") or self._linked()

    @route("POST /v1/images/upscale")
    def upscale(self, call: Exchange) -> Ware:
        if call.heard.fields.get("scale", "2") not in ("2", "4"):
            return self._error("scale must be 2 or 4")
        return self._lacking(call, "model", "image") or self._linked()

    def _inline(self, fields: dict[str, Any]) -> Ware:
        size = fields.get("size", "")
        width, height = (int(side) // 8 for side in (size if "x" in size else "512x512").split("x"))
        data = base64.b64encode(png(width, height)).decode()
        return Ware({"created": int(time.time()), "data": [{"b64_json": data}] * int(fields.get("n", 1))})

    def _linked(self) -> Ware:
        """The file lies on the same server, wherever that is."""
        return Ware({"id": "0c1", "created": int(time.time()), "data": [{"url": self.put(png(64, 64), "image/png")}]})

    def _lacking(self, call: Exchange, *names: str) -> Ware | None:
        missing = [name for name in names if name not in call.heard.fields]
        return self._error(f"missing {missing[0]} file") if missing else None

    @staticmethod
    def _error(message: str, status: int = 400) -> Ware:
        return Ware({"error": {"code": status, "message": message, "type": ""}}, status)

    def unauthorized(self) -> Ware:
        return self._error("Authentication required", 401)
