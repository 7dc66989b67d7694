"""LTX on loopback: jobs on two paths that know nothing of each other.

There is no client. The shape is that of docs.ltx.video; exchanges are compared with Comfy's description of it.
"""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, route


def problem(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def failed(kind: str, message: str = "It did not work out.") -> dict[str, Any]:
    return {"status": "failed", "error": {"type": kind, "message": message}}


class Ltx(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("pending", "processing", "completed")

    @route("POST /v2/{path}")
    def create(self, call: Exchange) -> FakeResponse:
        fields, path = call.request.fields, call.params["path"]
        sizes = {"1280x720", "1920x1080", "2560x1440", "3840x2160"}
        turned = "x".join(reversed(fields["resolution"].split("x")))
        if not {fields["resolution"], turned} & sizes or ("image_uri" in fields) != (path == "image-to-video"):
            return FakeResponse(problem("invalid_request_error", "resolution is not supported"), 400)
        job = self.begin({**fields, "path": path}, prefix="ltx-")
        job.next_state()
        return FakeResponse({"id": job.id, "created_at": "2026-11-15T03:00:00Z"}, 202)

    @route("GET /v2/{path}/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None or job.fields["path"] != call.params["path"]:
            return self.missing()
        state = job.next_state()
        details = state if isinstance(state, dict) else {"status": state}
        made = {"result": {"video_url": self.put(mp4(), "video/mp4")}} if state == "completed" else {}
        return FakeResponse({"id": job.id, "created_at": "2026-11-15T03:00:00Z", **made, **details})

    def unauthorized(self) -> FakeResponse:
        return FakeResponse(problem("authentication_error", "Invalid API key"), 401)

    def missing(self) -> FakeResponse:
        return FakeResponse(problem("not_found_error", "Job not found"), 404)
