"""Runway on loopback: tasks that cost credits per second or image and can be cancelled."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

CREDITS = {"gen4.5": 12, "gen4_turbo": 5, "veo3.1": 40, "veo3.1_fast": 15, "gen4_image": 8, "gen4_image_turbo": 2}
CREDITS |= {"aleph2": 28, "magnific_video_upscaler_creative": 7}
UNSAFE = {
    "status": "FAILED",
    "failure": "Your input was flagged.",
    "failureCode": "SAFETY.INPUT.TEXT",
    "cost": {"credits": 0},
}
BAD_OUTPUT = {
    "status": "FAILED",
    "failure": "It came out badly.",
    "failureCode": "INTERNAL.BAD_OUTPUT.CODE01",
    "cost": {"credits": 0},
}
BAD_ASSET = {
    "status": "FAILED",
    "failure": "The image is damaged.",
    "failureCode": "ASSET.INVALID",
    "cost": {"credits": 0},
}
MAX_URI_BYTES = 5_000_000
EMPTY = {"status": "SUCCEEDED", "output": []}


class Runway(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("PENDING", "THROTTLED", "RUNNING", "SUCCEEDED")

    @route("POST /v1/text_to_video")
    def text_to_video(self, call: Exchange) -> FakeResponse:
        return self._created(call)

    @route("POST /v1/image_to_video")
    def image_to_video(self, call: Exchange) -> FakeResponse:
        return self._created(call)

    @route("POST /v1/video_to_video")
    def video_to_video(self, call: Exchange) -> FakeResponse:
        if not call.request.fields["videoUri"].startswith("data:video/mp4;base64,"):
            return FakeResponse({"error": "The video is not one."}, 400)
        return self._created(call)

    @route("POST /v1/video_upscale")
    def video_upscale(self, call: Exchange) -> FakeResponse:
        return self.video_to_video(call)

    @route("POST /v1/text_to_image")
    def text_to_image(self, call: Exchange) -> FakeResponse:
        return self._created(call)

    @route("GET /v1/tasks/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._job_fields(job, job.next_state())) if job else self.missing()

    @route("DELETE /v1/tasks/{id}")
    def delete(self, call: Exchange) -> FakeResponse:
        self.jobs[call.params["id"]].cancel({"status": "CANCELLED", "cost": {"credits": 0}})
        return FakeResponse(status=204)

    def _created(self, call: Exchange) -> FakeResponse:
        if call.request.headers.get("x-runway-version") != "2024-11-06":
            return FakeResponse(
                {"error": "X-Runway-Version is missing.", "docUrl": "https://docs.dev.runwayml.com"}, 400
            )
        uris = [image["uri"] for image in call.request.fields.get("promptImage", ())]
        uris += [image["uri"] for image in call.request.fields.get("referenceImages", ())]
        uris += [call.request.fields.get("videoUri", "")]
        if any(len(uri) > MAX_URI_BYTES for uri in uris):
            return FakeResponse({"error": "A data URI may have 5 MB."}, 400)
        job = self.begin(call.request.fields, prefix="17f20503-")
        job.next_state()
        return FakeResponse({"id": job.id, "estimatedCost": {"credits": self._credits(job)}})

    def _credits(self, job: Job) -> int:
        return int(CREDITS[job.fields["model"]] * job.fields.get("duration", 1))

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"status": state}
        shown: dict[str, Any] = {"id": job.id, "createdAt": "2026-11-15T02:20:00.000Z"}
        if details["status"] in ("SUCCEEDED", "FAILED", "CANCELLED"):
            shown["cost"] = {"credits": self._credits(job)}
        else:
            shown["estimatedCost"] = {"credits": self._credits(job)}
        if details["status"] == "RUNNING":
            shown["progress"] = 0.4
        if details["status"] == "SUCCEEDED":
            shown["output"] = [self._made(job)]
        return {**shown, **details}

    def _made(self, job: Job) -> str:
        if "image" in job.fields["model"]:
            width, height = job.fields["ratio"].split(":")
            return self.put(png(int(width), int(height)), "image/png")
        return self.put(mp4(), "video/mp4")

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"error": "API key is not valid."}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"error": "No such task."}, 404)
