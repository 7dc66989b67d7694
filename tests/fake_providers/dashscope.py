"""DashScope on loopback: tasks need the header for asynchronous calls, and can be cancelled only while they wait."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, Job, route


def problem(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "message": message, "request_id": "7574ee8f"}


def failed(code: str, message: str = "It did not work out.") -> dict[str, Any]:
    return {"task_status": "FAILED", "code": code, "message": message}


class DashScope(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("PENDING", "RUNNING", "SUCCEEDED")
    made_seconds: float | None = None  # where videos come out otherwise than they were asked for

    @route("POST /api/v1/services/aigc/video-generation/video-synthesis")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if call.request.headers.get("x-dashscope-async") != "enable":
            return FakeResponse(problem("AccessDenied", "current user api does not support synchronous calls."), 403)
        if set(fields) != {"model", "input", "parameters"} or "x" in str(fields["parameters"].get("size")):
            return FakeResponse(problem("InvalidParameter", "size must be like 1280*720."), 400)
        job = self.begin(fields, prefix="0385dc79-")
        return FakeResponse({"output": self._job_fields(job, job.next_state()), "request_id": "4909100c"})

    @route("GET /api/v1/tasks/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return FakeResponse(
                {"output": {"task_id": call.params["id"], "task_status": "UNKNOWN"}, "request_id": "4909100c"}
            )
        output = self._job_fields(job, job.next_state())
        used = {"duration": self.made_seconds or job.fields["parameters"]["duration"], "SR": 720, "video_count": 1}
        return FakeResponse(
            {"output": output, "request_id": "4909100c"} | ({"usage": used} if "video_url" in output else {})
        )

    @route("POST /api/v1/tasks/{id}/cancel")
    def cancel(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        if job.states[0] != "PENDING":
            return FakeResponse(problem("UnsupportedOperation", "Failed to cancel the task."), 400)
        job.cancel("CANCELED")
        return FakeResponse({"request_id": "45ac7f13"})

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"task_status": state}
        made = (
            {"video_url": self.put(mp4(), "video/mp4"), "actual_prompt": "A red train."} if state == "SUCCEEDED" else {}
        )
        return {"task_id": job.id, **made, **details}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse(problem("InvalidApiKey", "Invalid API-key provided."), 401)
