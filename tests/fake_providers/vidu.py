"""Vidu on loopback: each endpoint insists on its number of images; credits are told with every task.

There is no client. The shape is that of platform.vidu.com; exchanges are compared with Comfy's description of it.
"""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, Job, route

COUNTS = {"text2video": (0, 0), "img2video": (1, 1), "start-end2video": (2, 2), "reference2video": (1, 7)}


def problem(reason: str, message: str, status: int) -> dict[str, Any]:
    return {"code": status, "reason": reason, "message": message, "metadata": {}}


def failed(code: str) -> dict[str, Any]:
    return {"state": "failed", "err_code": code, "creations": []}


class Vidu(FakeProvider):
    credential = ("authorization", f"Token {KEY}")
    usual = ("created", "processing", "success")
    credits = 55

    @route("POST /ent/v2/tasks/{id}/cancel")
    def cancel(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        assert call.request.fields == {"id": job.id}
        job.cancel(failed("CancelByUser"))
        return FakeResponse({})

    @route("POST /ent/v2/{path}")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        low, high = COUNTS[call.params["path"]]
        if not low <= len(fields.get("images", ())) <= high:
            return FakeResponse(problem("FieldInvalid", "images", 400), 400)
        job = self.begin({**fields, "path": call.params["path"]}, prefix="8731")
        return FakeResponse(
            {"task_id": job.id, "model": fields["model"], "credits": self.credits, **self._state(job.next_state())}
        )

    @route("GET /ent/v2/tasks/{id}/creations")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._job_fields(job, job.next_state())) if job else self.missing()

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        made = [{"id": "c1", "url": self.put(mp4(), "video/mp4"), "cover_url": ""}] if state == "success" else []
        return {"err_code": "", "credits": self.credits, "creations": made, **self._state(state)}

    @staticmethod
    def _state(state: Any) -> dict[str, Any]:
        return state if isinstance(state, dict) else {"state": state}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse(problem("Unauthorized", "invalid token", 401), 401)

    def missing(self) -> FakeResponse:
        return FakeResponse(problem("NotFound", "task not found", 404), 404)
