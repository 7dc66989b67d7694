"""MiniMax on loopback: tasks of the first API, where every response has status 200, and those of the second.

There is no client of its own. The shapes are those of platform.minimax.io; exchanges are compared with Comfy's
description.
"""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, Job, route

GOOD = {"status_code": 0, "status_msg": "success"}


def base(code: int, message: str) -> dict[str, Any]:
    return {"status_code": code, "status_msg": message}


def problem(kind: str, message: str, status: int) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, "http_code": str(status)}, "request_id": "r1"}


class MiniMax(FakeProvider):
    """The states of a job are those of the API version that it was submitted to."""

    usual = ("Preparing", "Processing", "Success")

    def knows(self, request: ReceivedRequest) -> bool:
        return request.path.startswith("/v1/") or request.key == KEY

    def _begun(self, call: Exchange) -> FakeResponse | None:
        """Version 1 reports even a wrong credential with status 200."""
        fields = call.request.fields
        if call.request.key != KEY:
            return FakeResponse({"task_id": "", "base_resp": base(1004, "login fail")})
        if fields["duration"] not in (6, 10) or (fields["duration"], fields["resolution"]) == (10, "1080P"):
            return FakeResponse({"task_id": "", "base_resp": base(2013, "invalid params, duration")})
        return None

    @route("POST /v1/video_generation")
    def create(self, call: Exchange) -> FakeResponse:
        job = None if (wrong := self._begun(call)) else self.begin(call.request.fields, prefix="1760")
        return FakeResponse({"task_id": job.id, "base_resp": GOOD}) if job else wrong or self.missing()

    @route("GET /v1/query/video_generation")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.request.path.partition("?task_id=")[2]]
        state = job.next_state()
        details = state if isinstance(state, dict) else {"status": state}
        file = {"file_id": f"2{job.id}", "video_width": 1366, "video_height": 768} if state == "Success" else {}
        return FakeResponse({"task_id": job.id, "file_id": "", "base_resp": GOOD, **file, **details})

    @route("GET /v1/files/retrieve")
    def retrieve(self, call: Exchange) -> FakeResponse:
        file_id = call.request.path.partition("?file_id=")[2]
        assert file_id[1:] in self.jobs
        address = self.put(mp4(), "video/mp4")
        return FakeResponse(
            {"file": {"file_id": file_id, "bytes": len(mp4()), "download_url": address}, "base_resp": GOOD}
        )

    @route("POST /v2/video_generation")
    def create_2(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        roles = {part.get("role") for part in fields["content"][1:]}
        if {"first_frame", "reference_image"} <= roles or fields["ratio"] == "adaptive":
            return FakeResponse(problem("bad_request_error", "invalid params (2013)", 400), 400)
        return FakeResponse({"task_id": self.begin(fields, prefix="h3-").id})

    @route("GET /v2/query/video_generation/{id}")
    def show_2(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse({"task": self._task(job, job.next_state())}) if job else self.missing()

    @route("DELETE /v2/video_generation/{id}")
    def cancel_2(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        job.cancel("cancelled")
        return FakeResponse({"task_id": job.id, "status": "cancelled"})

    def _task(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"status": state}
        content = {"content": {"url": self.put(mp4(), "video/mp4")}} if state == "succeeded" else {}
        return {"id": job.id, "created_at": 1763173200, **content, **details}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse(problem("authorized_error", "invalid api key (2049)", 401), 401)

    def missing(self) -> FakeResponse:
        return FakeResponse(problem("server_error", "record not found", 500), 500)
