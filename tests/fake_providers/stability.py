"""Stability on loopback, as its documentation shows it: forms in, base64 out, and one service that is waited for.

The only client is one for an older API. The shape is that of platform.stability.ai's v2beta as ComfyUI's generated
client has it.
"""

import base64
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, Job, route

MODERATED = {"id": "a1", "name": "content_moderation", "errors": ["Your request was flagged."]}
FILTERED = {"image": "", "finish_reason": "CONTENT_FILTERED", "seed": 1}
RATIOS = {"1:1": (64, 64), "16:9": (128, 72)}
NEEDS = {
    "generate": {"prompt", "output_format"},
    "inpaint": {"prompt", "image", "mask"},
    "fast": {"image"},
    "creative": {"prompt", "image"},
}


def image(width: int = 64, height: int = 64) -> str:
    return base64.b64encode(png(width, height)).decode()


class Stability(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("in-progress", "in-progress", "done")

    @route("POST /v2beta/stable-image/generate/{service}")
    def generate(self, call: Exchange) -> FakeResponse:
        shape = RATIOS[call.request.fields.get("aspect_ratio", "1:1")]
        return self._lacking(call, "generate") or self._made(image(*shape))

    @route("POST /v2beta/stable-image/edit/{service}")
    def edit(self, call: Exchange) -> FakeResponse:
        return self._lacking(call, call.params["service"]) or self._made(image())

    @route("POST /v2beta/stable-image/upscale/{service}")
    def upscale(self, call: Exchange) -> FakeResponse:
        lacking = self._lacking(call, call.params["service"])
        if lacking or call.params["service"] != "creative":
            return lacking or self._made(image(256, 192))
        return FakeResponse({"id": self.begin(call.request.fields, prefix="ea77").id})

    @route("GET /v2beta/results/{id}")
    def result(self, call: Exchange) -> FakeResponse:
        job: Job | None = self.jobs.get(call.params["id"])
        if job is None:
            return self._error("not_found", 404)
        state: Any = job.next_state()
        if state == "in-progress":
            return FakeResponse({"id": job.id, "status": state}, 202)
        return FakeResponse(
            {"result": image(256, 192), "finish_reason": "SUCCESS" if state == "done" else state, "seed": 1}
        )

    @staticmethod
    def _made(data: str) -> FakeResponse:
        return FakeResponse({"image": data, "finish_reason": "SUCCESS", "seed": 1}, headers={"x-request-id": "f4c3"})

    def _lacking(self, call: Exchange, service: str) -> FakeResponse | None:
        """Whether the request is a form and accepts JSON."""
        if (
            call.request.headers.get("accept") != "application/json"
            or "multipart" not in call.request.headers["content-type"]
        ):
            return self._error("bad_request: headers", 400)
        lacking = NEEDS[service] - call.request.fields.keys()
        return self._error(f"{sorted(lacking)[0]}: required", 400) if lacking else None

    @staticmethod
    def _error(words: str, status: int) -> FakeResponse:
        return FakeResponse({"id": "a1", "name": "bad_request", "errors": [words]}, status)

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"id": "a1", "name": "unauthorized", "errors": ["Authorization: invalid"]}, 401)
