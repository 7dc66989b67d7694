"""Luma's Agents API on loopback: videos and images; fields that exclude each other are rejected."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route


def failed(code: str, words: str = "It did not work out.") -> dict[str, Any]:
    return {"state": "failed", "failure_code": code, "failure_reason": words}


class Luma(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("queued", "processing", "completed")

    @route("POST /v1/generations")
    def create(self, call: Exchange) -> FakeResponse:
        video = call.request.fields.get("video") or {}
        if video.get("duration") == "10s" and {"start_frame", "end_frame", "loop"} & video.keys():
            return FakeResponse({"detail": "10s takes keyframes, and no loop."}, 422)
        is_changed = call.request.fields["type"] in ("video_edit", "video_reframe")
        if is_changed and ("duration" in video or call.request.fields["source"]["media_type"] != "video/mp4"):
            return FakeResponse({"detail": "The source is a video, and decides the duration."}, 422)
        if len(video.get("keyframes", ())) != len(video.get("keyframe_indexes", ())):
            return FakeResponse({"detail": "keyframes and keyframe_indexes must match."}, 422)
        job = self.begin(call.request.fields, prefix="5e0b4a7c-")
        return FakeResponse(self._job_fields(job, job.next_state()), 201)

    @route("GET /v1/generations/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._job_fields(job, job.next_state())) if job else self.missing()

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"state": state}
        is_video = job.fields["type"].startswith("video")
        output = None
        if details["state"] == "completed":
            file = self.put(mp4(), "video/mp4") if is_video else self.put(png(128, 64), "image/png")
            output = [{"type": "video" if is_video else "image", "url": file}]
        return {
            "id": job.id,
            "type": job.fields["type"],
            "state": "queued",
            "model": job.fields["model"],
            "created_at": "2026-11-15T02:20:00Z",
            "output": output,
            "failure_code": None,
            "failure_reason": None,
            **details,
        }

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"detail": "Not authenticated"}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"detail": "Generation not found"}, 404)
