"""Fireworks AI on loopback: pictures at once, pictures as jobs that are asked after with POST, and chat.

Its client knows nothing of pictures. The shape is that of docs.fireworks.ai and of the provider in vercel/ai of
2026-08.
"""

import base64
from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, Ware
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

OURS = "/inference/v1/workflows/accounts/fireworks/models"


class Fireworks(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("named", "Pending", "Ready")

    @route(f"POST {OURS}/{{model}}/text_to_image")
    def paint(self, call: Exchange) -> Ware:
        if call.heard.headers.get("accept") != "application/json":
            return Ware(file=png(64, 64), content_type="image/png")
        fields = call.heard.fields
        reason = "CONTENT_FILTERED" if "nsfw" in fields["prompt"] else "SUCCESS"
        picture = f"data:image/png;base64,{base64.b64encode(png(64, 64)).decode()}"
        return Ware({"id": self.new_id(), "base64": [picture], "finishReason": reason, "seed": 7})

    @route(f"POST {OURS}/{{model}}/get_result")
    def result(self, call: Exchange) -> Ware:
        job = self.jobs.get(call.heard.fields["id"])
        if job is None:
            return Ware({"id": call.heard.fields["id"], "status": "Task not found", "result": None})
        state = job.turn()
        made: Any = {"sample": self.put(png(64, 64), "image/png")} if state == "Ready" else None
        return Ware({"id": job.id, "status": state, "result": made})

    @route(f"POST {OURS}/{{model}}")
    def submit(self, call: Exchange) -> Ware:
        job = self.begin(call.heard.fields, prefix="r-")
        job.turn()
        return Ware({"request_id": job.id})

    @route("POST /inference/v1/chat/completions")
    def chat(self, call: Exchange) -> Ware:
        fields = {**call.heard.fields, "stream_options": {"include_usage": True}}
        return chat.answer(fields, self.new_id("chat-"), joined=True)[0]
