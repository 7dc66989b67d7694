"""Tencent's TokenHub on loopback: Hunyuan images in one call, in the shape of chat, and chat itself."""

from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

FIELDS = {"model", "messages", "size", "seed", "logo_add", "footnote", "resize_max_pixels"}
SIDES = range(256, 8193, 16)


def error(status: int, code: str, message: str) -> FakeResponse:
    return FakeResponse({"error": {"type": "invalid_request_error", "code": code, "message": message}}, status)


class Tencent(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1/wand/hunyuan-image/v35-generation")
    def generate(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self._wrong(fields):
            return error(400, "invalid_parameter", f"{wrong} is invalid")
        (message,) = fields["messages"]
        frame: dict[str, Any] = {"id": self.new_id("WandImage-"), "object": "image.chat.completion.chunk", "round": 0}
        if "forbidden" in message["content"][0]["text"]:
            refusal = {"code": "content_filter", "message": "input moderation rejected"}
            choice: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "error"}
            return FakeResponse({**frame, "choices": [choice], "error": refusal})
        image = {"url": self.put(png(64, 48), "image/png"), "width": 64, "height": 48, "source": "generate"}
        choice = {"index": 0, "delta": {"type": "image", "image": image}, "finish_reason": None}
        return FakeResponse({**frame, "choices": [choice], "usage": {"total_tokens": 15000}})

    @staticmethod
    def _wrong(fields: dict[str, Any]) -> str | None:
        if unknown := sorted(fields.keys() - FIELDS):
            return unknown[0]
        if fields["model"] != "hy-image-v3.5-preview":
            return "model"
        sides = [int(side) for side in fields["size"].split("x")]
        if any(side not in SIDES for side in sides) or sides[0] * sides[1] > 4096 * 4096:
            return "size"
        kinds = [part["type"] for part in fields["messages"][0]["content"]]
        return None if kinds == ["text", *["image_url"] * (len(kinds) - 1)] else "messages"

    @route("POST /v1/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        return chat.completion(call.request.fields, self.new_id("chatcmpl-"))[0]

    def unauthorized(self) -> FakeResponse:
        return error(401, "401002", "Authentication failed.")
