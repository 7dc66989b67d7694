"""OpenRouter on loopback: any chat model with a reported cost, images, and videos that need the key."""

import base64
from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

COST_USD = 0.00014
REFUSED = {"status": "failed", "error": "The model's safety system objected."}
FLAGGED = {
    "code": 403,
    "message": "Your input was flagged",
    "metadata": {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI"},
}

LISTED_IMAGES: list[dict[str, Any]] = [
    {
        "id": "acme/painter-2",
        "name": "Acme: Painter 2",
        "description": "Paints.",
        "created": 1_790_000_000,
        "endpoints": "/api/v1/images/models/acme/painter-2/endpoints",
        "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["image"]},
        "supports_streaming": False,
        "supported_parameters": {
            "aspect_ratio": {"type": "enum", "values": ["1:1", "16:9", "9:16"]},
            "resolution": {"type": "enum", "values": ["1K", "2K"]},
            "quality": {"type": "enum", "values": ["low", "high"]},
            "seed": {"type": "boolean"},
            "background": {"type": "enum", "values": ["auto", "opaque"]},
        },
    }
]
LISTED_VIDEOS: list[dict[str, Any]] = [
    {
        "id": "acme/filmer-3",
        "canonical_slug": "acme/filmer-3",
        "name": "Acme: Filmer 3",
        "created": 1_790_000_000,
        "allowed_passthrough_parameters": [],
        "creativity": None,
        "generate_audio": True,
        "seed": None,
        "supported_aspect_ratios": ["16:9", "9:16"],
        "supported_durations": [4, 8],
        "supported_frame_images": ["first_frame"],
        "supported_resolutions": ["720p", "1080p"],
        "supported_sizes": None,
        "upscale_factor": None,
        "pricing_skus": {"duration_seconds_with_audio_1080p": "0.2", "cents_per_second_output_720p": "12"},
    }
]


class OpenRouter(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("pending", "in_progress", "completed")

    def __init__(self) -> None:
        super().__init__()
        self.unknown: set[str] = set()  # models that nobody there has
        self.image_prices: list[dict[str, Any]] = [
            {"billable": "output_image", "cost_usd": 0.03, "unit": "image"},
            {"billable": "input_image", "cost_usd": 0.000002, "unit": "token"},
        ]
        self.error: dict[str, Any] | None = None  # comes under a status of success, in a stream after the first word

    @route("POST /api/v1/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if fields["model"] in self.unknown:
            return error(404, f"No endpoints found for {fields['model']}.")
        if float(fields.get("provider", {}).get("max_price", {}).get("completion", "inf")) < 20:
            return error(404, "No endpoints found that cost so little.")
        response, _ = chat.completion(fields, self.new_id("gen-"), more={"cost": COST_USD, "is_byok": False})
        if not fields.get("stream"):
            return FakeResponse({"error": self.error}) if self.error else response
        waiting, details = b": OPENROUTER PROCESSING", list(response.events)
        return FakeResponse(events=[waiting, waiting, *(self._broken_off(details) if self.error else details)])

    def _broken_off(self, events: list[bytes]) -> list[bytes]:
        last = {"id": "gen-1", "object": "chat.completion.chunk", "error": self.error}
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return [*events[:2], chat.encoded({**last, "choices": [choice]})]

    @route("POST /api/v1/images")
    def images(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if fields.get("n", 1) > 1:
            return error(400, "This model makes one image at a time.")
        data = [{"b64_json": base64.b64encode(png(64, 64)).decode(), "media_type": "image/png"}]
        tokens = {"prompt_tokens": 0, "completion_tokens": 4175, "total_tokens": 4175}
        return FakeResponse({"created": 1_767_225_600, "data": data, "usage": {**tokens, "cost": 0.04}})

    @route("GET /api/v1/images/models")
    def image_models(self, call: Exchange) -> FakeResponse:
        return FakeResponse({"data": LISTED_IMAGES})

    @route("GET /api/v1/images/models/{name*}/endpoints")
    def image_endpoints(self, call: Exchange) -> FakeResponse:
        endpoint: dict[str, Any] = {
            "allowed_passthrough_parameters": [],
            "pricing": self.image_prices,
            "provider_name": "Acme",
            "provider_slug": "acme",
            "provider_tag": None,
            "supported_parameters": {},
            "supports_streaming": False,
        }
        return FakeResponse({"id": call.params["name"], "endpoints": [endpoint]})

    @route("GET /api/v1/videos/models")
    def video_models(self, call: Exchange) -> FakeResponse:
        return FakeResponse({"data": LISTED_VIDEOS})

    @route("POST /api/v1/videos")
    def video(self, call: Exchange) -> FakeResponse:
        job = self.begin(call.request.fields, prefix="gen-vid-")
        return FakeResponse(self._job_fields(job, job.next_state()), 202)

    @route("GET /api/v1/videos/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._job_fields(job, job.next_state())) if job else self.missing()

    @route("GET /api/v1/videos/{id}/content")
    def content(self, call: Exchange) -> FakeResponse:
        return FakeResponse(file=mp4(), content_type="video/mp4") if call.params["id"] in self.jobs else self.missing()

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"status": state}
        address = f"{self.url}/api/v1/videos/{job.id}"
        shown = {"id": job.id, "polling_url": address, **details}
        if state == "completed":
            shown |= {"unsigned_urls": [f"{address}/content?index=0"], "usage": {"cost": 0.42, "is_byok": False}}
        return shown

    def unauthorized(self) -> FakeResponse:
        return error(401, "No cookie auth credentials found")

    def missing(self) -> FakeResponse:
        return error(404, "Not found")


def error(code: int, message: str, **metadata: Any) -> FakeResponse:
    return FakeResponse({"error": {"code": code, "message": message, "metadata": metadata}}, code)
