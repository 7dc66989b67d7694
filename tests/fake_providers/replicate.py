"""Replicate on loopback: predictions with states, uploaded images, failures with a message."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

VIDEOS = ("veo", "seedance", "hailuo", "kling")


def failed(words: str) -> dict[str, Any]:
    return {"status": "failed", "error": words}


class Replicate(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("starting", "processing", "succeeded")

    def __init__(self) -> None:
        super().__init__()
        self.uploads: dict[str, bytes] = {}
        self.video_words: tuple[str, ...] = VIDEOS  # in the names of models that make videos
        self.cancelled: list[Any] = ["canceled"]  # the states of a job that was cancelled

    @route("POST /v1/files")
    def upload(self, call: Exchange) -> FakeResponse:
        name = self.new_id("ZmlsZQ")
        self.uploads[f"{self.url}/v1/files/{name}"] = data = call.request.fields["content"]
        return FakeResponse(
            {
                "id": name,
                "name": "image.png",
                "content_type": "image/png",
                "size": len(data),
                "etag": "x",
                "checksums": {"sha256": "x", "md5": "x"},
                "metadata": {},
                "created_at": "2026-11-15T02:20:00Z",
                "expires_at": "2026-11-16T02:20:00Z",
                "urls": {"get": f"{self.url}/v1/files/{name}"},
            },
            201,
        )

    @route("POST /v1/models/{owner}/{name}/predictions")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if "input" not in fields:
            return FakeResponse(
                {"title": "Input validation failed", "detail": "- input: is required", "status": 422}, 422
            )
        job = self.begin({**fields["input"], "model": f"{call.params['owner']}/{call.params['name']}"}, prefix="q7r0w3")
        return FakeResponse(self._job_fields(job, job.next_state()), 201)

    @route("GET /v1/predictions/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._job_fields(job, job.next_state())) if job else self.missing()

    @route("POST /v1/predictions/{id}/cancel")
    def cancel(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        job.cancel(self.cancelled[0])
        job.states.extend(self.cancelled[1:])
        return FakeResponse(self._job_fields(job, job.next_state()))

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"status": state}
        address = f"{self.url}/v1/predictions/{job.id}"
        return {
            "id": job.id,
            "model": job.fields["model"],
            "version": "hidden",
            "input": {name: value for name, value in job.fields.items() if name != "model"},
            "logs": " 40%|####      | 2/5" if details["status"] == "processing" else "",
            "output": self._made(job) if details["status"] == "succeeded" else None,
            "error": None,
            "metrics": {"predict_time": 2.5} if details["status"] == "succeeded" else {},
            "data_removed": False,
            "created_at": "2026-11-15T02:20:00.000Z",
            "started_at": None,
            "completed_at": None,
            "urls": {"get": address, "cancel": f"{address}/cancel"},
            **details,
        }

    def _made(self, job: Job) -> str | list[str]:
        """Some models return a list, others one URL."""
        if any(word in job.fields["model"] for word in self.video_words):
            return self.put(mp4(), "video/mp4")
        if "num_outputs" in job.fields:
            return [self.put(png(64, 64), "image/png") for _ in range(job.fields["num_outputs"])]
        width, height = job.fields.get("width", 96), job.fields.get("height", 64)
        return self.put(png(width, height), "image/png")

    def unauthorized(self) -> FakeResponse:
        return FakeResponse(
            {"title": "Unauthenticated", "detail": "You did not pass a valid token.", "status": 401}, 401
        )

    def missing(self) -> FakeResponse:
        return FakeResponse(
            {"title": "Not found", "detail": "The requested resource could not be found.", "status": 404}, 404
        )
