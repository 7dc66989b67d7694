"""fal's queue on loopback: jobs with states, and results that are the model's response or error."""

from collections import deque
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

UNSAFE = FakeResponse(
    {
        "detail": [
            {"loc": ["body", "prompt"], "msg": "Flagged by a content checker.", "type": "content_policy_violation"}
        ]
    },
    422,
)
INVALID = FakeResponse({"detail": [{"loc": ["body", "prompt"], "msg": "Field required", "type": "missing"}]}, 422)
CRASHED = FakeResponse(
    {"detail": [{"loc": ["body"], "msg": "Internal server error", "type": "internal_server_error"}]}, 500
)
NO_RUNNER = {"status": "COMPLETED", "error": "No runner came up in time.", "error_type": "startup_timeout"}


class Fal(FakeProvider):
    credential = ("authorization", f"Key {KEY}")
    usual = ("IN_QUEUE", "IN_PROGRESS", "COMPLETED")

    def __init__(self) -> None:
        super().__init__()
        self.results: deque[FakeResponse] = deque()  # of the next jobs that are asked for theirs

    @route("POST /{model*}")
    def submit(self, call: Exchange) -> FakeResponse:
        job = self.begin({**call.request.fields, "model": call.params["model"]}, prefix="0f1e2d3c-")
        return FakeResponse(self._job_fields(job, job.next_state()))

    @route("GET /{owner}/{app}/requests/{id}/status")
    def status(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return self.missing()
        shown = self._job_fields(job, job.next_state())
        return FakeResponse(shown, 200 if shown["status"] == "COMPLETED" else 202)

    @route("GET /{owner}/{app}/requests/{id}")
    def result(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return self.missing()
        return self.results.popleft() if self.results else FakeResponse(self._made(job))

    @route("PUT /{owner}/{app}/requests/{id}/cancel")
    def cancel(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        if job.states[0] == "COMPLETED":
            return FakeResponse({"status": "ALREADY_COMPLETED"}, 400)
        job.cancel({"status": "COMPLETED", "error": "Request cancelled.", "error_type": "client_cancelled"})
        return FakeResponse({"status": "CANCELLATION_REQUESTED"}, 202)

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        """Job URLs have only the first two parts of the model's path."""
        owner, app = job.fields["model"].split("/")[:2]
        address = f"{self.url}/{owner}/{app}/requests/{job.id}"
        details = state if isinstance(state, dict) else {"status": state}
        return {
            "request_id": job.id,
            "response_url": address,
            "status_url": f"{address}/status",
            "cancel_url": f"{address}/cancel",
            "queue_position": 0,
            "logs": None,
            "metrics": {},
            **details,
        }

    def _made(self, job: Job) -> dict[str, Any]:
        body = job.fields
        if "-to-video" in body["model"] or "veo" in body["model"]:
            return {"video": {"url": self.put(mp4(), "video/mp4"), "content_type": "video/mp4"}}
        size = body.get("image_size") or {"width": 96, "height": 64}
        shown = {"content_type": "image/png", **size}
        if "upscale" in body["model"]:
            return {"image": {"url": self.put(png(96, 64), "image/png"), **shown}}
        count = body.get("num_images", 1)
        images = [{"url": self.put(png(size["width"], size["height"]), "image/png"), **shown} for _ in range(count)]
        return {"images": images, "has_nsfw_concepts": [False] * count, "prompt": body["prompt"], "seed": 7}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"detail": "Cannot access application. Authentication is required."}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"detail": "Request not found."}, 404)
