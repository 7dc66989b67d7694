"""Google on loopback: Gemini's messages with images, Omni's interactions with files, and chat."""

import base64
from collections import deque
from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

PIXELS = {"1:1": (1024, 1024), "16:9": (1376, 768), "9:16": (768, 1376)}
BLOCKED = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}}
UNSAFE = {"candidates": [{"index": 0, "finishReason": "IMAGE_SAFETY", "content": {}}]}
WORDS_ONLY = {
    "candidates": [{"index": 0, "finishReason": "STOP", "content": {"parts": [{"text": "Here is a poem instead."}]}}]
}
FAILED = {"status": "failed", "errors": [{"code": "internal", "message": "Something went wrong."}]}
REFUSED = {"status": "failed", "errors": [{"code": "blocked", "message": "Blocked by safety filters."}]}
TALKED = {
    "status": "completed",
    "steps": [{"type": "model_output", "content": [{"type": "text", "text": "I will not show that."}]}],
}


class Google(FakeProvider):
    """The native API; chat is under /v1beta/openai and takes another header."""

    credential = ("x-goog-api-key", KEY)
    usual = ("queued", "in_progress", "completed")

    def __init__(self) -> None:
        super().__init__()
        self.videos: dict[str, bytes] = {}
        self.inline = False  # videos come along instead of having an address
        self.responses: deque[Any] = deque()  # instead of images

    @route("POST /v1beta/models/{model}:generateContent")
    def generate(self, call: Exchange) -> FakeResponse:
        if self.responses:
            return FakeResponse(self.responses.popleft())
        return generated_image(call.request.fields, call.params["model"], self.new_id("resp"))

    @route("POST /v1beta/interactions")
    def create(self, call: Exchange) -> FakeResponse:
        job = self.begin(call.request.fields, prefix="int")
        return FakeResponse(self._job_fields(job, job.next_state()))

    @route("GET /v1beta/interactions/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._job_fields(job, job.next_state())) if job else self.missing()

    @route("POST /v1beta/interactions/{id}/cancel")
    def cancel(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        job.cancel("cancelled")
        return FakeResponse(self._job_fields(job, "cancelled"))

    @route("GET /v1beta/files/{name}:download")
    def download(self, call: Exchange) -> FakeResponse:
        video = self.videos.get(call.params["name"])
        return FakeResponse(file=video, content_type="video/mp4") if video else self.missing()

    def _job_fields(self, job: Job, state: Any) -> dict[str, Any]:
        details = state if isinstance(state, dict) else {"status": state}
        shown: dict[str, Any] = {
            "id": job.id,
            "model": job.fields["model"],
            "created": "2026-11-15T00:00:00Z",
            **details,
        }
        if details["status"] == "completed" and "steps" not in details:
            shown["steps"] = [{"type": "model_output", "content": [self._video()]}]
            shown["usage"] = {"total_input_tokens": 20, "total_output_tokens": 46_336, "total_thought_tokens": 0}
        return shown

    def _video(self) -> dict[str, Any]:
        if self.inline:
            return {"type": "video", "mime_type": "video/mp4", "data": base64.b64encode(mp4()).decode()}
        name = self.new_id("video")
        self.videos[name] = mp4()
        return {"type": "video", "mime_type": "video/mp4", "uri": f"{self.url}/v1beta/files/{name}"}

    def unauthorized(self) -> FakeResponse:
        reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        return error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", [reason])

    def missing(self) -> FakeResponse:
        return error(404, "Requested entity was not found.", "NOT_FOUND")


class Gemini(FakeProvider):
    """OpenAI-compatible chat that rejects unknown fields and counts thinking tokens only in the total."""

    credential = ("authorization", f"Bearer {KEY}")
    unknown = ("seed", "user", "frequency_penalty", "presence_penalty", "logprobs", "store")

    @route("POST /v1beta/openai/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if found := [name for name in self.unknown if name in fields]:
            words = f'Invalid JSON payload received. Unknown name "{found[0]}": Cannot find field.'
            response = error(400, words, "INVALID_ARGUMENT")
            return FakeResponse([response.json], response.status)
        return chat.completion(fields, self.new_id("chat"), thought=40)[0]


def generated_image(fields: Any, model: str, response_id: str) -> FakeResponse:
    """The response to a message: a draft, and the image in the ratio that was asked for."""
    config = fields["generationConfig"]
    given = [part for part in fields["contents"][0]["parts"] if "inlineData" in part]
    draft = {"inlineData": image((64, 64)), "thought": True}
    drawn = {"inlineData": image(PIXELS[config["imageConfig"]["aspectRatio"]]), "thoughtSignature": "c2ln"}
    return FakeResponse(
        {
            "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [draft, drawn]}}],
            "usageMetadata": usage(len(given)),
            "modelVersion": model,
            "responseId": response_id,
        }
    )


def image(size: tuple[int, int]) -> dict[str, str]:
    return {"mimeType": "image/png", "data": base64.b64encode(png(*size)).decode()}


def usage(images: int) -> dict[str, Any]:
    return {
        "promptTokenCount": 10 + 258 * images,
        "candidatesTokenCount": 1130,
        "thoughtsTokenCount": 200,
        "totalTokenCount": 1340 + 258 * images,
        "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 10}, {"modality": "IMAGE", "tokenCount": 1120}],
    }


def error(status: int, message: str, name: str, details: Any = ()) -> FakeResponse:
    return FakeResponse(
        {"error": {"code": status, "message": message, "status": name, "details": list(details)}}, status
    )
