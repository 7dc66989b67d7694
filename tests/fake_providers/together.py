"""Together AI on loopback: images of any size, and chat."""

import base64

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route


class Together(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

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
