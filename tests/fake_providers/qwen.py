"""Qwen-Image on loopback: DashScope's calls that wait for the images, one message each."""

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route


class Qwen(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /api/v1/services/aigc/multimodal-generation/generation")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if "x-dashscope-async" in call.request.headers:
            return problem(403, "AccessDenied", "current user api does not support asynchronous calls.")
        (message,) = fields["input"]["messages"]
        images = [part["image"] for part in message["content"] if "image" in part]
        width, height = (int(side) for side in fields["parameters"].get("size", "1024*1024").split("*"))
        if len(images) > 3 or not 512 * 512 <= width * height <= 2560 * 2560:
            return problem(400, "InvalidParameter", "The request is invalid.")
        if "nude" in message["content"][-1]["text"]:
            return problem(400, "DataInspectionFailed", "Input data may contain inappropriate content.")
        count = fields["parameters"].get("n", 1)
        content = [{"image": self.put(png(width, height), "image/png")} for _ in range(count)]
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"input_image_count": len(images), "output_image_count": count}
        return FakeResponse({"output": {"choices": [choice]}, "usage": usage, "request_id": self.new_id("574b-")})

    def unauthorized(self) -> FakeResponse:
        return problem(401, "InvalidApiKey", "Invalid API-key provided.")


def problem(status: int, code: str, message: str) -> FakeResponse:
    return FakeResponse({"code": code, "message": message, "request_id": "7574ee8f"}, status)
