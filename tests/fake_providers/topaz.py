"""Topaz on loopback: jobs that enlarge an image, whose result has a URL of its own, or a video, which is uploaded."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.scripted import KEY, mp4, png
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

    # ---------------------------------------------------------------------------------------------------------- videos

    @route("POST /video/")
    def create_video(self, call: Exchange) -> FakeResponse:
        job = self.begin(dict(call.request.fields), prefix="req-")
        return FakeResponse({"requestId": job.id, "estimates": {"cost": [0, 1], "time": [60, 90]}})

    @route("PATCH /video/{id}/accept")
    def accept_video(self, call: Exchange) -> FakeResponse:
        self.jobs[call.params["id"]].fields["accepted"] = True
        return FakeResponse({"uploadId": "up-1", "urls": [f"{self.url}/uploads/{call.params['id']}"]})

    @route("PUT /uploads/{id}")
    def upload_video(self, call: Exchange) -> FakeResponse:
        fields = self.jobs[call.params["id"]].fields
        if "x-api-key" in call.request.headers or len(call.request.body) != fields["source"]["size"]:
            return FakeResponse({"message": "This is not the file."}, 400)
        fields["uploaded"] = call.request.body
        return FakeResponse({}, headers={"etag": '"tag-1"'})

    @route("PATCH /video/{id}/complete-upload")
    def start_video(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        if "uploaded" not in job.fields or call.request.fields != {"uploadResults": [{"partNum": 1, "eTag": "tag-1"}]}:
            return FakeResponse({"message": "Nothing was uploaded."}, 400)
        job.fields["started"] = True
        return FakeResponse({"message": "Processing has been queued"}, 202)

    @route("GET /video/{id}/status")
    def show_video(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return self.missing()
        state = job.next_state() if job.fields.get("started") or job.cancelled else "accepted"
        shown: dict[str, Any] = {"status": state, "progress": 50, "estimates": {"cost": [0.5, 1.0], "time": [60, 90]}}
        if state == "complete":
            shown["download"] = {"url": self.put(mp4(2), "video/mp4"), "expiresIn": 86400000}
        return FakeResponse(shown)

    @route("DELETE /video/{id}")
    def cancel_video(self, call: Exchange) -> FakeResponse:
        self.jobs[call.params["id"]].cancel("canceled")
        return FakeResponse({"message": "Canceled"})

    def knows(self, request: ReceivedRequest) -> bool:
        return request.method == "PUT" or super().knows(request)

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"message": "Unauthorized"}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"message": "Not found"}, 404)
