"""HeyGen on loopback: videos of type `image`; it refuses what its description and its documentation refuse."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, route

FIELDS = {"type", "script", "image", "voice_id", "motion_prompt", "aspect_ratio", "resolution", "callback_url"}
RATIOS = {"16:9", "9:16", "4:5", "5:4", "1:1", "auto"}
RESOLUTIONS = {"720p", "1080p", "4k"}


def failed(code: str, message: str) -> dict[str, Any]:
    return {"status": "failed", "failure_code": code, "failure_message": message}


class HeyGen(FakeProvider):
    credential = ("x-api-key", KEY)
    usual = ("pending", "processing", "completed")
    seconds = 12.4

    @route("POST /v3/videos")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self._wrong(fields):
            return FakeResponse({"error": {"code": "invalid_parameter", "message": f"{wrong} is invalid"}}, 400)
        job = self.begin(fields, prefix="vid_")
        return FakeResponse({"data": {"video_id": job.id, "status": "waiting", "output_format": "mp4"}})

    @route("GET /v3/videos/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return self.missing()
        state: Any = job.next_state()
        details = state if isinstance(state, dict) else {"status": state}
        if details["status"] == "completed":
            details = {**details, "video_url": self.put(mp4(), "video/mp4"), "duration": self.seconds}
        return FakeResponse({"data": {"id": job.id, "title": "", "created_at": 1763175600, **details}})

    @staticmethod
    def _wrong(fields: dict[str, Any]) -> str | None:
        missing = ({"type", "script", "image", "voice_id"} - fields.keys()) | (fields.keys() - FIELDS)
        if missing:
            return sorted(missing)[0]
        if fields["image"].keys() != {"type", "media_type", "data"} or fields["image"]["type"] != "base64":
            return "image"
        if fields.get("aspect_ratio", "auto") not in RATIOS:
            return "aspect_ratio"
        return None if fields.get("resolution", "720p") in RESOLUTIONS else "resolution"

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"error": {"code": "unauthorized", "message": "Unauthorized"}}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"error": {"code": "not_found", "message": "Video not found"}}, 404)
