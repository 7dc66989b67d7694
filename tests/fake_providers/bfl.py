"""Black Forest Labs' tasks on loopback, as its documentation shows them: a ticket, an address to ask at, a sample.

There is no client. The shape is that of docs.bfl.ai (quick_start, pricing); exchanges are compared with
descriptions of others, and what these do not allow is refused.
"""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, route

MODERATED = {"status": "Request Moderated", "details": {"Moderation Reasons": ["Safety Filter"]}}
INPUTS = "input_image", *(f"input_image_{number}" for number in range(2, 9))


class BlackForestLabs(FakeProvider):
    credential = ("x-key", KEY)
    usual = ("Pending", "Generating", "Ready")

    @route("POST /v1/{model*}")
    def submit(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := [name for name in INPUTS if not isinstance(fields.get(name, ""), str)]:
            details = {"type": "string_type", "loc": ["body", wrong[0]], "msg": "Input should be a valid string"}
            return FakeResponse({"detail": [details]}, 422)
        is_continued = "start_video" in fields
        if is_continued != (fields.get("mode") == "v2v") or (is_continued and "aspect_ratio" in fields):
            details = {"type": "value_error", "loc": ["body", "mode"], "msg": "start_video belongs to the mode v2v"}
            return FakeResponse({"detail": [details]}, 422)
        job = self.begin({**fields, "path": call.params["model"]}, prefix="b5a2-")
        return FakeResponse(
            {"id": job.id, "polling_url": f"{self.url}/v1/get_result?id={job.id}", "cost": self._cost(fields)}
        )

    @route("GET /v1/get_result")
    def result(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.request.path.partition("?id=")[2])
        if job is None:
            return FakeResponse({"id": None, "status": "Task not found", "result": None}, 404)
        state = job.next_state()
        if state == "Error":  # told so, too
            return FakeResponse({"id": job.id, "status": "Error", "result": None}, 503)
        shown = state if isinstance(state, dict) else {"status": state}
        made = self._made(job.fields) if shown["status"] == "Ready" and "result" not in shown else None
        cost = self._cost(job.fields) if made and "upscale" not in job.fields["path"] else None
        return FakeResponse({"id": job.id, "result": made, "cost": cost, **shown})

    def _made(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "video" in fields["path"]:
            return {"sample": self.put(mp4(), "video/mp4")}
        size = fields.get("width", 96), fields.get("height", 64)
        return {"sample": self.put(png(*size), "image/png"), "prompt": f"{fields['prompt']}, in detail", "seed": 7}

    @staticmethod
    def _cost(fields: dict[str, Any]) -> float:
        return 17.0 * fields["duration"] if "duration" in fields else 3.0

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"detail": "Not authenticated - Invalid Authentication"}, 403)
