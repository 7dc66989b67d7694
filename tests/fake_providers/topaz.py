"""Topaz on loopback: jobs that enlarge an image; the result is fetched from a third URL."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

SIZES = ("input_width", "input_height", "output_width", "output_height")


class Topaz(FakeProvider):
    credential = ("x-api-key", KEY)
    usual = ("Pending", "Processing", "Completed")

    @route("POST /image/v1/enhance-gen/async")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        known = {"model", "image", "output_format", *SIZES} | (
            {"prompt"} if fields.get("model") == "Bloom 2" else set()
        )
        if fields.get("model") not in ("Wonder 3.5", "Bloom 2") or fields.keys() - known or "image" not in fields:
            return FakeResponse({"message": "Invalid request"}, 400)
        if not 1 <= int(fields["output_width"]) / int(fields["input_width"]) <= 6:
            return FakeResponse({"message": "Upscale factor must be between 1 and 6"}, 400)
        job = self.begin(fields, prefix="proc-")
        return FakeResponse({"process_id": job.id, "eta": 1763175600})

    @route("GET /image/v1/status/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return self.missing()
        state: Any = job.next_state()
        return FakeResponse({"process_id": job.id, "status": state, "credits": 1, "progress": 50})

    @route("GET /image/v1/download/{id}")
    def download(self, call: Exchange) -> FakeResponse:
        fields = self.jobs[call.params["id"]].fields
        image = png(int(fields["output_width"]), int(fields["output_height"]))
        return FakeResponse({"download_url": self.put(image, "image/png"), "expiry": 1763179200})

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"message": "Unauthorized"}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"message": "Not found"}, 404)
