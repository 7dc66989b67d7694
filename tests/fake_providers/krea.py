"""Krea on loopback: its three images, which need an aspect ratio and a resolution."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, Job, route

MODELS = {"large", "medium", "medium-turbo"}
RATIOS = {"1:1", "4:3", "3:2", "16:9", "2.35:1", "4:5", "2:3", "9:16"}
FIELDS = {"prompt", "aspect_ratio", "resolution", "creativity", "seed"}


class Krea(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("queued", "sampling", "intermediate-complete", "completed")

    @route("POST /generate/image/krea/krea-2/{model}")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if call.params["model"] not in MODELS:
            return self.missing()
        if fields.keys() - FIELDS or fields.get("aspect_ratio") not in RATIOS or fields.get("resolution") != "1K":
            return FakeResponse({"error": "Invalid request body"}, 400)
        job = self.begin(fields, prefix="7c1e-")
        return FakeResponse(self._job(job, job.next_state()))

    @route("GET /jobs/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._job(job, job.next_state())) if job else self.missing()

    def _job(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"status": state}
        result = {"urls": [self.put(png(96, 64), "image/png")]} if details["status"] == "completed" else None
        moments = {"created_at": "2026-11-15T02:20:00Z", "completed_at": None}
        return {"job_id": job.id, **moments, "result": result, **details}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"error": "Unauthorized"}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"error": "Not found"}, 404)
