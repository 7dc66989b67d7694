"""Magnific on loopback: two upscalers, whose tasks know nothing of each other."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, Job, route

FACTORS: dict[str, set[Any]] = {
    "image-upscaler": {"2x", "4x", "8x", "16x"},
    "image-upscaler-precision-v2": set(range(2, 17)),
}


class Magnific(FakeProvider):
    credential = ("x-freepik-api-key", KEY)
    usual = ("CREATED", "IN_PROGRESS", "COMPLETED")

    @route("POST /v1/ai/{model}")
    def create(self, call: Exchange) -> FakeResponse:
        fields, model = call.request.fields, call.params["model"]
        if fields.get("scale_factor", "2x" if model == "image-upscaler" else 2) not in FACTORS[model]:
            return FakeResponse({"message": "Validation error"}, 400)
        job = self.begin({**fields, "path": model})
        return FakeResponse({"data": self._task(job)})

    @route("GET /v1/ai/{model}/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None or job.fields["path"] != call.params["model"]:
            return FakeResponse({"message": "Not found"}, 404)
        return FakeResponse({"data": self._task(job)})

    def _task(self, job: Job) -> dict[str, Any]:
        state = job.next_state()
        images = [self.put(png(128, 96), "image/png")] if state == "COMPLETED" else []
        return {"task_id": job.id, "status": state, "generated": images}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"message": "Invalid API key"}, 401)
