"""Novita on loopback: Kling 3 as tasks, with the fields of each page and no others, and chat.

The shape is that of novita.ai/docs; the states are those of novita_client 0.7.1, Novita's own client.
"""

from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4
from tests.fake_providers.server import FakeProvider, route

SHARED = {"prompt", "negative_prompt", "duration", "cfg_scale", "sound"}
FIELDS = {"t2v": SHARED | {"aspect_ratio"}, "i2v": SHARED | {"image", "end_image"}}
RATIOS = {"16:9", "9:16", "1:1"}


def error(status: int, reason: str, message: str) -> FakeResponse:
    return FakeResponse({"code": status, "reason": reason, "message": message, "metadata": {}}, status)


def failed(reason: str) -> dict[str, Any]:
    return {"status": "TASK_STATUS_FAILED", "reason": reason}


class Novita(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")
    usual = ("TASK_STATUS_QUEUED", "TASK_STATUS_PROCESSING", "TASK_STATUS_SUCCEED")

    @route("GET /v3/async/task-result")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.request.path.partition("task_id=")[2])
        if job is None:
            return error(404, "TASK_NOT_FOUND", "task not found")
        state: Any = job.next_state()
        details = state if isinstance(state, dict) else {"status": state, "reason": ""}
        videos = []
        if details["status"] == "TASK_STATUS_SUCCEED":
            videos = [{"video_url": self.put(mp4(), "video/mp4"), "video_url_ttl": "3600", "video_type": "mp4"}]
        task = {"task_id": job.id, "task_type": "KLING_V3", "eta": 0, "progress_percent": 40, **details}
        return FakeResponse({"extra": {}, "task": task, "images": [], "videos": videos, "audios": []})

    @route("POST /v3/async/{model}")
    def create(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self._wrong(call.params["model"], fields):
            return error(400, "INVALID_REQUEST_BODY", f"invalid {wrong}")
        if "forbidden" in fields["prompt"]:
            return error(400, "ILLEGAL_PROMPT", "the prompt contains inappropriate content")
        return FakeResponse({"task_id": self.begin(fields).id})

    @staticmethod
    def _wrong(model: str, fields: dict[str, Any]) -> str | None:
        family, _, kind = model.rpartition("-")
        if family not in ("kling-v3.0-std", "kling-v3.0-pro") or kind not in FIELDS:
            return "model"
        needed = {"prompt", "image"} & FIELDS[kind]
        if found := (fields.keys() - FIELDS[kind]) | (needed - fields.keys()):
            return sorted(found)[0]
        if fields.get("duration", 5) not in range(3, 16):
            return "duration"
        return None if fields.get("aspect_ratio", "16:9") in RATIOS else "aspect_ratio"

    @route("POST /openai/v1/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        if any(message["role"] == "developer" for message in call.request.fields["messages"]):
            return error(400, "INVALID_REQUEST_BODY", "unknown role developer")
        return chat.completion(call.request.fields, self.new_id("chatcmpl-"))[0]

    def unauthorized(self) -> FakeResponse:
        return error(403, "INVALID_API_KEY", "invalid API key")
