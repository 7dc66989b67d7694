"""WaveSpeed on loopback: one queue for all models; each path takes the fields that its page names, and no others."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

BANANA = {"prompt", "aspect_ratio", "resolution", "output_format"}
UPSCALER = {"image", "target_resolution", "output_format"}
VEO = {"prompt", "aspect_ratio", "duration", "resolution", "generate_audio", "negative_prompt", "seed"}
KLING_4 = {"prompt", "aspect_ratio", "duration", "resolution"}
FIELDS = {
    "bytedance/seedream-v4.5": {"prompt", "size"},
    "bytedance/seedream-v4.5/edit": {"prompt", "size", "images"},
    "google/nano-banana-2/text-to-image": BANANA,
    "google/nano-banana-2/edit": BANANA | {"images"},
    "google/nano-banana-pro/text-to-image": BANANA,
    "google/nano-banana-pro/edit": BANANA | {"images"},
    "wavespeed-ai/image-upscaler": UPSCALER,
    "wavespeed-ai/seedvr2/image": UPSCALER,
    "wavespeed-ai/ultimate-image-upscaler": UPSCALER,
    "wavespeed-ai/flashvsr": {"video", "duration", "target_resolution"},
    "kwaivgi/kling-v4.0/text-to-video": KLING_4,
    "kwaivgi/kling-v4.0/image-to-video": KLING_4 | {"image", "last_image", "keyframes"},
    "google/veo3.1-fast/text-to-video": VEO,
    "google/veo3.1-fast/image-to-video": VEO | {"image", "last_image"},
}
ONE_OF: dict[str, set[Any]] = {
    "resolution": {"1k", "2k", "4k", "720p", "1080p"},
    "target_resolution": {"720p", "1080p", "2k", "4k", "8k"},
    "output_format": {"png", "jpeg", "webp"},
}


def failed(code: int, words: str) -> dict[str, Any]:
    return {"status": "failed", "code": code, "error": words}


class WaveSpeed(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("created", "processing", "completed")

    @route("GET /api/v3/predictions/{id}/result")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return self._job(job, job.next_state()) if job else self.missing()

    @route("POST /api/v3/{model*}")
    def create(self, call: Exchange) -> FakeResponse:
        fields, model = call.request.fields, call.params["model"]
        if model not in FIELDS:
            return error(404, f"model {model} not found")
        wrong = [
            name
            for name, value in fields.items()
            if name not in FIELDS[model] or (name in ONE_OF and value not in ONE_OF[name])
        ]
        if model.startswith("google/veo") and fields.get("duration") not in (4, 6, 8):
            wrong.append("duration")
        if model.startswith("kwaivgi/") and fields.get("duration") not in range(3, 31):
            wrong.append("duration")
        missing = {"image", "images", "prompt", "video"} & FIELDS[model] - fields.keys()
        if wrong or missing:
            return error(400, f"invalid parameter: {[*wrong, *missing][0]}")
        job = self.begin({**fields, "model": model}, prefix="pred-")
        return self._job(job, job.next_state())

    def _job(self, job: Job, state: Any) -> FakeResponse:
        details = state if isinstance(state, dict) else {"status": state, "error": ""}
        is_video = job.fields["model"].endswith(("-video", "flashvsr"))
        outputs = []
        if details["status"] == "completed":
            outputs = [self.put(mp4(), "video/mp4") if is_video else self.put(png(128, 64), "image/png")]
        data = {"id": job.id, "model": job.fields["model"], "outputs": outputs, "has_nsfw_contents": [], **details}
        return FakeResponse({"code": 200, "message": "success", "data": data})

    def unauthorized(self) -> FakeResponse:
        return error(401, "Unauthorized")

    def missing(self) -> FakeResponse:
        return error(404, "prediction not found")


def error(status: int, message: str) -> FakeResponse:
    return FakeResponse({"code": status, "message": message}, status)
