"""Bria on loopback: FIBO, its edits and its upscaler; content that it refuses gets the status of a mistake."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, Job, route

RATIOS = {"1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9"}
NEEDS = {
    "generate": {"prompt"},
    "generate/lite": {"prompt"},
    "edit": {"images", "instruction"},
    "edit/increase_resolution": {"image"},
}
MAY_HAVE = {
    "generate": {"aspect_ratio", "negative_prompt", "seed", "webhook_url"},
    "generate/lite": {"aspect_ratio", "negative_prompt", "seed", "webhook_url"},
    "edit": {"mask", "negative_prompt", "seed", "webhook_url"},
    "edit/increase_resolution": {"desired_increase", "webhook_url"},
}


class Bria(FakeProvider):
    credential = ("api_token", KEY)
    usual = ("IN_PROGRESS", "COMPLETED")

    @route("POST /v2/image/{path*}")
    def create(self, call: Exchange) -> FakeResponse:
        fields, path = call.request.fields, call.params["path"]
        if path not in NEEDS:
            return error(404, "Not found")
        unknown = fields.keys() - NEEDS[path] - MAY_HAVE[path]
        if unknown or NEEDS[path] - fields.keys() or len(fields.get("images", ["one"])) != 1:
            return error(422, "Validation failed")
        if fields.get("aspect_ratio", "1:1") not in RATIOS or fields.get("desired_increase", 2) not in (2, 4):
            return error(422, "Validation failed")
        if "nude" in str(fields.get("prompt")):
            return error(422, "Prompt content moderation failed")
        job = self.begin(fields, prefix="9d4a")
        return FakeResponse({"request_id": job.id, "status_url": f"{self.url}/v2/status/{job.id}"}, 202)

    @route("GET /v2/status/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._status(job)) if job else error(404, "Request not found")

    def _status(self, job: Job) -> dict[str, Any]:
        state = job.next_state()
        if isinstance(state, dict):
            return {"request_id": job.id, "status": "ERROR", "error": state}
        result = {"image_url": self.put(png(96, 64), "image/png"), "seed": 7} if state == "COMPLETED" else None
        return {"request_id": job.id, "status": state, **({"result": result} if result else {})}

    def unauthorized(self) -> FakeResponse:
        return error(401, "Invalid token")


def error(status: int, message: str) -> FakeResponse:
    return FakeResponse({"error": {"code": status, "message": message}, "request_id": "r"}, status)
