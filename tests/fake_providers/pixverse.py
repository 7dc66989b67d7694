"""PixVerse on loopback: errors have the status 200, images are uploaded, and every request needs an id of its own."""

from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, route

NEEDS = {"text": {"aspect_ratio"}, "img": {"img_id"}, "transition": {"first_frame_img", "last_frame_img"}}


class PixVerse(FakeProvider):
    credential = ("api-key", KEY)
    usual = (5, 1)

    def __init__(self) -> None:
        super().__init__()
        self.traces: set[str] = set()

    def knows(self, request: ReceivedRequest) -> bool:
        trace = request.headers.get("ai-trace-id", "")
        is_new = len(trace) == 36 and trace not in self.traces
        self.traces.add(trace)
        return is_new and super().knows(request)

    @route("POST /openapi/v2/image/upload")
    def upload(self, call: Exchange) -> FakeResponse:
        return success({"img_id": int(self.new_id("1"))} if call.request.fields["image"] else {})

    @route("POST /openapi/v2/video/{kind}/generate")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if NEEDS[call.params["kind"]] - fields.keys() or not 1 <= fields["duration"] <= 15:
            return problem(400017, "Invalid parameter")
        if "nude" in fields["prompt"]:
            return problem(500054, "Content moderation failed")
        job = self.begin(fields, prefix="4")
        return success({"video_id": int(job.id)})

    @route("GET /openapi/v2/video/result/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        status = self.jobs[call.params["id"]].next_state()
        url = self.put(mp4(), "video/mp4") if status == 1 else ""
        return success({"id": int(call.params["id"]), "status": status, "url": url, "credits": 45})

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"ErrCode": 10005, "ErrMsg": "apiKey is not registered", "Resp": None}, 401)


def success(found: dict[str, Any]) -> FakeResponse:
    return FakeResponse({"ErrCode": 0, "ErrMsg": "success", "Resp": found})


def problem(code: int, message: str) -> FakeResponse:
    return FakeResponse({"ErrCode": code, "ErrMsg": message, "Resp": None})
