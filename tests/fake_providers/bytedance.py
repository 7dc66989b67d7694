"""ModelArk on loopback: OpenAI-compatible images, and videos as tasks that can be cancelled while they wait."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

LEAST_PIXELS = {"seedream-4-0-250828": 1280 * 720, "seedream-4-5-251128": 2560 * 1440}


def trouble(code: str, message: str = "No.") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "param": "", "type": "BadRequest"}}


class ByteDance(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("queued", "running", "succeeded")

    @route("POST /api/v3/images/generations")
    def images(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        width, height = (int(side) for side in fields["size"].split("x"))
        if not LEAST_PIXELS.get(fields["model"], 1) <= width * height <= 4096 * 4096:
            return FakeResponse(trouble("InvalidParameter", "The parameter `size` is not valid."), 400)
        url = self.put(png(width // 32, height // 32), "image/png")
        usage = {"generated_images": 1, "output_tokens": 16384, "total_tokens": 16384}
        body = {"model": fields["model"], "created": 1763175600, "data": [{"url": url, "size": fields["size"]}]}
        return FakeResponse({**body, "usage": usage}, headers={"x-request-id": "0217"})

    @route("POST /api/v3/contents/generations/tasks")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        images = [item for item in fields["content"] if item["type"] == "image_url"]
        if len(images) > 1 and not all(image.get("role") for image in images):
            return FakeResponse(trouble("InvalidParameter", "role must be specified"), 400)
        job = self.begin(dict(fields), prefix="cgt-20261115-")
        job.fields["state"] = job.next_state()
        return FakeResponse({"id": job.id})

    @route("GET /api/v3/contents/generations/tasks/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return (
            FakeResponse(self._job_fields(job, job.next_state()))
            if job
            else FakeResponse(trouble("ResourceNotFound"), 404)
        )

    @route("DELETE /api/v3/contents/generations/tasks/{id}")
    def drop(self, call: Exchange) -> FakeResponse:
        """Cancel a waiting task, refuse for a running one, delete a finished one."""
        job = self.jobs[call.params["id"]]
        if job.fields["state"] == "running":
            return FakeResponse(trouble("InvalidAction.RunningTaskDeletion"), 409)
        if job.fields["state"] == "queued":
            job.cancel("cancelled")
        else:
            del self.jobs[job.id]
        return FakeResponse({})

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"status": state}
        job.fields["state"] = details["status"]
        made = {}
        if details["status"] == "succeeded" and "content" not in details:
            frames = 24 * job.fields["duration"] + 1
            made = {
                "content": {"video_url": self.put(mp4(), "video/mp4")},
                "usage": {"completion_tokens": frames * 1280 * 720 // 1024, "total_tokens": frames * 900},
            }
        known = {"model": job.fields["model"], "resolution": job.fields.get("resolution"), "created_at": 1763175600}
        return {"id": job.id, "updated_at": 1763175660, "error": None, **known, **made, **details}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse(trouble("AuthenticationError", "The API key is invalid."), 401)
