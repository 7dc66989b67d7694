"""Kling on loopback: tasks on two paths that know nothing of each other, for a plain key or a pair's token.

There is no client. The shape is that of klingai.com/document-api; exchanges are compared with Comfy's description of
it.
"""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, Job, route

# The models of the newer API: the most seconds, the frames and the aspect ratios that each takes.
LIMITS = {
    "kling-3.0-turbo": (15, {"first_frame"}, {"16:9", "9:16", "1:1"}),
    "kling-4.0": (30, {"first_frame", "middle_frame", "last_frame"}, {"16:9", "9:16", "1:1", "21:9"}),
}
ACCESS, SECRET = "AK-canary", "SK-canary-0123456789"


def problem(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message, "request_id": "CjikY2gHPbcAAAAAAKzGSA"}


def failed(words: str) -> dict[str, Any]:
    return {"task_status": "failed", "task_status_msg": words}


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a token, if it was signed with the secret."""
    signed, _, signature = token.rpartition(".")
    expected = hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest()
    assert hmac.compare_digest(_plain(signature), expected)
    head, body = (json.loads(_plain(part)) for part in signed.split("."))
    assert head == {"alg": "HS256", "typ": "JWT"}
    details: dict[str, Any] = body
    return details


def _plain(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Kling(FakeProvider):
    usual = ("submitted", "processing", "succeed")

    def knows(self, request: ReceivedRequest) -> bool:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token.count(".") != 2:
            return token == KEY
        claims = claims_of(token)
        is_due = claims["nbf"] <= time.time() <= claims["exp"] <= time.time() + 1800
        return bool(claims["iss"] == ACCESS and is_due)

    @route("POST /v1/videos/text2video")
    def text(self, call: Exchange) -> FakeResponse:
        return self._created(call.request.fields, "text2video")

    @route("POST /v1/videos/image2video")
    def image(self, call: Exchange) -> FakeResponse:
        if str(call.request.fields["image"]).startswith("data:"):
            return FakeResponse(problem(1201, "image must be plain base64"), 400)
        return self._created(call.request.fields, "image2video")

    @route("POST /v1/videos/omni-video")
    def omni(self, call: Exchange) -> FakeResponse:
        return self._created(call.request.fields, "omni-video")

    @route("POST /{kind}-to-video/{model}")
    def task(self, call: Exchange) -> FakeResponse:
        kind, model = call.params["kind"], call.params["model"]
        if model not in LIMITS:
            return FakeResponse(problem(1203, "Model not found"), 404)
        fields = call.request.fields
        most_seconds, frames, ratios = LIMITS[model]
        settings = fields["settings"]
        types = [part["type"] for part in fields.get("contents", ())]
        is_wrong = (
            set(fields) - {"settings", "options"} != {"prompt" if kind == "text" else "contents"}
            or not 3 <= settings["duration"] <= most_seconds
            or settings.get("aspect_ratio", "16:9") not in ratios
            or ("aspect_ratio" in settings) != (kind == "text")
            or (kind == "image" and (types[:2] != ["prompt", "first_frame"] or not set(types[1:]) <= frames))
        )
        if is_wrong:
            return FakeResponse(problem(1201, "Invalid parameters"), 400)
        job = self.begin(fields, prefix="84183102")
        return FakeResponse({**problem(0, "SUCCEED"), "data": self._task_fields(job)})

    @route("GET /tasks")
    def tasks(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.request.path.partition("task_ids=")[2]]
        return FakeResponse({**problem(0, "SUCCEED"), "data": [self._task_fields(job)]})

    def _task_fields(self, job: Job) -> dict[str, Any]:
        state = job.next_state()
        details = state if isinstance(state, dict) else {"status": "succeeded" if state == "succeed" else state}
        outputs = [{"type": "video", "id": "v1", "url": self.put(mp4(), "video/mp4"), "duration": "5.0"}]
        return {"id": job.id, **details, **({"outputs": outputs} if state == "succeed" else {})}

    @route("GET /v1/videos/{path}/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self._find(call.params["id"])
        if job is None or job.fields["path"] != call.params["path"]:
            return FakeResponse(problem(1203, "Task not found"), 404)
        return FakeResponse(self._job_fields(job, job.next_state()))

    def _find(self, name: str) -> Job | None:
        """The task with this id, or with this id of the caller's."""
        own = (job for job in self.jobs.values() if job.fields.get("external_task_id") == name)
        return self.jobs.get(name) or next(own, None)

    def _created(self, fields: dict[str, Any], path: str) -> FakeResponse:
        job = self.begin({**fields, "path": path}, prefix="84183102")
        return FakeResponse(self._job_fields(job, job.next_state()))

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"task_status": state}
        task = {"task_id": job.id, "task_info": {}, "created_at": 1763173200000, "updated_at": 1763173260000, **details}
        if details["task_status"] == "succeed" and "task_result" not in details:
            video = {"id": "v1", "url": self.put(mp4(), "video/mp4"), "duration": "5.1"}
            task |= {"task_result": {"videos": [video]}, "final_unit_deduction": "0.6"}
        return {**problem(0, "SUCCEED"), "data": task}

    def unauthorized(self) -> FakeResponse:
        return FakeResponse(problem(1000, "Authentication failed"), 401)
