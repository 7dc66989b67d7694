"""Together AI on loopback: images of any size, videos as jobs of version 2, and chat."""

import base64

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, route

# What the models take beside the description of all videos: resolutions and seconds.
VIDEOS = {
    "ByteDance/Seedance-2.5": (("480p", "720p"), range(4, 31)),
    "ByteDance/Seedance-2.0": (("480p", "720p", "1080p", "4k"), range(4, 16)),
    "Wan-AI/wan2.7-t2v": (("720P", "1080P"), range(2, 16)),
}


class Together(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("queued", "in_progress", "completed")

    def knows(self, request: ReceivedRequest) -> bool:
        return request.path.startswith("/shrt/") or super().knows(request)

    @route("POST /v1/images/generations")
    def generate(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if fields.get("response_format") not in ("base64", "url") or fields["width"] % 16 or fields["height"] % 16:
            return error(400, "Invalid value.")
        if "nsfw" in fields["prompt"]:
            return error(422, "NSFW content detected in the image.")
        image = base64.b64encode(png(fields["width"], fields["height"])).decode()
        data = [{"index": number, "type": "b64_json", "b64_json": image} for number in range(fields.get("n", 1))]
        return FakeResponse({"id": self.new_id("o"), "model": fields["model"], "object": "list", "data": data})

    @route("POST /v2/videos")
    def create_video(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        resolutions, seconds = VIDEOS[fields["model"]]
        if fields["resolution"] not in resolutions or int(fields["seconds"]) not in seconds:
            return error(400, "Invalid resolution or duration.")
        if "ratio" in fields and fields["model"].endswith("2.5"):
            return error(400, "ratio is not supported by this model.")
        if len(fields.get("media", {})) > 1:
            return error(400, "frame_images cannot be combined with references.")
        job = self.begin(fields)
        return FakeResponse({"id": job.id, "object": "video", "model": fields["model"], "status": job.next_state()})

    @route("GET /v2/videos/{id}")
    def show_video(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        state = job.next_state()
        details = state if isinstance(state, dict) else {"status": state}
        # Short URLs of its own, which lead to another place.
        outputs = {"outputs": {"video_url": f"{self.url}/shrt/{job.id}"}} if state == "completed" else {}
        return FakeResponse({"id": job.id, "object": "video", **outputs, **details})

    @route("GET /shrt/{id}")
    def shortened(self, call: Exchange) -> FakeResponse:
        return FakeResponse({}, 302, headers={"location": self.put(mp4(), "video/mp4")})

    @route("POST /v1/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if not isinstance(fields.get("stop", []), list) or isinstance(fields.get("logprobs"), bool):
            return error(422, "Input validation error")
        # What was used comes with the last words of a stream, unasked.
        fields = {**fields, "stream_options": {"include_usage": True}}
        return chat.completion(fields, self.new_id("chat-"), joined=True)[0]


def error(status: int, message: str) -> FakeResponse:
    details = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return FakeResponse({"id": "nQ8", "error": details}, status)
