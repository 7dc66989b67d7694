"""Fireworks AI on loopback: images at once, images as jobs that are asked after with POST, and chat.

Its client knows nothing of images. The shape is that of docs.fireworks.ai and of the provider in vercel/ai of
2026-08.
"""

import base64
from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

OURS = "/inference/v1/workflows/accounts/fireworks/models"


class Fireworks(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("named", "Pending", "Ready")

    @route(f"POST {OURS}/{{model}}/text_to_image")
    def paint(self, call: Exchange) -> FakeResponse:
        if call.request.headers.get("accept") != "application/json":
            return FakeResponse(file=png(64, 64), content_type="image/png")
        fields = call.request.fields
        reason = "CONTENT_FILTERED" if "nsfw" in fields["prompt"] else "SUCCESS"
        image = f"data:image/png;base64,{base64.b64encode(png(64, 64)).decode()}"
        return FakeResponse({"id": self.new_id(), "base64": [image], "finishReason": reason, "seed": 7})

    @route(f"POST {OURS}/{{model}}/get_result")
    def result(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.request.fields["id"])
        if job is None:
            return FakeResponse({"id": call.request.fields["id"], "status": "Task not found", "result": None})
        state = job.next_state()
        made: Any = {"sample": self.put(png(64, 64), "image/png")} if state == "Ready" else None
        return FakeResponse({"id": job.id, "status": state, "result": made})

    @route(f"POST {OURS}/{{model}}")
    def submit(self, call: Exchange) -> FakeResponse:
        job = self.begin(call.request.fields, prefix="r-")
        job.next_state()
        return FakeResponse({"request_id": job.id})

    @route("POST /inference/v1/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        fields = {**call.request.fields, "stream_options": {"include_usage": True}}
        return chat.completion(fields, self.new_id("chat-"), joined=True)[0]
