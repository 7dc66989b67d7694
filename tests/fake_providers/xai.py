"""xAI on loopback: images and videos that say what they cost in ticks, and chat that does.

Its client speaks gRPC, so only its words are compared. The shape is that of docs.x.ai, and of Comfy's description of
it.
"""

import base64
from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

TICKS = 10**10  # of a dollar
BLOCKED = {
    "status": "done",
    "video": {"url": "", "respect_moderation": False},
    "usage": {"cost_in_usd_ticks": 42 * TICKS // 100},
}
REFUSED = {"status": "failed", "block_reason": "The prompt asks for what is not allowed."}
FAILED = {"status": "failed", "error": {"code": "internal", "message": "The video could not be made."}}


class XAI(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("named", "pending", "pending", "done")

    def __init__(self) -> None:
        super().__init__()
        self.blocks: set[int] = set()  # which of the next images do not pass

    @route("POST /v1/images/generations")
    def generate(self, call: Exchange) -> FakeResponse:
        return self._images(call.request.fields, 0)

    @route("POST /v1/images/edits")
    def edit(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        given = fields.get("images") or [fields["image"]]
        if not all(image["type"] == "image_url" and image["url"].startswith("data:image/") for image in given):
            return FakeResponse({"code": "invalid-argument", "error": "An image is not one."}, 400)
        if fields["model"] == "grok-imagine-image" and len(given) == 1 and "aspect_ratio" in fields:
            return FakeResponse({"code": "invalid-argument", "error": "aspect_ratio needs several images."}, 400)
        return self._images(fields, len(given))

    @route("POST /v1/videos/generations")
    def video(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if "reference_images" in fields and fields.get("resolution") == "1080p":
            return FakeResponse({"code": "invalid-argument", "error": "References are limited to 720p."}, 400)
        if "last_frame" in fields and fields["model"] != "grok-imagine-video-1.5":
            return FakeResponse({"code": "invalid-argument", "error": "The model takes no last frame."}, 400)
        job = self.begin(fields, prefix="req-")
        job.next_state()
        return FakeResponse({"request_id": job.id})

    @route("POST /v1/videos/edits")
    def edit_video(self, call: Exchange) -> FakeResponse:
        return self._changed_video(call.request.fields, {"model", "prompt", "video", "user"})

    @route("POST /v1/videos/extensions")
    def extend_video(self, call: Exchange) -> FakeResponse:
        return self._changed_video(call.request.fields, {"model", "prompt", "video", "duration"})

    def _changed_video(self, fields: dict[str, Any], known: set[str]) -> FakeResponse:
        if odd := sorted(fields.keys() - known):
            return FakeResponse({"code": "invalid-argument", "error": f"Unknown field: {odd[0]}."}, 400)
        if not fields["video"]["url"].startswith("data:video/mp4;base64,"):
            return FakeResponse({"code": "invalid-argument", "error": "The video is not one."}, 400)
        job = self.begin({"duration": 1, **fields}, prefix="req-")
        job.next_state()
        return FakeResponse({"request_id": job.id})

    @route("GET /v1/videos/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return self.missing()
        state = job.next_state()
        if state == "pending":
            return FakeResponse({"status": "pending", "progress": 40}, 202)
        return FakeResponse(state if isinstance(state, dict) else self._made(job))

    @route("POST /v1/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if found := [name for name in ("stop", "presence_penalty", "frequency_penalty") if name in fields]:
            return FakeResponse({"code": "invalid-argument", "error": f"Argument not supported: {found[0]}"}, 400)
        return chat.completion(fields, self.new_id("chat-"), thought=40, more={"cost_in_usd_ticks": 37_756_000})[0]

    def _images(self, fields: dict[str, Any], given: int) -> FakeResponse:
        count = fields.get("n", 1)
        image = base64.b64encode(png(64, 64)).decode()
        data = [{"b64_json": image, "respect_moderation": number not in self.blocks} for number in range(count)]
        ticks = int((0.04 * count + 0.01 * given) * TICKS)
        return FakeResponse({"data": data, "usage": {"cost_in_usd_ticks": ticks}})

    def _made(self, job: Job) -> dict[str, Any]:
        length = job.fields["duration"]
        video = {"url": self.put(mp4(), "video/mp4"), "duration": length, "respect_moderation": True}
        usage = {"cost_in_usd_ticks": int(0.07 * length * TICKS)}
        return {"status": "done", "progress": 100, "model": job.fields["model"], "video": video, "usage": usage}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"code": "unauthenticated", "error": "Incorrect API key provided."}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"code": "not-found", "error": "The request was not found."}, 404)
