"""Vertex AI on loopback: operations that are polled with POST and return videos as base64, and Gemini's images."""

import base64
from typing import Any

from tests.fake_providers import google
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, Job, route

PLACE = "/v1/projects/acme/locations/us-central1"
MODEL = PLACE + "/publishers/google/models/{model}"
FILTERED = {
    "response": {
        "raiMediaFilteredCount": 1,
        "raiMediaFilteredReasons": ["Veo could not generate videos: the input image violates the usage guidelines."],
    }
}


def ended(code: int, message: str) -> dict[str, Any]:
    """The end of an operation that failed."""
    return {"error": {"code": code, "message": message}}


class Vertex(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("waiting", "done")

    @route(f"POST {MODEL}:predictLongRunning")
    def create(self, call: Exchange) -> FakeResponse:
        details = call.request.fields["parameters"]
        if details.get("resolution") != "720p" and details.get("durationSeconds") != 8:
            return error(400, "Unsupported output video duration for this resolution.", "INVALID_ARGUMENT")
        job = self.begin({**call.request.fields, "model": call.params["model"]})
        return FakeResponse({"name": name_of(job)})

    @route(f"POST {MODEL}:generateContent")
    def generate(self, call: Exchange) -> FakeResponse:
        return google.generated_image(call.request.fields, call.params["model"], self.new_id("resp"))

    @route(f"POST {MODEL}:fetchPredictOperation")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.request.fields["operationName"].rpartition("/")[2])
        if job is None or job.fields["model"] != call.params["model"]:
            return error(404, "The operation does not exist.", "NOT_FOUND")
        state = job.next_state()
        if state == "waiting":
            return FakeResponse({"name": name_of(job)})
        video = {"bytesBase64Encoded": base64.b64encode(mp4()).decode(), "mimeType": "video/mp4"}
        made = {"response": {"@type": "type.googleapis.com/cloud.ai.GenerateVideoResponse", "videos": [video]}}
        return FakeResponse({"name": name_of(job), "done": True, **(made if state == "done" else state)})

    def unauthorized(self) -> FakeResponse:
        return error(401, "Request had invalid authentication credentials.", "UNAUTHENTICATED")


def name_of(job: Job) -> str:
    return f"{PLACE.removeprefix('/v1/')}/publishers/google/models/{job.fields['model']}/operations/{job.id}"


def error(status: int, message: str, name: str) -> FakeResponse:
    return FakeResponse({"error": {"code": status, "message": message, "status": name}}, status)
