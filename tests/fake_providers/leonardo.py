"""Leonardo on loopback: its own models as jobs. It names the cost when it accepts one, and not afterwards."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, route

LUCID = {"prompt", "mode", "seed", "width", "height", "quantity", "style_ids", "prompt_enhance"}
PHOENIX = LUCID | {"contrast", "negative_prompt", "tiling"}
# By model: its parameters, its modes, the largest width and height.
MODELS: dict[str, tuple[set[str], set[str], int, int]] = {
    "lucid-origin": (LUCID, {"FAST", "ULTRA"}, 3840, 3616),
    "lucid-realism": (LUCID, {"FAST", "ULTRA"}, 2496, 2496),
    "phoenix-v1.0": (PHOENIX, {"FAST", "QUALITY", "ULTRA"}, 2048, 2048),
}


def error(status: int, code: str, message: str) -> FakeResponse:
    return FakeResponse({"error": message, "path": "$", "code": code}, status)


class Leonardo(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("PENDING", "COMPLETE")
    cost = ("0.0147", "DOLLARS")

    @route("POST /v2/generations")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self._wrong(fields):
            return error(400, "validation-failed", f"{wrong} is invalid")
        if "forbidden" in fields["parameters"]["prompt"]:
            return error(400, "bad-request", "The prompt was blocked by content moderation.")
        return self._started("generate", fields["parameters"])

    @route("POST /v1/generations-text-to-video")
    def create_video(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if (fields["width"], fields["height"]) not in {(832, 480), (480, 832), (512, 768), (576, 720)}:
            return error(400, "validation-failed", "width is invalid")
        return self._started("motionVideoGenerationJob", fields)

    def _started(self, name: str, fields: dict[str, Any]) -> FakeResponse:
        amount, unit = self.cost
        job = self.begin(fields)
        cost = {"amount": amount, "unit": unit}
        return FakeResponse({name: {"generationId": job.id, "apiCreditCost": None, "cost": cost}})

    @staticmethod
    def _wrong(fields: dict[str, Any]) -> str | None:
        if fields.keys() != {"model", "public", "parameters"} or fields["model"] not in MODELS:
            return "model"
        known, modes, max_width, max_height = MODELS[fields["model"]]
        parameters = fields["parameters"]
        if wrong := (parameters.keys() - known) | ({"prompt"} - parameters.keys()):
            return str(sorted(wrong)[0])
        for side, most in (("width", max_width), ("height", max_height)):
            if parameters.get(side, 1024) not in range(32, most + 1, 8):
                return side
        return None if parameters.get("mode", "FAST") in modes else "mode"

    @route("GET /v1/generations/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return error(404, "not-found", "generation not found")
        state = job.next_state()
        count = 1 if "resolution" in job.fields else job.fields.get("quantity", 4)
        outputs = [self._output("resolution" in job.fields) for _ in range(count if state == "COMPLETE" else 0)]
        return FakeResponse({"generations_by_pk": {"id": job.id, "status": state, "generated_images": outputs}})

    def _output(self, is_video: bool) -> dict[str, Any]:
        video = {"motion": True, "motionMP4URL": self.put(mp4(), "video/mp4")} if is_video else {}
        return {"id": self.new_id("image-"), "url": self.put(png(64, 48), "image/png"), "nsfw": False, **video}

    def unauthorized(self) -> FakeResponse:
        return error(401, "access-denied", "Authentication hook unauthorized this request")
